// Which rules a library's own name leads to.
#include "predictor/engine/match/mpi_library.h"

#include <gtest/gtest.h>

namespace lbf::mpi_library_test {
namespace {

TEST(MpiLibrary, FromTheVersionText) {
  struct Case {
    const char* text;
    engine::MpiLibrary library;
    bool exact;
  };
  const Case cases[] = {
      {"Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022",
       engine::MpiLibrary::kOpenMpi4, true},
      {"Open MPI v4.1.0rc1", engine::MpiLibrary::kOpenMpi4, true},
      {"Open MPI v5.0.10, package: Open MPI", engine::MpiLibrary::kOpenMpi5, true},
      {"Open MPI v4.0.7", engine::MpiLibrary::kOpenMpi4, false},
      {"Open MPI v3.1.6", engine::MpiLibrary::kOpenMpi4, false},
      {"Open MPI v5.1.0a1", engine::MpiLibrary::kOpenMpi5, false},
      {"Open MPI v6.0.0", engine::MpiLibrary::kOpenMpi5, false},
      {"MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022", engine::MpiLibrary::kMpich4, true},
      {"MPICH Version:      4.2.1", engine::MpiLibrary::kMpich4, false},
      {"MPICH Version:      3.4.3", engine::MpiLibrary::kMpich4, false},
      {"MPI VERSION    : CRAY MPICH version 8.1.28.29 (ANL base 3.4a2)", engine::MpiLibrary::kMpich4, false},
      {"MVAPICH2 Version      :\t2.3.7", engine::MpiLibrary::kMpich4, false},
      {"Intel(R) MPI Library 2021.10 for Linux* OS", engine::MpiLibrary::kMpich4, false},
      {"MPICH family by self-test: Some MPI 4.0", engine::MpiLibrary::kMpich4, false},
      {"MPICH family by self-test: Not Open MPI v4.1.4", engine::MpiLibrary::kMpich4, false},
      {"Open MPI family by self-test: Open MPI v7.0.0", engine::MpiLibrary::kOpenMpi5, false},
      {"Open MPI family by self-test: Some MPI v4.1.4", engine::MpiLibrary::kOpenMpi4, false},
      {"Open MPI", engine::MpiLibrary::kOpenMpi4, false},
      {"Open MPI v99999999999999999999.1", engine::MpiLibrary::kOpenMpi5, false},
      {"FG-MPI", engine::MpiLibrary::kOpenMpi4, false},
      {"", engine::MpiLibrary::kOpenMpi4, false},
  };
  for (const Case& c : cases) {
    const engine::MpiRules rules = engine::mpi_rules_of(c.text);
    EXPECT_EQ(rules.library, c.library) << c.text;
    EXPECT_EQ(rules.exact, c.exact) << c.text;
    EXPECT_EQ(engine::mpi_rules_note(rules, c.text).empty(), c.exact) << c.text;
  }
}

TEST(MpiLibrary, NamesThatCommandsTake) {
  for (int i = 0; i < engine::kMpiLibraryCount; ++i) {
    const auto library = static_cast<engine::MpiLibrary>(i);
    EXPECT_EQ(engine::mpi_library_named(engine::mpi_library_name(library)), library);
  }
  EXPECT_FALSE(engine::mpi_library_named("openmpi"));
}

TEST(MpiLibrary, TheNoteIsOneShortPrintableLine) {
  const std::string note =
      engine::mpi_rules_note({engine::MpiLibrary::kMpich4, false}, std::string(500, '\x1b') + "\nmore");
  EXPECT_LT(note.size(), 250U);
  for (const char c : note) EXPECT_TRUE(c >= ' ' && c <= '~');
  EXPECT_NE(note.find("mpich-4.0"), std::string::npos);
}

TEST(MpiLibrary, TheNoteSaysWhatTheSelfTestTold) {
  const char* const version = "MPICH family by self-test: Intel(R) MPI Library 2021.11 for Linux* OS";
  EXPECT_EQ(
      engine::mpi_rules_note(engine::mpi_rules_of(version), version),
      "\"Intel(R) MPI Library 2021.11 for Linux* OS\": family by self-test, collectives' algorithms unknown: those of "
      "mpich-4.0 were taken, and all collectives count as approximated");
}

TEST(MpiLibrary, ATraceThatDoesNotSayIsTakenAsOpenMpi) {
  EXPECT_TRUE(engine::mpi_setup("", {}).rules.exact);
  EXPECT_FALSE(engine::mpi_setup("FG-MPI", {}).rules.exact);
}

}  // namespace
}  // namespace lbf::mpi_library_test