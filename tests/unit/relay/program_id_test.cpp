// What a process runs: ELF build ids, and scripts of interpreters.
#include "spank_plugin/relay/program_id.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "tests/support/temporary_directory.h"

namespace lbf::relay::program_id_test {
namespace {

class ProgramIdTest : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  // An ELF file with one note segment that holds the notes.
  std::string elf(const std::string& notes, std::uint64_t note_bytes_said) const {
    ElfW(Ehdr) header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(ElfW(Phdr));
    header.e_phnum = 1;
    ElfW(Phdr) segment{};
    segment.p_type = PT_NOTE;
    segment.p_offset = sizeof header + sizeof segment;
    segment.p_filesz = note_bytes_said;
    std::string text(reinterpret_cast<const char*>(&header), sizeof header);
    text.append(reinterpret_cast<const char*>(&segment), sizeof segment);
    return text + notes;
  }
  static std::string note(std::uint32_t type, const std::string& name, const std::string& value) {
    const std::uint32_t head[3] = {static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(value.size()),
                                   type};
    std::string text(reinterpret_cast<const char*>(head), sizeof head);
    const auto pad = [&] { text.resize((text.size() + 3) & ~std::size_t{3}); };
    text += name;
    pad();
    text += value;
    pad();
    return text;
  }
  static std::string gnu() { return std::string("GNU\0", 4); }

  test::TemporaryDirectory directory_;
};

TEST_F(ProgramIdTest, TheBuildIdIsFoundAmongOtherNotes) {
  const std::string notes =
      note(1, gnu(), std::string(16, 'v')) + note(3, "Other", "xx") + note(NT_GNU_BUILD_ID, gnu(), "\x01\xab\xff");
  EXPECT_EQ(elf_build_id(file("a", elf(notes, notes.size()))), "01abff");
}

TEST_F(ProgramIdTest, BrokenFilesHaveNone) {
  const std::string notes = note(NT_GNU_BUILD_ID, gnu(), std::string(20, 'x'));
  EXPECT_NE(elf_build_id(file("whole", elf(notes, notes.size()))), "");
  EXPECT_EQ(elf_build_id(file("longer", elf(notes, notes.size() + 1000))), "") << "beyond the file's end";
  for (std::size_t bytes = 0; bytes < elf(notes, notes.size()).size(); ++bytes) {
    EXPECT_EQ(elf_build_id(file("cut", elf(notes, notes.size()).substr(0, bytes))), "") << bytes;
  }
  std::string huge = notes;
  huge[4] = '\xff';  // the value's length
  huge[7] = '\xff';
  EXPECT_EQ(elf_build_id(file("huge", elf(huge, huge.size()))), "");
  EXPECT_EQ(elf_build_id(file("text", "#!/bin/sh\n")), "");
  EXPECT_EQ(elf_build_id(path("absent")), "");
  EXPECT_EQ(elf_build_id(directory_.path()), "");
}

TEST_F(ProgramIdTest, ThisProcessHasOneIdentity) {
  const ProgramId one = program_id_of(::getpid(), "/nonexistent");
  EXPECT_THAT(one.build_id, testing::AnyOf(testing::StartsWith("gnu:"), testing::StartsWith("file:")));
  EXPECT_EQ(one.script, "");
  EXPECT_EQ(one.build_id, program_id_of(-1, "/proc/self/exe").build_id) << "by its file, when the process is gone";
}

TEST_F(ProgramIdTest, WithoutABuildIdTheFileCounts) {
  const std::string one = program_id_of(-1, file("one", "some text")).build_id;
  EXPECT_THAT(one, testing::StartsWith("file:9-"));
  EXPECT_NE(one, program_id_of(-1, file("two", "some Text")).build_id);
  EXPECT_EQ(program_id_of(-1, path("absent")).build_id, "");
}

TEST_F(ProgramIdTest, AnInterpreterIsItsScript) {
  file("run.py", "print(1)");
  const auto id = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "python3");
    return script_id("/usr/bin/python3.11", words, "", directory_.path());
  };
  const std::string relative = id({"run.py", "-x", "input"});
  EXPECT_THAT(relative, testing::StartsWith("run.py:8-"));
  EXPECT_EQ(relative, id({"-u", "-W", "ignore", path("run.py"), "other input"})) << "arguments do not count";
  file("run.py", "print(2)");
  EXPECT_NE(relative, id({"run.py"})) << "another script of the same name";
  EXPECT_EQ(id({"-m", "mpi4py.bench"}), "-m mpi4py.bench");
  EXPECT_NE(id({"-c", "a"}), id({"-c", "b"}));
  EXPECT_EQ(id({"gone.py"}), "gone.py:");
  EXPECT_EQ(id({}), "");
  EXPECT_EQ(id({"-c"}), "");
  EXPECT_EQ(script_id("/home/u/app", {"app", "run.py"}, "", directory_.path()), "") << "no interpreter";
}

}  // namespace
}  // namespace lbf::relay::program_id_test