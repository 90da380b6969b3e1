// Variants of a network, and what a program is bound by.
#include "advisor/advice/sensitivity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/advisor/fixture.h"

namespace lbf::advisor::sensitivity_test {
namespace {

std::shared_ptr<const engine::Network> tree() {
  return test::network(
      "name = \"tree\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 1.0], [1000, 2.0], [2000, 3.0]]\n"
      "[[path]]\nlocality = \"hop:1\"\ntable = [[0, 10.0], [1000, 20.0], [2000, 30.0]]\n"
      "send_cpu = [[0, 0.5]]\nrecv_cpu = [[0, 0.25]]\neager_limit_bytes = 4096\n"
      "first_message_us = 400.0\nfirst_peer_us = 10000.0\nturn_us = 2.7\nswitch_us = 5.5\n"
      "[[path]]\nlocality = \"remote\"\ntable = [[0, 100.0], [1000, 200.0], [2000, 300.0]]\n"
      "[local]\ncopy = [[0, 0.5], [1000, 5.0]]\nreduce = [[0, 0.25], [1000, 8.0]]\n"
      "[threads]\nfork_join_us = [[2, 1.5], [4, 2.5]]\n"
      "[contention]\nmodel = \"nic\"\nbandwidth_MBps = 40.0\n");
}

TEST(Scaled, LatencyAndBandwidthApart) {
  const auto made = scaled(tree(), 2, 0.5, 4);
  ASSERT_TRUE(made.ok()) << made.error().message;
  const engine::Network& network = **made;
  EXPECT_EQ(network.name(), "tree");
  // 10 us * 0.5, and 10 us for 1000 bytes / 4.
  EXPECT_NEAR(network.path(1).flight.at(0), 5e-6, 1e-15);
  EXPECT_NEAR(network.path(1).flight.at(1000), 7.5e-6, 1e-15);
  EXPECT_NEAR(network.path(1).flight.at(4000), 15e-6, 1e-12) << "beyond the table";
  EXPECT_NEAR(network.path(2).flight.at(1000), 75e-6, 1e-15);
  EXPECT_NEAR(network.path(engine::kUnknownHops).flight.at(0), 50e-6, 1e-15);
  EXPECT_NEAR(network.path(0).flight.at(1000), 0.75e-6, 1e-15);
  EXPECT_EQ(network.path(1).send_cpu.at(0), 0.5e-6) << "protocol processing is processor work";
  EXPECT_EQ(network.path(1).recv_cpu.at(0), 0.25e-6);
  EXPECT_NEAR(network.local().copy.at(1000), 5e-6, 1e-15) << "and so are copies and reductions";
  EXPECT_NEAR(network.local().copy.at(0), 0.5e-6, 1e-15);
  EXPECT_NEAR(network.local().reduce.at(1000), 8e-6, 1e-15);
  EXPECT_NEAR(network.fork_join_s().at(4), 2.5e-6, 1e-15);
  EXPECT_EQ(network.path(1).eager_limit_bytes, 4096U);
  EXPECT_EQ(network.contention(), engine::Contention::kNic);
  EXPECT_NEAR(network.contention_bytes_per_s(), 160e6, 1);
}

TEST(Scaled, AsItIsIsAsItWas) {
  const auto before = tree();
  const auto made = scaled(before, 2, 1, 1);
  ASSERT_TRUE(made.ok());
  for (const std::uint32_t hops : {0U, 1U, 2U, engine::kUnknownHops}) {
    for (const Bytes bytes : {0UL, 1UL, 999UL, 5000UL}) {
      EXPECT_NEAR((*made)->path(hops).flight.at(bytes), before->path(hops).flight.at(bytes), 1e-15);
    }
    EXPECT_NEAR((*made)->path(hops).first_message_s, before->path(hops).first_message_s, 1e-12);
    EXPECT_NEAR((*made)->path(hops).first_peer_s, before->path(hops).first_peer_s, 1e-12);
    EXPECT_NEAR((*made)->path(hops).turn_s, before->path(hops).turn_s, 1e-12);
    EXPECT_NEAR((*made)->path(hops).switch_s, before->path(hops).switch_s, 1e-12);
  }
  const auto flat = test::slow_network();
  EXPECT_FALSE((*scaled(flat, 0, 1, 1))->local().known()) << "none where the file has none";
  const auto zero = std::make_shared<const engine::Network>(engine::Network::zero());
  EXPECT_EQ(*scaled(zero, 0, 2, 2), zero);
}

TEST(Sensitivity, OneRankThatSendsOneMessage) {
  // 300 us of work, then 1000 bytes: latency 100 us, 100 us for its bytes. The "replay" works that out.
  engine::Target target;
  target.nodes = 2;
  target.node_of_rank = {0, 1};
  target.speed_of_node = {1, 1};
  target.network = tree();
  int passes = 0;
  const auto replay = [&](const std::vector<engine::Target>& targets) -> Result<std::vector<Replayed>> {
    ++passes;
    std::vector<Replayed> replayed;
    for (const engine::Target& one : targets)
      replayed.push_back({300e-6 / one.speed_of(0) + one.network->path(engine::kUnknownHops).flight.at(1000), ""});
    return replayed;
  };
  const Result<Sensitivity> curves = sensitivity(target, replay);
  ASSERT_TRUE(curves.ok());
  EXPECT_EQ(passes, 1) << "one pass for all points";
  EXPECT_NEAR(curves->time_s, 500e-6, 1e-12);
  EXPECT_NEAR(curves->latency_share, 0.2, 1e-6);
  EXPECT_NEAR(curves->bandwidth_share, 0.2, 1e-6);
  EXPECT_NEAR(curves->processor_share, 0.6, 1e-6);
  EXPECT_EQ(curves->bound_by(), "processor speed");
  ASSERT_EQ(curves->latency.size(), 4U);
  EXPECT_EQ(curves->latency[3].factor, 4);
  EXPECT_NEAR(curves->latency[3].time_s, 800e-6, 1e-12);
  EXPECT_EQ(curves->speed[0].factor, 0.5);
  EXPECT_NEAR(curves->speed[0].time_s, 800e-6, 1e-12);
  EXPECT_TRUE(std::isinf(curves->bandwidth[3].factor));
}

TEST(Sensitivity, BoundByNothingOfThese) {
  Sensitivity curves;
  curves.latency_share = 0.01;
  EXPECT_EQ(curves.bound_by(), "nothing of these");
  curves.latency_share = 0.2;
  curves.bandwidth_share = 0.3;
  EXPECT_EQ(curves.bound_by(), "bandwidth");
}

}  // namespace
}  // namespace lbf::advisor::sensitivity_test