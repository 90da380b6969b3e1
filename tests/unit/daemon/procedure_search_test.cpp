// One list of procedures for all ranks, from what each of them says and the critical path.
#include "predictor/daemon/steps/procedure_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::procedure_search_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Names = std::vector<std::string>;

class ProcedureSearchTest : public testing::Test {
 protected:
  ProcedureSearchTest() {
    evidence_.now_s = 100;
    evidence_.ranks = 2;
    evidence_.cost_limit = 0.01;
    evidence_.known_cost = [this](const std::string& name) {
      const auto found = cost_.find(name);
      return found == cost_.end() ? std::nullopt : std::optional(found->second);
    };
  }
  void tell(std::int32_t rank, const std::vector<daemon::ProcedureCandidate>& candidates, std::uint64_t own = 100) {
    if (candidates.empty()) search_.take_candidate(rank, 0, 0, own, {});
    for (std::size_t i = 0; i < candidates.size(); ++i)
      search_.take_candidate(rank, i, candidates.size(), own, candidates[i]);
  }
  // The path runs through rank 0 and 1 for so long.
  void path(Seconds zero_s, Seconds one_s) {
    ranks_ = {{0, zero_s}, {1, one_s}};
    evidence_.path_of_rank = ranks_;
    evidence_.path_s = zero_s + one_s;
  }
  Names decided() { return search_.decide(evidence_) ? search_.list().names : Names{"(nothing new)"}; }

  daemon::ProcedureSearch search_;
  daemon::ProcedureSearch::Evidence evidence_;
  std::map<std::string, double> cost_;
  std::vector<std::pair<std::int32_t, Seconds>> ranks_;
};

TEST_F(ProcedureSearchTest, RanksWithOtherWorkEndOnOneListByTheCriticalPath) {
  tell(0, {{{"send_work"}, 80}, {{"both"}, 20}});
  EXPECT_THAT(decided(), ElementsAre("(nothing new)")) << "rank 1 has said nothing yet";
  tell(1, {{{"receive_work"}, 70}, {{"both"}, 30}});
  path(9, 1);
  // send_work .9 * .8, both .9 * .2 + .1 * .3, receive_work .1 * .7
  EXPECT_THAT(decided(), ElementsAre("send_work", "both", "receive_work"));
  EXPECT_EQ(search_.list().generation, 1u);
  EXPECT_THAT(search_.list().text, HasSubstr("send_work 72.0 %, both 21.0 %, receive_work 7.0 %"));
  EXPECT_THAT(decided(), ElementsAre("(nothing new)"));
}

TEST_F(ProcedureSearchTest, WithoutAPathAllRanksCountAlike) {
  tell(0, {{{"a"}, 40}});
  tell(1, {{{"b"}, 60}});
  EXPECT_THAT(decided(), ElementsAre("b", "a"));
}

TEST_F(ProcedureSearchTest, OffThePathIsNotMeasured) {
  tell(0, {{{"a"}, 90}});
  tell(1, {{{"b"}, 90}});
  path(1000, 1);
  EXPECT_THAT(decided(), ElementsAre("a"));
}

TEST_F(ProcedureSearchTest, AWholeListIsNotWaitedForForEver) {
  tell(0, {{{"a"}, 90}});
  EXPECT_THAT(decided(), ElementsAre("(nothing new)"));
  evidence_.now_s += daemon::ProcedureSearch::kPatienceS;
  EXPECT_THAT(decided(), ElementsAre("a"));
  tell(1, {{{"b"}, 90}});
  EXPECT_THAT(decided(), ElementsAre("a", "b")) << "who is late is heard, too";
}

TEST_F(ProcedureSearchTest, TheOrderOfRecordsDoesNotCount) {
  tell(0, {{{"x"}, 30}, {{"y"}, 30}, {{"z"}, 30}});
  tell(1, {{{"y"}, 30}, {{"z"}, 30}, {{"x"}, 30}});
  const Names one = decided();
  daemon::ProcedureSearch other;
  other.take_candidate(1, 2, 3, 100, {{"x"}, 30});
  other.take_candidate(1, 0, 3, 100, {{"y"}, 30});
  other.take_candidate(0, 1, 3, 100, {{"y"}, 30});
  other.take_candidate(0, 2, 3, 100, {{"z"}, 30});
  other.take_candidate(1, 1, 3, 100, {{"z"}, 30});
  other.take_candidate(0, 0, 3, 100, {{"x"}, 30});
  ASSERT_TRUE(other.decide(evidence_));
  EXPECT_EQ(other.list().names, one);
}

