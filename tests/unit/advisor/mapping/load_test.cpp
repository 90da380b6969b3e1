// Loads whose best spread is known.
#include "advisor/mapping/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/advisor/fixture.h"

namespace lbf::advisor::load_test {
namespace {

using Mapping = std::vector<std::uint32_t>;

engine::Target nodes_of(std::uint32_t nodes, std::uint32_t cores = 1) {
  engine::Target target;
  target.nodes = nodes;
  target.cores_per_node = cores;
  target.network = test::slow_network();
  return target;
}

CommGraph graph_with(const std::vector<Seconds>& process_s, const std::vector<test::Flow>& flows = {}) {
  CommGraphBuilder builder(static_cast<Rank>(process_s.size()));
  for (const test::Flow& flow : flows) builder.add_message(flow.from, flow.to, flow.bytes);
  for (std::size_t rank = 0; rank < process_s.size(); ++rank)
    builder.add_process_time(static_cast<Rank>(rank), process_s[rank]);
  return builder.finish();
}

TEST(Load, MattersWhereRanksShareProcessorsOrSpeedsDiffer) {
  const CommGraph uneven = graph_with({0, 1, 2, 3});
  const CommGraph even = graph_with({1, 1.005, 1, 1});
  EXPECT_TRUE(load_matters(MappingProblem(uneven, nodes_of(2), {2, 2})));
  EXPECT_FALSE(load_matters(MappingProblem(even, nodes_of(2), {2, 2})));
  EXPECT_FALSE(load_matters(MappingProblem(uneven, nodes_of(2, 2), {2, 2}))) << "a processor each";
  engine::Target mixed = nodes_of(2, 2);
  mixed.cores_of_node = {2, 2};
  mixed.speed_of_node = {1, 0.5};
  EXPECT_TRUE(load_matters(MappingProblem(uneven, mixed, {2, 2})));
}

TEST(Load, BusiestNode) {
  const CommGraph graph = graph_with({1, 2, 3, 10});
  const MappingProblem problem(graph, nodes_of(2, 2), {4, 4});
  EXPECT_DOUBLE_EQ(busiest_s(problem, Mapping{0, 0, 1, 1}), 10) << "one rank has one processor";
  EXPECT_DOUBLE_EQ(busiest_s(problem, Mapping{0, 0, 0, 0}), 10);
  engine::Target slow = nodes_of(2, 2);
  slow.speed = 0.5;
  EXPECT_DOUBLE_EQ(busiest_s(MappingProblem(graph, slow, {4, 4}), Mapping{0, 0, 0, 0}), 20);
}

TEST(Load, BalancedKeepsCapacities) {
  // 0 + 7 + 5 + 2 = 1 + 6 + 4 + 3, four ranks each.
  const CommGraph graph = graph_with({0, 1, 2, 3, 4, 5, 6, 7});
  const MappingProblem problem(graph, nodes_of(2), {4, 4});
  const Mapping mapping = balanced(problem);
  EXPECT_EQ(std::count(mapping.begin(), mapping.end(), 0U), 4);
  EXPECT_DOUBLE_EQ(busiest_s(problem, mapping), 14);
}

TEST(Load, BalancedTakesTheFasterNodeFirst) {
  const CommGraph graph = graph_with({4, 1, 1});
  engine::Target mixed = nodes_of(2);
  mixed.cores_of_node = {1, 1};
  mixed.speed_of_node = {1, 4};
  EXPECT_EQ(balanced(MappingProblem(graph, mixed, {3, 3}))[0], 1U);
}

TEST(Load, OfEquallyGoodNodesTheOneWithItsPeers) {
  // Rank 2 comes when both nodes have 5 s; it exchanges with rank 1.
  const CommGraph graph = graph_with({5, 5, 1}, {{2, 1, 100}});
  const Mapping mapping = balanced(MappingProblem(graph, nodes_of(2), {2, 2}));
  EXPECT_NE(mapping[0], mapping[1]);
  EXPECT_EQ(mapping[2], mapping[1]);
}

TEST(Load, StepsTakeFromTheBusiest) {
  const CommGraph graph = graph_with({0, 1, 2, 3, 4, 5, 6, 7});
  const MappingProblem problem(graph, nodes_of(2), {4, 4});
  Mapping mapping{0, 0, 0, 0, 1, 1, 1, 1};  // 6 and 22
  Seconds before_s = busiest_s(problem, mapping);
  std::size_t steps = 0;
  for (;; ++steps) {
    const std::vector<Step> best = balancing_steps(problem, mapping, 3);
    if (best.empty()) break;
    ASSERT_LE(best.size(), 3U);
    apply(best.front(), mapping);
    ASSERT_NEAR(busiest_s(problem, mapping), before_s + best.front().change, 1e-9);
    ASSERT_LT(best.front().change, 0);
    before_s += best.front().change;
  }
  EXPECT_GT(steps, 1U);
  EXPECT_DOUBLE_EQ(before_s, 14);
  EXPECT_EQ(std::count(mapping.begin(), mapping.end(), 0U), 4) << "full nodes exchange ranks";
}

TEST(Load, WhatAStepChangesIsTheDifference) {
  // Few different times, so that several ranks of a node are its longest.
  std::mt19937 random(1);
  std::size_t steps = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<Seconds> process_s;
    Mapping mapping;
    for (std::uint32_t rank = 0; rank < 12; ++rank) {
      process_s.push_back(static_cast<Seconds>(1 + 3 * (random() % 4)));
      mapping.push_back(rank < 4 ? 0U : static_cast<std::uint32_t>(random() % 3));
    }
    const CommGraph graph = graph_with(process_s);
    engine::Target mixed = nodes_of(3);
    mixed.cores_of_node = {3, 2, 4};
    mixed.speed_of_node = {1, 2, 0.5};
    const MappingProblem problem(graph, mixed, {12, 12, 12});
    const Seconds before_s = busiest_s(problem, mapping);
    for (const Step& step : balancing_steps(problem, mapping, 1000)) {
      Mapping after = mapping;
      apply(step, after);
      ASSERT_NEAR(busiest_s(problem, after), before_s + step.change, 1e-9) << step.rank << " and " << step.other;
      ++steps;
    }
  }
  EXPECT_GT(steps, 100U);
}

}  // namespace
}  // namespace lbf::advisor::load_test