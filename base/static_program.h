// Whether a program file is linked statically: then the loader runs no LD_PRELOAD, and nothing of lbf gets into it.
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/result.h"
#include "base/scoped_fd.h"

namespace lbf {

// True: an ELF program (64 bits, this machine's byte order) without a program interpreter, static-pie included. Errors:
// kNotFound: it cannot be read; kInvalidInput: it is no such file (a script, a library, an object of another kind).
inline Result<bool> is_static_program(const std::string& path) {
  constexpr std::size_t kMostHeaders = 1024;  // of a program there are some twenty
  const ScopedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Error{ErrorCode::kNotFound, path + " cannot be read: " + std::strerror(errno)};
  const Error no_program{ErrorCode::kInvalidInput, path + " is no ELF program of 64 bits"};
  const auto read_at = [&fd](void* to, std::size_t bytes, Elf64_Off at) {
    return ::pread(fd.get(), to, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
  };
  Elf64_Ehdr head{};
  if (!read_at(&head, sizeof(head), 0) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || (head.e_type != ET_EXEC && head.e_type != ET_DYN) ||
      head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum == 0 || head.e_phnum > kMostHeaders) {
    return no_program;
  }
  // A library has no interpreter, either: only the linker's flag tells a static-pie from it.
  const auto is_position_independent_program = [&](const Elf64_Phdr& dynamic) {
    constexpr std::size_t kMostEntries = 1024;
    const std::size_t entries = std::min(dynamic.p_filesz / sizeof(Elf64_Dyn), std::size_t{kMostEntries});
    for (std::size_t i = 0; i < entries; ++i) {
      Elf64_Dyn entry{};
      if (!read_at(&entry, sizeof(entry), dynamic.p_offset + i * sizeof(entry)) || entry.d_tag == DT_NULL) return false;
      if (entry.d_tag == DT_FLAGS_1) return (entry.d_un.d_val & DF_1_PIE) != 0;
    }
    return false;
  };
  bool loads = false;
  bool is_program = head.e_type == ET_EXEC;
  for (std::size_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part{};
    if (!read_at(&part, sizeof(part), head.e_phoff + i * sizeof(part))) return no_program;
    if (part.p_type == PT_INTERP) return false;
    loads |= part.p_type == PT_LOAD;
    if (part.p_type == PT_DYNAMIC) is_program |= is_position_independent_program(part);
  }
  if (!loads || !is_program) return no_program;
  return true;
}

}  // namespace lbf