TEST_F(ProcedureSearchTest, WhatAnyRankSwitchedOffIsReplacedByItsCallerForAll) {
  tell(0, {{{"leaf", "middle", "top"}, 60}});
  tell(1, {{{"leaf", "other"}, 20}, {{"b"}, 30}});
  EXPECT_THAT(decided(), ElementsAre("leaf", "b")) << ".4 and .15: ranks count alike";
  search_.take_off("leaf");
  EXPECT_THAT(decided(), ElementsAre("middle", "b")) << "the caller of the rank where it is most";
  EXPECT_THAT(search_.list().text, HasSubstr("middle 40.0 % (calls leaf)"));
  search_.take_off("middle");
  search_.take_off("top");
  EXPECT_THAT(decided(), ElementsAre("b"));
  EXPECT_EQ(search_.list().generation, 3u);
}

TEST_F(ProcedureSearchTest, WhatIsKnownToCostTooMuchIsNotTried) {
  cost_ = {{"dear", 0.02}, {"half", 0.006}, {"rest", 0.006}};
  tell(0, {{{"dear", "caller"}, 50}, {{"half"}, 30}, {{"rest"}, 20}});
  tell(1, {});
  EXPECT_THAT(decided(), ElementsAre("caller", "half")) << "its caller instead; not more than the limit all together";
}

// However low the limit and however much of the time it is: what it costs is known when it was tried.
TEST_F(ProcedureSearchTest, WhatNobodyKnowsTheCostOfIsTried) {
  evidence_.cost_limit = 1e-5;
  cost_ = {{"known", 2e-5}};
  tell(0, {{{"hot"}, 80}, {{"known"}, 12}, {{"other"}, 8}});
  tell(1, {{{"hot"}, 90}});
  EXPECT_THAT(decided(), ElementsAre("hot", "other"));
  cost_["hot"] = 9e-6;
  cost_["other"] = 2e-6;
  search_.take_off("known");
  EXPECT_THAT(decided(), ElementsAre("hot")) << "as soon as it is known it counts";
}

// Hollingsworth and Miller: what is tested and found wrong makes room for the next hypothesis.
TEST_F(ProcedureSearchTest, WhatThePathHardlyRunsThroughMakesRoom) {
  std::vector<daemon::ProcedureCandidate> many;
  for (int i = 0; i < 6; ++i) many.push_back({{"p" + std::to_string(i)}, static_cast<std::uint64_t>(20 - i)});
  tell(0, many);
  tell(1, {});
  EXPECT_THAT(decided(), ElementsAre("p0", "p1", "p2", "p3", "p4"));
  for (int i = 0; i < 5; ++i) evidence_.path_of_procedure["p" + std::to_string(i)] = i == 2 ? 0.01 : 1;
  evidence_.path_s = daemon::ProcedureSearch::kTestS - 1;
  evidence_.now_s += 2;
  EXPECT_THAT(decided(), ElementsAre("(nothing new)")) << "too early to tell";
  evidence_.path_s = daemon::ProcedureSearch::kTestS + 1;
  evidence_.now_s += 2;
  EXPECT_THAT(decided(), ElementsAre("p0", "p1", "p3", "p4", "p5"));
  evidence_.now_s += 20;
  EXPECT_THAT(decided(), ElementsAre("(nothing new)")) << "and it does not come back";
}

TEST_F(ProcedureSearchTest, WhatIsWrongStaysWhereNobodyWantsItsPlace) {
  tell(0, {{{"a"}, 50}, {{"b"}, 30}});
  tell(1, {});
  EXPECT_THAT(decided(), ElementsAre("a", "b"));
  evidence_.path_of_procedure = {{"a", 9}, {"b", 0}};
  evidence_.path_s = 20;
  evidence_.now_s += 30;
  EXPECT_THAT(decided(), ElementsAre("(nothing new)"));
}

TEST_F(ProcedureSearchTest, AfterARestartItGoesOnWithWhatTheRanksHave) {
  tell(0, {{{"a"}, 50}});
  search_.take_list({7, {"a", "b"}, "from before"}, 100);
  EXPECT_TRUE(search_.is_active());
  search_.take_off("a");
  tell(1, {{{"b"}, 10}});
  EXPECT_THAT(decided(), ElementsAre("b"));
  EXPECT_EQ(search_.list().generation, 8u);
}

TEST_F(ProcedureSearchTest, HostileRanksChangeNothing) {
  search_.take_candidate(0, 5, 2, 10, {{"number beyond"}, 5});
  search_.take_candidate(0, 0, ~std::uint64_t{0}, 10, {{std::string(5000, 'x')}, 5});
  search_.take_candidate(2, 0, 1, 0, {{"no samples"}, 5});
  search_.take_candidate(1, 0, 1, 10, {{"more than all"}, 500});
  evidence_.now_s += 10;
  (void)search_.decide(evidence_);
  evidence_.now_s += 10;
  EXPECT_THAT(decided(), testing::AnyOf(ElementsAre("more than all"), ElementsAre("(nothing new)")));
  EXPECT_THAT(search_.list().names, ElementsAre("more than all"));
}

}  // namespace
}  // namespace lbf::procedure_search_test