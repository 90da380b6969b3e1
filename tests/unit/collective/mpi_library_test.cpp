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
      {"Open MPI v6.0.0rc2, package: Open MPI", engine::MpiLibrary::kOpenMpi6, true},
      {"Open MPI v6.1.0", engine::MpiLibrary::kOpenMpi6, false},
      {"MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022", engine::MpiLibrary::kMpich4, true},
      {"MPICH Version:      4.2.1", engine::MpiLibrary::kMpich4, false},
      {"MPICH Version:      3.4.3", engine::MpiLibrary::kMpich4, false},
      {"MPICH Version:      5.0.1", engine::MpiLibrary::kMpich5, true},
      {"MPICH Version:      5.1.0a1", engine::MpiLibrary::kMpich5, false},
      {"MPI VERSION    : CRAY MPICH version 8.1.28.29 (ANL base 3.4a2)", engine::MpiLibrary::kMpich4, false},
      {"MVAPICH2 Version      :\t2.3.7", engine::MpiLibrary::kMpich4, false},
      {"Intel(R) MPI Library 2021.10 for Linux* OS", engine::MpiLibrary::kMpich4, false},
      {"MPICH family by self-test: Some MPI 4.0", engine::MpiLibrary::kMpich4, false},
      {"MPICH family by self-test: Not Open MPI v4.1.4", engine::MpiLibrary::kMpich4, false},
      {"Open MPI family by self-test: Open MPI v7.0.0", engine::MpiLibrary::kOpenMpi6, false},
      {"Open MPI family by self-test: Some MPI v4.1.4", engine::MpiLibrary::kOpenMpi4, false},
      {"Open MPI", engine::MpiLibrary::kOpenMpi4, false},
      {"Open MPI v99999999999999999999.1", engine::MpiLibrary::kOpenMpi6, false},
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

std::string note_of(engine::MpiLibrary library, std::vector<std::string> environment) {
  return engine::mpi_settings_note(engine::mpi_settings(library, environment));
}

TEST(MpiLibrary, SettingsThatAreModelledAndSettingsThatAreNot) {
  constexpr engine::MpiLibrary kOpenMpi = engine::MpiLibrary::kOpenMpi5;
  const std::string dynamic = "OMPI_MCA_coll_tuned_use_dynamic_rules=1";
  const std::string ring = "OMPI_MCA_coll_tuned_allreduce_algorithm=4";
  EXPECT_EQ(note_of(kOpenMpi, {ring, dynamic}), "the run's environment sets " + ring + ": followed");
  EXPECT_EQ(note_of(kOpenMpi, {ring}), "") << "has no effect";
  EXPECT_EQ(note_of(kOpenMpi, {dynamic, "OMPI_MCA_coll_tuned_allreduce_algorithm=ignore",
                               "OMPI_MCA_coll_hcoll_enable=0", "OMPI_MCA_coll_base_verbose=10"}),
            "");
  EXPECT_EQ(
      note_of(kOpenMpi, {dynamic, ring, "OMPI_MCA_coll_tuned_dynamic_rules_filename=/etc/rules"}),
      "the run's environment sets " + ring +
          ": followed; OMPI_MCA_coll_tuned_dynamic_rules_filename=/etc/rules: not modelled, all collectives count "
          "as approximated");
  for (const char* const word :
       {"OMPI_MCA_coll=^tuned", "OMPI_MCA_coll=basic,self", "OMPI_MCA_coll_ucc_enable=1",
        "OMPI_MCA_coll_tuned_bcast_algorithm=2", "OMPI_MCA_coll_tuned_bcast_algorithm=-1",
        "OMPI_MCA_coll_tuned_bcast_algorithm_segmentsize=65536", "OMPI_MCA_coll_tuned_allgather_algorithm=8"}) {
    EXPECT_EQ(engine::mpi_settings(kOpenMpi, std::vector<std::string>{dynamic, word}).ignored.size(), 1U) << word;
  }
  EXPECT_TRUE(engine::mpi_settings(kOpenMpi, std::vector<std::string>{"OMPI_MCA_coll=^ucc,han"}).without_han);
  EXPECT_FALSE(engine::mpi_settings(kOpenMpi, std::vector<std::string>{"OMPI_MCA_coll=^ucc"}).without_han);
  EXPECT_TRUE(engine::mpi_settings(kOpenMpi, std::vector<std::string>{"OMPI_MCA_coll_han_priority=0"}).without_han);
  EXPECT_EQ(note_of(engine::MpiLibrary::kOpenMpi4, {"OMPI_MCA_coll=^han"}), "") << "4.1 has it off";
  // 6.0's bruck has a radix of its own.
  EXPECT_NE(note_of(engine::MpiLibrary::kOpenMpi6, {dynamic, "OMPI_MCA_coll_tuned_allgather_algorithm=bruck"}),
            note_of(kOpenMpi, {dynamic, "OMPI_MCA_coll_tuned_allgather_algorithm=bruck"}));

  constexpr engine::MpiLibrary kMpich = engine::MpiLibrary::kMpich5;
  EXPECT_EQ(
      note_of(kMpich, {"MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial", dynamic, "MPIR_CVAR_REDUCE_INTRA_ALGORITHM=auto"}),
      "the run's environment sets MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial: followed");
  EXPECT_EQ(note_of(kMpich, {"MPICH_COLL_SYNC=1", "MPIR_CVAR_BCAST_INTRA_ALGORITHM=tree"}),
            "the run's environment sets MPICH_COLL_SYNC=1, MPIR_CVAR_BCAST_INTRA_ALGORITHM=tree: not modelled, all "
            "collectives count as approximated");
  EXPECT_EQ(note_of(kOpenMpi, {"MPICH_COLL_SYNC=1"}), "") << "of another library";
}

TEST(MpiLibrary, HostileSettingsArePrintableAndFew) {
  const std::string note = note_of(engine::MpiLibrary::kOpenMpi5,
                                   std::vector<std::string>(30, "OMPI_MCA_coll_x=" + std::string(500, '\x1b')));
  EXPECT_LT(note.size(), 450U);
  for (const char c : note) EXPECT_TRUE(c >= ' ' && c <= '~');
  EXPECT_NE(note.find("and 26 more"), std::string::npos) << note;
}

TEST(MpiLibrary, SettingsThatAreNotModelledAreNotExact) {
  const std::vector<std::string> ignored{"OMPI_MCA_coll=^tuned"};
  engine::MpiSetup setup = engine::mpi_setup("Open MPI v5.0.7", {}, ignored);
  EXPECT_TRUE(setup.rules.exact);
  EXPECT_FALSE(setup.is_exact());
  EXPECT_EQ(engine::mpi_note(setup, "Open MPI v5.0.7"), engine::mpi_settings_note(setup.settings));
  engine::replace_library(setup, engine::MpiLibrary::kOpenMpi5);
  EXPECT_TRUE(setup.is_exact());
}

TEST(MpiLibrary, ATraceThatDoesNotSayIsTakenAsOpenMpi) {
  EXPECT_TRUE(engine::mpi_setup("", {}).rules.exact);
  EXPECT_FALSE(engine::mpi_setup("FG-MPI", {}).rules.exact);
}

}  // namespace
}  // namespace lbf::mpi_library_test