// Which rules a library's own name leads to.
#include "predictor/engine/match/mpi_library.h"

#include <gtest/gtest.h>

namespace lbf {
namespace {

TEST(MpiLibrary, FromTheVersionText) {
  struct Case {
    const char* text;
    MpiLibrary library;
    bool exact;
  };
  const Case cases[] = {
      {"Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022",
       MpiLibrary::kOpenMpi4, true},
      {"Open MPI v4.1.0rc1", MpiLibrary::kOpenMpi4, true},
      {"Open MPI v5.0.10, package: Open MPI", MpiLibrary::kOpenMpi5, true},
      {"Open MPI v4.0.7", MpiLibrary::kOpenMpi4, false},
      {"Open MPI v3.1.6", MpiLibrary::kOpenMpi4, false},
      {"Open MPI v5.1.0a1", MpiLibrary::kOpenMpi5, false},
      {"Open MPI v6.0.0", MpiLibrary::kOpenMpi5, false},
      {"MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022", MpiLibrary::kMpich4, true},
      {"MPICH Version:      4.2.1", MpiLibrary::kMpich4, false},
      {"MPICH Version:      3.4.3", MpiLibrary::kMpich4, false},
      {"MPI VERSION    : CRAY MPICH version 8.1.28.29 (ANL base 3.4a2)", MpiLibrary::kMpich4, false},
      {"MVAPICH2 Version      :\t2.3.7", MpiLibrary::kMpich4, false},
      {"Intel(R) MPI Library 2021.10 for Linux* OS", MpiLibrary::kMpich4, false},
      {"Open MPI", MpiLibrary::kOpenMpi4, false},
      {"Open MPI v99999999999999999999.1", MpiLibrary::kOpenMpi5, false},
      {"FG-MPI", MpiLibrary::kOpenMpi4, false},
      {"", MpiLibrary::kOpenMpi4, false},
  };
  for (const Case& c : cases) {
    const MpiRules rules = mpi_rules_of(c.text);
    EXPECT_EQ(rules.library, c.library) << c.text;
    EXPECT_EQ(rules.exact, c.exact) << c.text;
    EXPECT_EQ(mpi_rules_note(rules, c.text).empty(), c.exact) << c.text;
  }
}

TEST(MpiLibrary, NamesThatCommandsTake) {
  for (int i = 0; i < kMpiLibraryCount; ++i) {
    const auto library = static_cast<MpiLibrary>(i);
    EXPECT_EQ(mpi_library_named(mpi_library_name(library)), library);
  }
  EXPECT_FALSE(mpi_library_named("openmpi"));
}

TEST(MpiLibrary, TheNoteIsOneShortPrintableLine) {
  const std::string note = mpi_rules_note({MpiLibrary::kMpich4, false}, std::string(500, '\x1b') + "\nmore");
  EXPECT_LT(note.size(), 250U);
  for (const char c : note) EXPECT_TRUE(c >= ' ' && c <= '~');
  EXPECT_NE(note.find("mpich-4.0"), std::string::npos);
}

TEST(MpiLibrary, ATraceThatDoesNotSayIsTakenAsOpenMpi) {
  EXPECT_TRUE(mpi_setup("", {}).rules.exact);
  EXPECT_FALSE(mpi_setup("FG-MPI", {}).rules.exact);
}

}  // namespace
}  // namespace lbf
