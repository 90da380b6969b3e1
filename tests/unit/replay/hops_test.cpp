// Switch hops, small enough to be worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/engine/metric/predictor.h"

namespace lbf::hops_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Nodes n0 and n1 on one leaf switch, n2 on another below the same top, n3 connected with nobody.
std::shared_ptr<const engine::Topology> topology() {
  return std::make_shared<const engine::Topology>(
      *engine::Topology::parse("SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n2\nSwitchName=top Switches=a,b\n"
                               "SwitchName=alone Nodes=n3\n",
                               "topology.conf"));
}

// Flight 1 s inside a node, 2 s below one leaf switch, 5 s over two levels, 9 s where nobody knows, whatever
// the size. `more`: further keys of the path over two levels.
std::shared_ptr<const engine::Network> network(const std::string& more = "", const std::string& contention = "") {
  const auto path = [](const char* locality, int seconds) {
    return std::string("[[path]]\nlocality = \"") + locality + "\"\ntable = [[0, " + std::to_string(seconds) +
           "000000.0]]\n";
  };
  return std::make_shared<const engine::Network>(*engine::Network::parse("name = \"hops\"\n" + path("self-node", 1) +
                                                                             path("hop:1", 2) + path("remote", 9) +
                                                                             path("hop:2", 5) + more + contention,
                                                                         "hops.toml"));
}

// Each rank on a node of its own, which are these nodes of the topology.
engine::Target target(std::vector<std::uint32_t> nodes, std::shared_ptr<const engine::Network> on) {
  engine::Target made;
  for (std::uint32_t node = 0; node < nodes.size(); ++node) made.node_of_rank.push_back(node);
  made.nodes = static_cast<std::uint32_t>(nodes.size());
  made.network = std::move(on);
  made.topology = topology();
  made.topology_node_of_node = std::move(nodes);
  return made;
}

engine::Target without_topology(engine::Target made) {
  made.topology = nullptr;
  made.topology_node_of_node.clear();
  return made;
}

Event event(EventKind kind, Seconds process_s, Rank peer = kAnyRank, Bytes bytes = 0) {
  Event made;
  made.kind = kind;
  made.process_s = process_s;
  made.peer = peer;
  made.tag = 1;
  made.bytes = bytes;
  return made;
}

std::vector<engine::Prediction> predict(const std::vector<std::vector<Event>>& events,
                                        std::vector<engine::Target> targets) {
  const Rank ranks = static_cast<Rank>(events.size());
  auto made = engine::Predictor::make(ranks, std::move(targets));
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  for (Rank rank = 0; rank < ranks; ++rank) {
    for (const Event& e : events[static_cast<std::size_t>(rank)]) EXPECT_TRUE((*made)->feed(rank, e).ok());
    (*made)->close(rank);
  }
  EXPECT_TRUE((*made)->advance().ok());
  return (*made)->predictions();
}

// Rank 0 sends to ranks 1 and 2 at 1 s; rank 3 has nothing to do.
const std::vector<std::vector<Event>> kFanOut = {
    {event(EventKind::kSend, 1, 1), event(EventKind::kSend, 0, 2), event(EventKind::kExit, 0)},
    {event(EventKind::kRecv, 0, 0), event(EventKind::kExit, 0)},
    {event(EventKind::kRecv, 0, 0), event(EventKind::kExit, 0)},
    {event(EventKind::kExit, 0)}};

TEST(Hops, EachPairOfNodesHasItsOwnTable) {
  // Side by side in one replay: rank 1 is 1 or 2 hops away, rank 2 is 2 hops away or not connected.
  const std::vector<engine::Prediction> p =
      predict(kFanOut, {target({0, 1, 2, 3}, network()), target({0, 2, 3, 1}, network()),
                        without_topology(target({0, 1, 2, 3}, network()))});
  EXPECT_THAT(p[0].rank_finish_s, ElementsAre(1, 1 + 2, 1 + 5, 0));
  EXPECT_THAT(p[1].rank_finish_s, ElementsAre(1, 1 + 5, 1 + 9, 0));
  EXPECT_THAT(p[2].rank_finish_s, ElementsAre(1, 1 + 9, 1 + 9, 0));
}

