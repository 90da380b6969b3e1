#include "tools/advise/probe_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::probe_plan_test {
namespace {

const std::vector<tools::ProbeCandidate> kThree{{100, 2}, {80, 4}, {120, 1}};

double cost_of(const tools::ProbePlan& plan, const std::vector<tools::ProbeCandidate>& candidates) {
  double cost = tools::probe_run_node_s(candidates[0], plan.factor);
  for (std::size_t i = 0; i < plan.candidates; ++i)
    cost += plan.repeat * tools::probe_run_node_s(candidates[i], plan.factor);
  return cost;
}

TEST(ProbePlan, TakesTheLongestSkeletonThatTheBudgetAllows) {
  const tools::ProbePlan rich = tools::plan_probe(kThree, 100, 0.1, 1000);
  EXPECT_EQ(rich.candidates, 3u);
  EXPECT_EQ(rich.factor, 20u);  // 5 s
  EXPECT_EQ(rich.repeat, 3);
  EXPECT_NEAR(rich.cost_node_s, cost_of(rich, kThree), 1e-9);
  // One run of each costs 2 (5 + 1.5) + 4 (4 + 1.5) + 6 + 1.5 = 42.5; three of them and the first: 140.5.
  EXPECT_NEAR(rich.cost_node_s, 140.5, 1e-9);
  EXPECT_EQ(tools::plan_probe(kThree, 100, 0.1, 140).factor, 50u);  // 2 s
}

TEST(ProbePlan, LeavesCandidatesOutBeforeRuns) {
  const tools::ProbePlan poor = tools::plan_probe(kThree, 100, 0.1, 40);
  EXPECT_EQ(poor.candidates, 2u);
  EXPECT_EQ(poor.repeat, 3);
  const tools::ProbePlan poorer = tools::plan_probe(kThree, 100, 0.1, 32);
  EXPECT_EQ(poorer.repeat, 2);
  for (const tools::ProbePlan& plan : {poor, poorer}) EXPECT_NEAR(plan.cost_node_s, cost_of(plan, kThree), 1e-9);
  EXPECT_LE(poorer.cost_node_s, 32);
}

TEST(ProbePlan, MakesNoSkeletonBelowTheShortestGoodOne) {
  EXPECT_EQ(tools::plan_probe(kThree, 100, 4, 140).factor, 25u);
  const tools::ProbePlan none = tools::plan_probe(kThree, 100, 4, 60);
  EXPECT_EQ(none.candidates, 0u);
  EXPECT_THAT(none.why_not, testing::HasSubstr("the budget is 60"));
  // The whole application, where it is shorter than any skeleton.
  EXPECT_EQ(tools::plan_probe(kThree, 0.2, 5, 1000).factor, 1u);
}

TEST(ProbePlan, NeedsSomethingToDecide) {
  EXPECT_THAT(tools::plan_probe({{10, 1}}, 10, 1, 1000).why_not, testing::HasSubstr("nothing to decide"));
  EXPECT_EQ(tools::plan_probe({}, 10, 1, 1000).candidates, 0u);
}

}  // namespace
}  // namespace lbf::probe_plan_test