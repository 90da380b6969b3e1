// Mappings whose best is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "advisor/mapping/local_search.h"
#include "advisor/mapping/partition.h"
#include "tests/unit/advisor/fixture.h"

namespace lbf::advisor::mapping_test {
namespace {

using Mapping = std::vector<std::uint32_t>;

engine::Target nodes_of(std::uint32_t nodes) {
  engine::Target target;
  target.nodes = nodes;
  target.network = test::slow_network();
  return target;
}

// Groups of `size` ranks that exchange much within and little with the next group; rank r is in group r %
// groups, so that blocks are the worst there is.
CommGraph scattered_groups(Rank groups, Rank size) {
  std::vector<test::Flow> flows;
  for (Rank group = 0; group < groups; ++group) {
    for (Rank a = 0; a < size; ++a) {
      for (Rank b = 0; b < size; ++b) {
        if (a != b) flows.push_back({a * groups + group, b * groups + group, 1000});
      }
    }
    flows.push_back({group, (group + 1) % groups, 1});
  }
  return test::graph_of(groups * size, flows);
}

bool keeps_groups_together(const Mapping& mapping, Rank groups) {
  for (std::size_t rank = static_cast<std::size_t>(groups); rank < mapping.size(); ++rank) {
    if (mapping[rank] != mapping[rank - static_cast<std::size_t>(groups)]) return false;
  }
  return true;
}

TEST(MappingProblem, CostIsWhatTheMessagesTake) {
  // 0 -> 1: two messages of 500 bytes, 1.5 s each between nodes; 1 -> 2: one of 1000 bytes, 2 s.
  const CommGraph graph = test::graph_of(3, {{0, 1, 500}, {0, 1, 500}, {1, 2, 1000}});
  const MappingProblem problem(graph, nodes_of(2), {3, 3});
  EXPECT_NEAR(problem.cost(Mapping{0, 0, 0}), 0, 1e-9);
  EXPECT_NEAR(problem.cost(Mapping{0, 1, 1}), 3, 1e-9);
  EXPECT_NEAR(problem.cost(Mapping{0, 0, 1}), 2, 1e-9);
  EXPECT_NEAR(problem.cost(Mapping{1, 0, 1}), 5, 1e-9);
}

TEST(MappingProblem, OnANetworkWithoutTimesTheCutStillCounts) {
  const CommGraph graph = test::graph_of(3, {{0, 1, 500}, {1, 2, 1000}});
  engine::Target target = nodes_of(2);
  target.network = std::make_shared<const engine::Network>(engine::Network::zero());
  const MappingProblem problem(graph, target, {3, 3});
  EXPECT_LT(problem.cost(Mapping{0, 1, 1}), problem.cost(Mapping{0, 0, 1}));
}

TEST(MappingProblem, Uniform) {
  std::vector<test::Flow> all;
  for (Rank a = 0; a < 4; ++a) {
    for (Rank b = 0; b < 4; ++b) all.push_back({a, b, 10});
  }
  EXPECT_TRUE(MappingProblem(test::graph_of(4, all), nodes_of(2), {2, 2}).is_uniform());
  EXPECT_TRUE(MappingProblem(test::graph_of(4, {}), nodes_of(2), {2, 2}).is_uniform());
  all.push_back({0, 1, 100});
  EXPECT_FALSE(MappingProblem(test::graph_of(4, all), nodes_of(2), {2, 2}).is_uniform());
  EXPECT_FALSE(MappingProblem(test::graph_of(4, {{0, 1, 10}}), nodes_of(2), {2, 2}).is_uniform());
}

TEST(Partition, FindsScatteredGroups) {
  for (const auto& [groups, size] : {std::pair<Rank, Rank>{2, 2}, {4, 4}, {8, 8}, {5, 3}}) {
    const CommGraph graph = scattered_groups(groups, size);
    const MappingProblem problem(graph, nodes_of(static_cast<std::uint32_t>(groups)),
                                 Mapping(static_cast<std::size_t>(groups), static_cast<std::uint32_t>(size)));
    Result<Mapping> mapping = partition(problem);
    ASSERT_TRUE(mapping.ok()) << mapping.error().message;
    improve(problem, *mapping);
    EXPECT_TRUE(keeps_groups_together(*mapping, groups)) << groups << " x " << size;
  }
}

TEST(Partition, IsTheSameWhateverWasMappedBefore) {
  const CommGraph graph = scattered_groups(8, 4);
  const MappingProblem problem(graph, nodes_of(8), Mapping(8, 4));
  const Mapping first = *partition(problem);
  const CommGraph other = scattered_groups(3, 5);
  (void)partition(MappingProblem(other, nodes_of(3), Mapping(3, 5)));
  EXPECT_EQ(*partition(problem), first);
}

// Two leaf switches of two nodes: four groups, of which 0 and 1, and 2 and 3, exchange more with each other
// than with the rest, belong below one switch each.
TEST(Partition, FarNodesGetWhatExchangesLittle) {
  const std::string conf = "SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n[3-4]\nSwitchName=top Switches=s[0-1]\n";
  engine::Target target;
  target.nodes = 4;
  target.topology = std::make_shared<const engine::Topology>(*engine::Topology::parse(conf, "topology.conf"));
  target.topology_node_of_node = {0, 1, 2, 3};
  target.network = test::network(
      "name = \"tree\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 0.0]]\n[[path]]\nlocality = "
      "\"hop:1\"\n"
      "table = [[0, 10.0]]\n[[path]]\nlocality = \"hop:2\"\ntable = [[0, 100.0]]\n");
  std::vector<test::Flow> flows;
  const auto exchange = [&](Rank a, Rank b, int times) {
    for (int i = 0; i < times; ++i) flows.push_back({a, b, 100});
  };
  // Groups (0, 4), (1, 5), (2, 6), (3, 7); (0, 4) with (2, 6) and (1, 5) with (3, 7).
  for (Rank group = 0; group < 4; ++group) exchange(group, group + 4, 100);
  exchange(0, 2, 10);
  exchange(1, 3, 10);
  exchange(0, 1, 1);
  const CommGraph graph = test::graph_of(8, flows);
  const MappingProblem problem(graph, target, {2, 2, 2, 2});
  Mapping mapping = *partition(problem);
  improve(problem, mapping);
  EXPECT_TRUE(keeps_groups_together(mapping, 4));
  EXPECT_EQ(mapping[0] / 2, mapping[2] / 2) << testing::PrintToString(mapping);
  EXPECT_EQ(mapping[1] / 2, mapping[3] / 2) << testing::PrintToString(mapping);
}

TEST(LocalSearch, DescendsToTheBestOfASmallProblem) {
  // Every mapping of 6 ranks to 2 nodes of 3 is looked at; the search must end within reach of the best from
  // any start, and at it from most.
  std::mt19937 random(1);
  std::uint32_t at_best = 0;
  std::uint32_t all = 0;
  for (int graph_number = 0; graph_number < 40; ++graph_number) {
    std::vector<test::Flow> flows;
    for (Rank a = 0; a < 6; ++a) {
      for (Rank b = a + 1; b < 6; ++b) flows.push_back({a, b, random() % 5000});
    }
    const CommGraph graph = test::graph_of(6, flows);
    const MappingProblem problem(graph, nodes_of(2), {3, 3});
    Mapping order{0, 0, 0, 1, 1, 1};
    double best = 1e9;
    do {
      best = std::min(best, problem.cost(order));
    } while (std::next_permutation(order.begin(), order.end()));
    Mapping start{0, 0, 0, 1, 1, 1};
    do {
      Mapping mapping = start;
      const double cost = improve(problem, mapping);
      EXPECT_LE(cost, problem.cost(start) + 1e-9);
      EXPECT_DOUBLE_EQ(cost, problem.cost(mapping));
      EXPECT_EQ(std::count(mapping.begin(), mapping.end(), 0U), 3);
      ++all;
      if (cost <= best + 1e-9) ++at_best;
    } while (std::next_permutation(start.begin(), start.end()));
  }
  EXPECT_GT(at_best, all * 9 / 10) << all;
}

// No single exchange is better, two together are: a descent alone stays where it is.
TEST(LocalSearch, GoesThroughWorseOnesToABetterOne) {
  std::mt19937 random(3);
  std::uint32_t found = 0;
  for (int graph_number = 0; graph_number < 30; ++graph_number) {
    const CommGraph graph = scattered_groups(4, 4);
    const MappingProblem problem(graph, nodes_of(4), Mapping(4, 4));
    Mapping mapping;
    for (std::uint32_t i = 0; i < 16; ++i) mapping.push_back(i / 4);
    std::shuffle(mapping.begin(), mapping.end(), random);
    improve(problem, mapping);
    if (keeps_groups_together(mapping, 4)) ++found;
  }
  EXPECT_GT(found, 20U);
}

TEST(LocalSearch, KeepsWithinItsBudgetAndItsCapacities) {
  const CommGraph graph = scattered_groups(4, 4);
  const MappingProblem problem(graph, nodes_of(4), Mapping(4, 4));
  Mapping mapping;
  for (std::uint32_t i = 0; i < 16; ++i) mapping.push_back(i / 4);
  const Mapping start = mapping;
  improve(problem, mapping, {0});
  EXPECT_EQ(mapping, start) << "no budget, no step";
  Mapping crowded(16, 0);
  respect_capacities(problem, crowded);
  for (std::uint32_t node = 0; node < 4; ++node) EXPECT_EQ(std::count(crowded.begin(), crowded.end(), node), 4);
}

TEST(BestSteps, AreSortedAndSayWhatTheyChange) {
  const CommGraph graph = scattered_groups(3, 3);
  const MappingProblem problem(graph, nodes_of(3), {4, 3, 3});
  const Mapping mapping{0, 0, 0, 1, 1, 1, 2, 2, 2};
  const std::vector<Step> steps = best_steps(problem, mapping, {}, 20);
  ASSERT_FALSE(steps.empty());
  double last = -1e300;
  for (const Step& step : steps) {
    EXPECT_GE(step.change, last);
    last = step.change;
    Mapping after = mapping;
    apply(step, after);
    EXPECT_NEAR(problem.cost(after) - problem.cost(mapping), step.change, 1e-9);
    for (std::uint32_t node = 0; node < 3; ++node)
      EXPECT_LE(std::count(after.begin(), after.end(), node), problem.capacity(node));
  }
  for (const Step& step : best_steps(problem, mapping, {4}, 20)) EXPECT_EQ(step.rank, 4);
}

TEST(BestSteps, AnExchangeIsThereOnce) {
  // Full nodes of one rank: each of the two would take the other's place.
  const CommGraph graph = test::graph_of(4, {{0, 1, 10}, {2, 3, 10}, {0, 3, 500}});
  const MappingProblem problem(graph, nodes_of(4), Mapping(4, 1));
  const std::vector<Step> steps = best_steps(problem, {2, 0, 3, 1}, {}, 100);
  std::set<std::pair<Rank, Rank>> pairs;
  for (const Step& step : steps) pairs.emplace(std::min(step.rank, step.other), std::max(step.rank, step.other));
  EXPECT_EQ(pairs.size(), 6U) << "every two of four";
  EXPECT_EQ(steps.size(), 6U) << "and not once for each of the two";
}

TEST(BestSteps, AMoveWhereThereIsRoom) {
  const CommGraph graph = test::graph_of(3, {{0, 1, 1000}, {0, 2, 1000}});
  const MappingProblem problem(graph, nodes_of(2), {3, 3});
  const std::vector<Step> steps = best_steps(problem, {0, 0, 1}, {}, 1);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].rank, 2);
  EXPECT_EQ(steps[0].other, -1);
  EXPECT_EQ(steps[0].to, 0U);
  Mapping full{0, 0, 1};
  EXPECT_EQ(best_steps(MappingProblem(graph, nodes_of(2), {2, 1}), full, {2}, 1).front().other, 1);
}

}  // namespace
}  // namespace lbf::advisor::mapping_test