TEST(Hops, AlsoWhereRanksShareProcessors) {
  // Ranks 0 and 3 are on one processor: rank 0's second of work takes 1 s, rank 3 has none.
  engine::Target both = target({0, 1, 2}, network());
  both.node_of_rank.push_back(0);
  const std::vector<engine::Prediction> p = predict(kFanOut, {both, without_topology(both)});
  EXPECT_THAT(p[0].rank_finish_s, ElementsAre(1, 1 + 2, 1 + 5, 0));
  EXPECT_THAT(p[1].rank_finish_s, ElementsAre(1, 1 + 9, 1 + 9, 0));
}

TEST(Hops, ATargetWhoseNodesAreAllOnOneSwitch) {
  engine::Target near = target({0, 1}, network());
  const std::vector<std::vector<Event>> pair = {{event(EventKind::kSend, 1, 1), event(EventKind::kExit, 0)},
                                                {event(EventKind::kRecv, 0, 0), event(EventKind::kExit, 0)}};
  const std::vector<engine::Prediction> p =
      predict(pair, {near, target({0, 2}, network()), target({3, 0}, network()), target({1, 0}, network())});
  EXPECT_EQ(p[0].lbf_s, 1 + 2);
  EXPECT_EQ(p[1].lbf_s, 1 + 5);
  EXPECT_EQ(p[2].lbf_s, 1 + 9);
  EXPECT_EQ(p[3].lbf_s, 1 + 2);
}

TEST(Hops, ProtocolProcessingOfThePath) {
  // Only over two levels does a message cost work: 3 s in the sender, 4 s in the receiver.
  const auto on = network("send_cpu = [[0, 3000000.0]]\nrecv_cpu = [[0, 4000000.0]]\n");
  engine::Target both = target({0, 1, 2}, on);
  both.node_of_rank.push_back(0);
  for (const engine::Target& t : {target({0, 1, 2, 3}, on), both}) {
    const std::vector<engine::Prediction> p = predict(kFanOut, {t});
    // Rank 0: 1 s, the first message leaves; 3 s more, the second leaves at 4 s, arrives at 9 s.
    EXPECT_THAT(p[0].rank_finish_s, ElementsAre(4, 3, 9 + 4, 0));
  }
}

TEST(Hops, EagerLimitAndRendezvousOfThePath) {
  // 100 bytes are a rendezvous over two levels, eager below one switch. Rank 0 sends at 1 s, its receiver
  // posts at 20 s. Two levels: the announcement is there at 1 + 5 = 6 s; the transfer starts at 20 s; it
  // arrives 5 - 5 = 0 s later; rank 0 is free at 20 + 5 = 25 s. One level: rank 0 goes on at once, the
  // message is there at 3 s.
  const auto on = network("eager_limit_bytes = 99\n");
  const std::vector<std::vector<Event>> late = {{event(EventKind::kSend, 1, 1, 100), event(EventKind::kExit, 0)},
                                                {event(EventKind::kRecv, 20, 0, 100), event(EventKind::kExit, 0)},
                                                {event(EventKind::kExit, 0)}};
  const auto on_one_processor = [](engine::Target t) {
    t.node_of_rank[2] = 0;
    t.nodes = 2;
    t.topology_node_of_node.resize(2);
    return t;
  };
  const engine::Target far = target({0, 2, 1}, on);
  const engine::Target near = target({0, 1, 2}, on);
  for (const std::vector<engine::Target>& targets :
       {std::vector{far, near}, std::vector{on_one_processor(far), on_one_processor(near)}}) {
    const std::vector<engine::Prediction> p = predict(late, targets);
    EXPECT_THAT(p[0].rank_finish_s, ElementsAre(25, 20, 0));
    EXPECT_THAT(p[1].rank_finish_s, ElementsAre(1, 20, 0));
  }
}

