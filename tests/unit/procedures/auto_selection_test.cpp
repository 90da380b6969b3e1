#include "spank_plugin/procedures/auto_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spank_plugin/procedures/loaded_symbols.h"

namespace lbf::procedures::auto_selection_test {
namespace {

SampleProfile profile_of(std::vector<SampledProcedure> procedures) {
  SampleProfile profile;
  profile.procedures = std::move(procedures);
  for (const SampledProcedure& procedure : profile.procedures) profile.samples += procedure.exclusive;
  return profile;
}

TEST(AutoSelection, TheProgramsOwnByTheirExclusiveShare) {
  const LoadedSymbols symbols;
  const Chosen chosen = choose_candidates(profile_of({{"main", "/opt/app", 50, 1000},
                                                      {"driver", "/opt/app", 0, 900},
                                                      {"solve(double, int)", "/opt/app", 600, 700},
                                                      {"pack", "/opt/libgrid.so.1", 100, 100},
                                                      {"rare", "/opt/app", 5, 5},
                                                      {"opal_progress", "/usr/lib/libopen-pal.so.40", 4000, 4000},
                                                      {"MPI_Test", "/usr/lib/libmpi.so.40", 900, 900},
                                                      {"(no symbol)", "", 300, 300}}),
                                          symbols);
  EXPECT_EQ(chosen.list(), "solve(double, int),pack");
  ASSERT_EQ(chosen.notes.size(), 1u);
  EXPECT_THAT(chosen.notes[0], testing::HasSubstr("of 5955 samples, 755 in the program's own procedures"));
  EXPECT_THAT(chosen.notes[0], testing::HasSubstr("solve(double, int) 79.5 %, pack 13.2 %"));
}

// What comes in its place if it is called too often: the most frequent caller, and that one's, up to main; a library's
// procedure between them is passed over, and circles end.
TEST(AutoSelection, CallersAreReady) {
  const std::string app = "/opt/app", qsort = "/usr/lib/libmpi.so.40";
  const Chosen chosen =
      choose_candidates(profile_of({{"leaf", app, 500, 500, {{"level", app, 300}, {"other", app, 200}}},
                                    {"level", app, 10, 310, {{"driver", app, 310}}},
                                    {"driver", app, 1, 400, {{"main", app, 400}}},
                                    {"main", app, 5, 900},
                                    {"other", app, 2, 200},
                                    {"compare", app, 200, 200, {{"sort", qsort, 200}}},
                                    {"sort", qsort, 9, 209, {{"order", app, 209}}},
                                    {"order", app, 3, 212, {{"main", app, 212}}},
                                    {"even", app, 90, 180, {{"odd", app, 170}}},
                                    {"odd", app, 80, 175, {{"even", app, 170}, {"driver", app, 5}}}}),
                        LoadedSymbols());
  EXPECT_THAT(
      chosen.chains,
      testing::ElementsAre(testing::ElementsAre("leaf", "level", "driver"), testing::ElementsAre("compare", "order"),
                           testing::ElementsAre("even", "odd"), testing::ElementsAre("odd", "even")));
  EXPECT_EQ(chosen.list(), "leaf,level,driver,compare,order,even,odd");
}

TEST(AutoSelection, ChainsAreShort) {
  std::vector<SampledProcedure> nested;
  for (int i = 0; i < 9; ++i) {
    nested.push_back({"p" + std::to_string(i),
                      "/opt/app",
                      i == 0 ? 100u : 0u,
                      100,
                      {{"p" + std::to_string(i + 1), "/opt/app", 100}}});
  }
  const Chosen chosen = choose_candidates(profile_of(nested), LoadedSymbols());
  EXPECT_THAT(chosen.chains, testing::ElementsAre(testing::ElementsAre("p0", "p1", "p2", "p3", "p4")));
}

TEST(AutoSelection, AtMostSoMany) {
  std::vector<SampledProcedure> many;
  for (int i = 0; i < 9; ++i) many.push_back({"p" + std::to_string(i), "/opt/app", 100, 100});
  const Chosen chosen = choose_candidates(profile_of(many), LoadedSymbols());
  EXPECT_EQ(chosen.list(), "p0,p1,p2,p3,p4");
  EXPECT_EQ(chosen.chains.size(), 9u) << "more are candidates for the list of all ranks";
  EXPECT_EQ(chosen.samples.size(), 9u);
  EXPECT_EQ(chosen.own_samples, 900u);
}

TEST(AutoSelection, NothingIsWorthIt) {
  const Chosen chosen = choose_candidates(profile_of({{"main", "/opt/app", 500, 500}}), LoadedSymbols());
  EXPECT_EQ(chosen.list(), "");
  EXPECT_THAT(chosen.notes, testing::ElementsAre(testing::HasSubstr("no procedure of the program is worth measuring")));
  EXPECT_EQ(choose_candidates({}, LoadedSymbols()).list(), "");
}

}  // namespace
}  // namespace lbf::procedures::auto_selection_test