// Bounds: worked out by hand.
#include "advisor/ranking/bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/engine/replay/memory_sharing.h"
#include "tests/unit/advisor/fixture.h"

namespace lbf::advisor::bound_test {
namespace {

using testing::ElementsAre;

engine::Target target_of(std::vector<std::uint32_t> node_of_rank, std::uint32_t nodes,
                         std::shared_ptr<const engine::Network> network) {
  engine::Target target;
  target.node_of_rank = std::move(node_of_rank);
  target.nodes = nodes;
  target.cores_per_node = 2;
  target.network = std::move(network);
  return target;
}

TEST(Bound, LoadBalance) {
  CommGraphBuilder builder(3);
  builder.add_process_time(0, 4);
  builder.add_process_time(1, 3);
  builder.add_process_time(2, 5);
  builder.add_blocked_time(1, 2.5);
  const CommGraph graph = builder.finish();
  // One node of two processors: 12 s of work / 2; the longest rank is 1 with 3 + 2.5 s.
  EXPECT_DOUBLE_EQ(bound_of(target_of({0, 0, 0}, 1, test::slow_network()), graph, 0).processors_s, 6);
  // Twice as fast: 3 s of work, the longest rank 1.5 + 2.5 s.
  engine::Target fast = target_of({0, 0, 0}, 1, test::slow_network());
  fast.speed = 2;
  EXPECT_DOUBLE_EQ(bound_of(fast, graph, 0).processors_s, 4);
  // By node: rank 2 alone on half a processor's speed.
  engine::Target mixed = target_of({0, 0, 1}, 2, test::slow_network());
  mixed.speed_of_node = {1, 0.5};
  mixed.cores_of_node = {2, 1};
  EXPECT_DOUBLE_EQ(bound_of(mixed, graph, 0).processors_s, 10);
}

// 5 s of which 3 in regions of two threads, which worked 5 s: 1 s of it one thread alone, 4 s shared.
TEST(Bound, ThreadsShareTheWorkOfRegions) {
  CommGraphBuilder builder(1);
  builder.add_process_time(0, 5);
  builder.add_regions(0, {2, 0.5, 3, 2});
  builder.add_regions(0, {1, 0.5, 1, 1});
  const CommGraph graph = builder.finish();
  EXPECT_EQ(graph.most_threads(), 2U);
  engine::Target target = target_of({0}, 1, test::slow_network());
  const auto with = [&](std::uint32_t threads) {
    target.threads = threads;
    return bound_of(target, graph, 0).processors_s;
  };
  EXPECT_DOUBLE_EQ(with(0), 5);
  EXPECT_DOUBLE_EQ(with(1), 7);
  EXPECT_DOUBLE_EQ(with(2), 5);
  EXPECT_DOUBLE_EQ(with(4), 4);
  target.cores_per_node = 1;
  EXPECT_DOUBLE_EQ(with(4), 7) << "all of it on one processor";
}

// Work that others of the memory domain slowed down where it ran is shorter where they do not.
TEST(Bound, WorkIsAsWithAMemoryDomainForItself) {
  const CommGraph graph = test::graph_of(2, {}, 10);
  const auto network = test::slow_network("[memory]\nbandwidth_MBps = [[1, 10000.0], [2, 12000.0]]\n");
  engine::Target ran = target_of({0, 0}, 1, network);
  engine::Target target = target_of({0, 1}, 2, network);
  target.memory = engine::memory_demand(ran, network->memory(), 10e9);
  EXPECT_DOUBLE_EQ(bound_of(target, graph, 0).processors_s, 6);
}

TEST(Bound, BusiestLink) {
  const CommGraph graph = test::graph_of(4, {{0, 1, 1000}, {0, 2, 2000000}, {3, 0, 500000}, {2, 3, 7}});
  const std::vector<std::uint32_t> two_nodes{0, 0, 1, 1};
  const NodeTraffic traffic = traffic_of(two_nodes, 2, graph);
  EXPECT_EQ(traffic.between, 2500000U);
  EXPECT_EQ(traffic.inside, 1007U);
  EXPECT_THAT(traffic.out, ElementsAre(2000000U, 500000U));
  EXPECT_THAT(traffic.in, ElementsAre(500000U, 2000000U));
  const auto links = [&](const std::string& contention) {
    return bound_of(target_of(two_nodes, 2, test::slow_network(contention)), graph, 0).links_s;
  };
  EXPECT_EQ(links(""), 0);
  EXPECT_DOUBLE_EQ(links("[contention]\nmodel = \"nic\"\nbandwidth_MBps = 1.0\n"), 2.0);
  EXPECT_DOUBLE_EQ(links("[contention]\nmodel = \"bus\"\nbandwidth_MBps = 1.0\n"), 2.5);
}

TEST(Bound, ChainAtTheLeastFlightThereIs) {
  const CommGraph graph = test::graph_of(2, {{0, 1, 10}});
  EXPECT_EQ(bound_of(target_of({0, 1}, 2, test::slow_network()), graph, 5).chain_s, 0)
      << "within a node messages take no time, and the chain might be there";
  const auto everywhere = test::network("name = \"e\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 2000000.0]]\n");
  const Bound bound = bound_of(target_of({0, 1}, 2, everywhere), graph, 5);
  EXPECT_DOUBLE_EQ(bound.chain_s, 10);
  EXPECT_DOUBLE_EQ(bound.at_least_s(), 10);
  EXPECT_GE(bound.estimate_s, bound.at_least_s());
}

}  // namespace
}  // namespace lbf::advisor::bound_test