TEST(Hops, AProgramThatNeedsBuffersIsStuckOnlyWhereThePathHasNone) {
  const auto on = network("eager_limit_bytes = 99\n");
  const auto exchange = [](Rank other) {
    return std::vector<Event>{event(EventKind::kSend, 1, other, 100), event(EventKind::kRecv, 0, other, 100),
                              event(EventKind::kExit, 0)};
  };
  const std::vector<engine::Prediction> p =
      predict({exchange(1), exchange(0)}, {target({0, 2}, on), target({0, 1}, on), target({0, 3}, on)});
  EXPECT_THAT(p[0].why_stuck, HasSubstr("cyclic wait"));
  EXPECT_EQ(p[1].why_stuck, "");
  EXPECT_THAT(p[1].rank_finish_s, ElementsAre(3, 3));
  EXPECT_THAT(p[2].rank_finish_s, ElementsAre(10, 10));
}

TEST(Hops, SharedLinksTakeTheirPartOfTheWaysTime) {
  // 2 messages of 1 MB from node 0 at 1 s, over a link of 1 MB/s: both are through at 3 s, when each had half
  // of the link for 2 s. The rest of their flight is latency: 2 - 1 = 1 s below one switch, 5 - 1 = 4 s over
  // two levels.
  std::vector<std::vector<Event>> fan_out = kFanOut;
  fan_out[0] = {event(EventKind::kSend, 1, 1, 1000000), event(EventKind::kSend, 0, 2, 1000000),
                event(EventKind::kExit, 0)};
  const auto on = network("", "[contention]\nmodel = \"nic\"\nbandwidth_MBps = 1.0\n");
  const std::vector<engine::Prediction> p = predict(fan_out, {target({0, 1, 2, 3}, on)});
  EXPECT_THAT(p[0].rank_finish_s, ElementsAre(1, 3 + 1, 3 + 4, 0));
}

TEST(Hops, RefusesATopologyThatDoesNotFitTheTarget) {
  const auto refused = [](const engine::Target& t) {
    const auto made = engine::Predictor::make(2, {t});
    EXPECT_FALSE(made.ok());
    return made.ok() ? "" : made.error().message;
  };
  engine::Target wrong = target({0, 1}, network());
  wrong.topology_node_of_node = {0};
  EXPECT_THAT(refused(wrong), HasSubstr("1 nodes of the topology for 2 nodes"));
  wrong.topology_node_of_node = {0, 4};
  EXPECT_THAT(refused(wrong), HasSubstr("node 4 of the topology does not exist"));
  wrong.topology_node_of_node = {2, 2};
  EXPECT_THAT(refused(wrong), HasSubstr("node 2 of the topology is named twice"));
}

TEST(Hops, DefaultTargetsAreOnTheRunsNodesOrOnTheTopologysChoice) {
  engine::Target ran = target({2, 0}, network());
  ran.node_of_rank = {0, 1, 0, 1};
  ran.placement = "cyclic";
  const auto other = std::make_shared<const engine::Network>(engine::Network::zero());
  const std::vector<engine::Target> targets = engine::default_targets(ran, {other});
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> nodes;
  for (const engine::Target& t : targets) nodes.emplace_back(t.nodes, t.topology_node_of_node);
  // As it ran; then blocks. 1 node: n2, on the smallest leaf. 2 nodes: the run's, not the choice (n0, n1). 4
  // nodes: no switch has so many. All of it on both networks.
  using Nodes = std::vector<std::uint32_t>;
  using testing::Pair;
  EXPECT_THAT(nodes, ElementsAre(Pair(2, Nodes{2, 0}), Pair(1, Nodes{2}), Pair(2, Nodes{2, 0}), Pair(4, Nodes{}),
                                 Pair(2, Nodes{2, 0}), Pair(1, Nodes{2}), Pair(2, Nodes{2, 0}), Pair(4, Nodes{})));
  for (const engine::Target& t : targets) EXPECT_EQ(t.topology != nullptr, !t.topology_node_of_node.empty());
}

}  // namespace
}  // namespace lbf::hops_test