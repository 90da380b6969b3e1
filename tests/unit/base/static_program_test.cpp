#include "base/static_program.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace lbf::static_program_test {
namespace {

// The shortest programs: a header, program headers of these types, and what the dynamic one is of. FLAGS: the linker's,
// DF_1_PIE of programs.
std::string program_of(const std::string& path, const std::vector<Elf64_Word>& types, Elf64_Half claimed,
                       Elf64_Half kind = ET_DYN, Elf64_Xword flags = DF_1_PIE) {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_type = kind;
  head.e_phoff = sizeof(head);
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = claimed;
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&head), sizeof(head));
  for (const Elf64_Word type : types) {
    Elf64_Phdr part{};
    part.p_type = type;
    part.p_offset = sizeof(head) + types.size() * sizeof(part);
    part.p_filesz = type == PT_DYNAMIC ? 3 * sizeof(Elf64_Dyn) : 0;
    out.write(reinterpret_cast<const char*>(&part), sizeof(part));
  }
  const Elf64_Dyn dynamic[] = {{DT_DEBUG, {0}}, {DT_FLAGS_1, {flags}}, {DT_NULL, {0}}};
  out.write(reinterpret_cast<const char*>(&dynamic), sizeof(dynamic));
  return path;
}

TEST(StaticProgram, IsOneWithoutAnInterpreter) {
  const test::TemporaryDirectory directory;
  const std::string at = directory.path() + "/";
  EXPECT_TRUE(*is_static_program(program_of(at + "static", {PT_LOAD, PT_LOAD}, 2, ET_EXEC, 0)));
  EXPECT_TRUE(*is_static_program(program_of(at + "static-pie", {PT_LOAD, PT_DYNAMIC}, 2)));
  EXPECT_FALSE(*is_static_program(program_of(at + "dynamic", {PT_PHDR, PT_INTERP, PT_LOAD}, 3)));
  EXPECT_FALSE(*is_static_program("/bin/sh"));
}

// `lbf-run -- mpirun ./app ./plugin.so` called the plugin "linked statically": a library has no interpreter, either.
TEST(StaticProgram, ALibraryIsNone) {
  const test::TemporaryDirectory directory;
  const std::string at = directory.path() + "/";
  const auto is_none = [](const std::string& path) {
    return is_static_program(path).error().code == ErrorCode::kInvalidInput;
  };
  EXPECT_TRUE(is_none(program_of(at + "library", {PT_LOAD, PT_DYNAMIC}, 2, ET_DYN, DF_1_NOW)));
  EXPECT_TRUE(is_none(program_of(at + "bare", {PT_LOAD}, 1)));
  Dl_info loaded{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&::dladdr), &loaded), 0);
  const auto loaders = is_static_program(loaded.dli_fname);
  EXPECT_FALSE(loaders && *loaders) << loaded.dli_fname;
}

TEST(StaticProgram, OtherFilesAreNone) {
  const test::TemporaryDirectory directory;
  const std::string at = directory.path() + "/";
  EXPECT_EQ(is_static_program("/etc/passwd").error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(is_static_program("/does/not/exist").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(is_static_program(at).error().code, ErrorCode::kInvalidInput) << "a folder";
  EXPECT_EQ(is_static_program(program_of(at + "cut", {PT_LOAD}, 2)).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(is_static_program(program_of(at + "none", {PT_NOTE}, 1, ET_EXEC)).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(is_static_program(program_of(at + "many", {PT_LOAD}, 2000)).error().code, ErrorCode::kInvalidInput);
}

}  // namespace
}  // namespace lbf::static_program_test