#include "base/static_program.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace lbf::static_program_test {
namespace {

// The shortest programs: a header, and program headers of these types.
std::string program_of(const std::string& path, const std::vector<Elf64_Word>& types, Elf64_Half claimed) {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_type = ET_DYN;
  head.e_phoff = sizeof(head);
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = claimed;
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&head), sizeof(head));
  for (const Elf64_Word type : types) {
    Elf64_Phdr part{};
    part.p_type = type;
    out.write(reinterpret_cast<const char*>(&part), sizeof(part));
  }
  return path;
}

TEST(StaticProgram, IsOneWithoutAnInterpreter) {
  const test::TemporaryDirectory directory;
  const std::string at = directory.path() + "/";
  EXPECT_TRUE(*is_static_program(program_of(at + "static", {PT_LOAD, PT_LOAD}, 2)));
  EXPECT_TRUE(*is_static_program(program_of(at + "static-pie", {PT_LOAD, PT_DYNAMIC}, 2)));
  EXPECT_FALSE(*is_static_program(program_of(at + "dynamic", {PT_PHDR, PT_INTERP, PT_LOAD}, 3)));
  EXPECT_FALSE(*is_static_program("/bin/sh"));
}

TEST(StaticProgram, OtherFilesAreNone) {
  const test::TemporaryDirectory directory;
  const std::string at = directory.path() + "/";
  EXPECT_EQ(is_static_program("/etc/passwd").error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(is_static_program("/does/not/exist").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(is_static_program(at).error().code, ErrorCode::kInvalidInput) << "a folder";
  EXPECT_EQ(is_static_program(program_of(at + "cut", {PT_LOAD}, 2)).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(is_static_program(program_of(at + "none", {PT_NOTE}, 1)).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(is_static_program(program_of(at + "many", {PT_LOAD}, 2000)).error().code, ErrorCode::kInvalidInput);
}

}  // namespace
}  // namespace lbf::static_program_test