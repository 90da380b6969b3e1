// ProgramId, see program_id.h.
#include "spank_plugin/relay/program_id.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "base/crc32c.h"
#include "base/scoped_fd.h"

namespace lbf::relay {
namespace {

constexpr std::size_t kMostProgramHeaders = 256;
constexpr std::size_t kMostNoteBytes = 65536;
constexpr std::size_t kMostBuildIdBytes = 64;
// A file's identity is its size and its first bytes: reading all of a large one would cost the program's node time.
constexpr std::size_t kHashedBytes = 1 << 20;
constexpr std::size_t kMostCommandBytes = 65536;
constexpr std::size_t kMostNameBytes = 100;

bool read_at(int fd, void* out, std::size_t bytes, std::uint64_t offset) {
  return ::pread(fd, out, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

std::string hex(std::span<const unsigned char> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string sized_hash(std::uint64_t bytes, std::string_view text) {
  const std::uint32_t crc = crc32c(text);
  std::array<unsigned char, 4> big_endian{};
  for (std::size_t i = 0; i < 4; ++i) big_endian[i] = static_cast<unsigned char>(crc >> (24 - 8 * i));
  return std::to_string(bytes) + '-' + hex(big_endian);
}

// "BYTES-CRC32C"; nothing: no regular file that can be read.
std::optional<std::string> file_hash(const std::string& path) {
  const ScopedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  std::string text(std::min<std::size_t>(static_cast<std::size_t>(status.st_size), kHashedBytes), '\0');
  if (!read_at(fd.get(), text.data(), text.size(), 0)) return std::nullopt;
  return sized_hash(static_cast<std::uint64_t>(status.st_size), text);
}

// The GNU build id among the notes; empty: there is none.
std::string build_id_of_notes(std::span<const unsigned char> notes) {
  const auto padded = [](std::uint64_t bytes) { return (bytes + 3) & ~std::uint64_t{3}; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof note);
    notes = notes.subspan(sizeof note);
    const std::uint64_t name_bytes = padded(note.n_namesz);
    const std::uint64_t all_bytes = name_bytes + padded(note.n_descsz);
    if (name_bytes + note.n_descsz > notes.size()) return {};
    const bool is_build_id = note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
                             std::memcmp(notes.data(), ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0;
    if (is_build_id && note.n_descsz > 0 && note.n_descsz <= kMostBuildIdBytes)
      return hex(notes.subspan(name_bytes, note.n_descsz));
    notes = notes.subspan(std::min<std::uint64_t>(all_bytes, notes.size()));
  }
  return {};
}

std::string read_proc_file(const std::string& path) {
  const ScopedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd) return text;
  std::array<char, 4096> buffer;
  while (text.size() < kMostCommandBytes) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::vector<std::string> words_of(const std::string& command_line) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < command_line.size();) {
    const std::size_t end = std::min(command_line.find('\0', begin), command_line.size());
    words.push_back(command_line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// "python3.11" is python.
bool is_interpreter(const std::string& executable) {
  std::string name = base_name(executable);
  while (!name.empty() &&
         (std::isdigit(static_cast<unsigned char>(name.back())) != 0 || name.back() == '.' || name.back() == '-'))
    name.pop_back();
  static constexpr std::array<std::string_view, 17> kNames = {
      "python", "pypy", "perl", "ruby",   "julia",      "Rscript", "R",   "lua", "luajit",
      "tclsh",  "bash", "sh",   "octave", "octave-cli", "dash",    "ksh", "zsh"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace

std::string elf_build_id(const std::string& path) {
  const ScopedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  ElfW(Ehdr) header;
  if (!fd || !read_at(fd.get(), &header, sizeof header, 0)) return {};
  const unsigned char native_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != native_class ||
      header.e_phentsize != sizeof(ElfW(Phdr)))
    return {};
  const std::size_t count = std::min<std::size_t>(header.e_phnum, kMostProgramHeaders);
  for (std::size_t i = 0; i < count; ++i) {
    ElfW(Phdr) segment;
    if (!read_at(fd.get(), &segment, sizeof segment, header.e_phoff + i * sizeof segment)) return {};
    if (segment.p_type != PT_NOTE) continue;
    std::vector<unsigned char> notes(std::min<std::size_t>(segment.p_filesz, kMostNoteBytes));
    if (!read_at(fd.get(), notes.data(), notes.size(), segment.p_offset)) continue;
    if (std::string found = build_id_of_notes(notes); !found.empty()) return found;
  }
  return {};
}

std::string script_id(const std::string& executable, const std::vector<std::string>& words, const std::string& root,
                      const std::string& cwd) {
  if (!is_interpreter(executable)) return {};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-c" || word == "-e") {
      if (i + 1 == words.size()) return {};
      return word + ':' + sized_hash(words[i + 1].size(), words[i + 1]);
    }
    if (word == "-m") return i + 1 < words.size() ? "-m " + words[i + 1].substr(0, kMostNameBytes) : std::string();
    if (word == "-W" || word == "-X") {  // of python, with a value
      ++i;
      continue;
    }
    if (word.starts_with('-')) continue;
    const std::string name = base_name(word).substr(0, kMostNameBytes);
    const std::optional<std::string> hash = file_hash(word.starts_with('/') ? root + word : cwd + '/' + word);
    return hash ? name + ':' + *hash : name + ':';
  }
  return {};
}

ProgramId program_id_of(std::int32_t pid, const std::string& executable) {
  const std::string proc = "/proc/" + std::to_string(pid);
  ProgramId id;
  for (const std::string& path : {proc + "/exe", executable}) {
    if (std::string build_id = elf_build_id(path); !build_id.empty()) {
      id.build_id = "gnu:" + build_id;
    } else if (const auto hash = file_hash(path)) {
      id.build_id = "file:" + *hash;
    }
    if (!id.build_id.empty()) break;
  }
  id.script = script_id(executable, words_of(read_proc_file(proc + "/cmdline")), proc + "/root", proc + "/cwd");
  return id;
}

}  // namespace lbf::relay
