// Which points are drawn, which targets are on the front, and round marks on an axis.
#include "report/curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/report/fixture.h"

namespace lbf::report::curves_test {
namespace {

using ::testing::ElementsAre;

TargetPrediction target(std::uint32_t nodes, const std::string& network, std::optional<Seconds> seconds) {
  TargetPrediction made;
  made.nodes = nodes;
  made.network = network;
  made.predicted_s = seconds;
  made.kind = "LBF";
  return made;
}

TEST(Curves, TheNetworkThatRanIsFirstAndNodesAscend) {
  const Step step = fixture("normal.json")[0];
  const std::vector<Curve> curves = curves_of(step);
  ASSERT_EQ(curves.size(), 2U);
  EXPECT_EQ(curves[0].name, "lan-100");
  EXPECT_TRUE(curves[0].ran);
  EXPECT_FALSE(curves[1].ran);
  ASSERT_EQ(curves[0].points.size(), 3U);
  EXPECT_EQ(curves[0].points[0].count, 1U);
  EXPECT_EQ(curves[0].points[2].count, 4U);
}

TEST(Curves, TheFastestOfANodeCountAndNothingUnknown) {
  Step step;
  step.predictions = {target(2, "a", 9.0), target(2, "a", 7.0), target(4, "a", std::nullopt), target(2, "b", 8.0)};
  step.predictions[0].kind = "self";
  step.predictions.push_back(target(1, "a", 3.0));
  step.predictions.back().nodes.reset();
  const std::vector<Curve> curves = curves_of(step);
  ASSERT_EQ(curves.size(), 2U);
  ASSERT_EQ(curves[0].points.size(), 1U);
  EXPECT_EQ(curves[0].points[0].target, &step.predictions[1]);
  EXPECT_TRUE(curves_of(Step{}).empty());
}

TEST(Costs, TheParetoFront) {
  Step step;
  // 10 s on 1 node; 6 s on 2 (more node-seconds); 6 s on 4 (beaten); 20 s on 1 (beaten).
  step.predictions = {target(1, "a", 20.0), target(4, "a", 6.0), target(2, "a", 6.0), target(1, "a", 10.0)};
  step.predictions[0].kind = "self";
  step.predictions.push_back(target(2, "zero", 1.0));  // a bound is on no front
  std::vector<std::pair<double, bool>> seen;
  for (const TargetCost& cost : costs_of(step)) seen.emplace_back(cost.node_hours * 3600, cost.on_front);
  EXPECT_THAT(
      seen, ElementsAre(std::pair(12.0, true), std::pair(24.0, false), std::pair(10.0, true), std::pair(20.0, false)));
}

TEST(AxisTicks, RoundAndAroundEverything) {
  EXPECT_THAT(axis_ticks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  for (const auto& [low, high] :
       std::vector<std::pair<double, double>>{{0, 0.003}, {97, 101}, {0, 1e7}, {5, 5}, {0, 0}}) {
    const std::vector<double> ticks = axis_ticks(low, high, 5);
    ASSERT_GE(ticks.size(), 2U) << low << ' ' << high;
    EXPECT_LE(ticks.size(), 8U) << low << ' ' << high;
    EXPECT_LE(ticks.front(), low);
    EXPECT_GE(ticks.back(), high * (1 - 1e-9));
    EXPECT_TRUE(std::is_sorted(ticks.begin(), ticks.end()));
  }
}

}  // namespace
}  // namespace lbf::report::curves_test