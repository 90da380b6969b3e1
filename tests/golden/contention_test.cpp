// Shared links: times that can be worked out on paper. 1 s of latency, 100 bytes per second.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/golden/predict.h"

namespace lbf::contention_test {
namespace {

using golden::Outcome;
using golden::predict;
using testing::DoubleNear;
using testing::ElementsAre;

std::shared_ptr<const engine::Network> lan(const std::string& model) {
  return golden::network(R"(
name = "lan"
[[path]]
locality = "remote"
table = [[0, 1e6], [100000, 1001e6]]
[[path]]
locality = "self-node"
table = [[0, 0]]
[contention]
bandwidth_MBps = 1e-4
model = ")" + model + "\"\n");
}

std::string recv(const std::string& rank, const std::string& from, const std::string& bytes,
                 const std::string& tag = "0") {
  return rank + " startRecv 0 from=" + from + " tag=" + tag + "\n" + rank + " endRecv 0 from=" + from + " tag=" + tag +
         " bytes=" + bytes + "\n";
}
std::string send(const std::string& rank, const std::string& to, const std::string& bytes,
                 const std::string& tag = "0") {
  return rank + " send 0 to=" + to + " tag=" + tag + " bytes=" + bytes + "\n";
}
std::vector<Seconds> finish(const std::string& trace, Rank ranks, const std::string& map, std::uint32_t nodes,
                            const std::string& model) {
  std::string all = trace;
  for (Rank rank = 0; rank < ranks; ++rank) all += std::to_string(rank) + " exit 0\n";
  const Outcome outcome = predict(all, ranks, map, nodes, 16, lan(model));
  EXPECT_TRUE(outcome.diagnosis.ok());
  return outcome.prediction.rank_finish_s;
}

TEST(Contention, AMessageAloneTakesTheTablesTime) {
  for (const char* model : {"none", "bus", "nic"}) {
    EXPECT_THAT(finish(send("0", "1", "1000") + recv("1", "0", "1000"), 2, "map=0,1", 2, model),
                ElementsAre(0, DoubleNear(11, 1e-12)))
        << model;
  }
}

TEST(Contention, AnIncastCostsWhatTheReceiversLinkAllows) {
  std::string trace;
  std::string map = "map=0";
  for (int rank = 1; rank <= 8; ++rank) {
    trace += send(std::to_string(rank), "0", "1000") + recv("0", std::to_string(rank), "1000");
    map += "," + std::to_string(rank);
  }
  // 8,000 bytes through one link of 100 bytes per second, then the latency.
  EXPECT_NEAR(finish(trace, 9, map, 9, "nic")[0], 81, 1e-9);
  EXPECT_NEAR(finish(trace, 9, map, 9, "none")[0], 11, 1e-9);
  EXPECT_NEAR(finish(trace, 9, map, 9, "bus")[0], 81, 1e-9);
}

TEST(Contention, RanksOfANodeShareItsLinkBothWays) {
  // 0, 1 on one node, 2, 3 on the other; 0 -> 2, 1 -> 3, and 2 -> 0 the other way at the same time.
  const std::string trace = send("0", "2", "1000") + send("1", "3", "1000") + send("2", "0", "1000") +
                            recv("2", "0", "1000") + recv("3", "1", "1000") + recv("0", "2", "1000");
  const std::vector<Seconds> nic = finish(trace, 4, "map=0,0,1,1", 2, "nic");
  EXPECT_NEAR(nic[2], 21, 1e-9);
  EXPECT_NEAR(nic[3], 21, 1e-9);
  EXPECT_NEAR(nic[0], 11, 1e-9);  // the way back is free
  const std::vector<Seconds> bus = finish(trace, 4, "map=0,0,1,1", 2, "bus");
  EXPECT_NEAR(bus[0], 31, 1e-9);
}

TEST(Contention, PairsOnDifferentNodesDoNotMeetExceptOnABus) {
  const std::string trace =
      send("0", "1", "1000") + send("2", "3", "1000") + recv("1", "0", "1000") + recv("3", "2", "1000");
  EXPECT_NEAR(finish(trace, 4, "map=0,1,2,3", 4, "nic")[3], 11, 1e-9);
  EXPECT_NEAR(finish(trace, 4, "map=0,1,2,3", 4, "bus")[3], 21, 1e-9);
}

TEST(Contention, WhatWasSentFirstOnAConnectionIsThroughFirst) {
  const std::string trace = send("0", "1", "1000", "1") + send("0", "1", "1000", "2") + recv("1", "0", "1000", "1") +
                            "1 send 0 to=0 tag=3 bytes=0\n" + recv("1", "0", "1000", "2") + recv("0", "1", "0", "3");
  const std::vector<Seconds> seconds = finish(trace, 2, "map=0,1", 2, "nic");
  EXPECT_NEAR(seconds[0], 12, 1e-9);  // not 22: the first one was not slowed down by the second
  EXPECT_NEAR(seconds[1], 21, 1e-9);
}

TEST(Contention, AShortMessageLeavesItsShareToTheOthers) {
  // Both at half the bandwidth until the short one is through (2 s), then the other alone: 9 s more of 10.
  const std::string trace =
      send("0", "2", "100") + send("1", "3", "1000") + recv("2", "0", "100") + recv("3", "1", "1000");
  const std::vector<Seconds> seconds = finish(trace, 4, "map=0,0,1,1", 2, "nic");
  EXPECT_NEAR(seconds[2], 3, 1e-9);
  EXPECT_NEAR(seconds[3], 12, 1e-9);
}

TEST(Contention, WhatArrivesEarlyKeepsItsLinksBusy) {
  // 500 bytes pass alone in 0.5 s, but the link carries 100 per second: 5 s each.
  const auto burst = golden::network(R"(
name = "burst"
[[path]]
locality = "remote"
table = [[0, 5e5], [1000, 5e5]]
[contention]
model = "nic"
bandwidth_MBps = 1e-4
)");
  const std::string trace = send("0", "1", "500", "1") + send("0", "1", "500", "2") + send("0", "1", "0", "3") +
                            recv("1", "0", "500", "1") + "1 send 0 to=0 tag=4 bytes=0\n" + recv("1", "0", "500", "2") +
                            "1 send 0 to=0 tag=5 bytes=0\n" + recv("1", "0", "0", "3") + recv("0", "1", "0", "4") +
                            "0 exit 0\n1 exit 0\n";
  // The first arrives at 0.5, the second waits until 5 and arrives at 5.5, the third at 10.5.
  const Outcome outcome = predict(trace, 2, "map=0,1", 2, 1, burst);
  EXPECT_NEAR(outcome.prediction.rank_finish_s[0], 1.0, 1e-9);
  EXPECT_NEAR(outcome.prediction.rank_finish_s[1], 10.5, 1e-9);
}

// Ranks 0 and 1 send each other 1,000 bytes, rank 1 so much later.
double exchange_percent(const std::string& later_s, const std::string& sync, const std::string& model) {
  std::string trace;
  for (const auto& [rank, peer, s] : {std::array<std::string, 3>{"0", "1", "0"}, {"1", "0", later_s}}) {
    trace += rank + " startRecv 0 from=" + peer + " tag=0 req=2\n" + rank + " isend " + s + " to=" + peer +
             " tag=0 bytes=1000 req=1" + sync + "\n" + rank + " endRecv 0 from=" + peer + " tag=0 bytes=1000 req=2\n" +
             rank + " wait 0 req=1\n" + rank + " exit 0\n";
  }
  return predict(trace, 2, "map=0,1", 2, 1, lan(model)).prediction.exchange_percent;
}

TEST(Contention, AnExchangeMightTakeTurns) {
  // Each is in its links for 10 s of 11; the second would wait for what is left of the first.
  EXPECT_NEAR(exchange_percent("0", " sync=1", "nic"), 100 * 10 / 11.0, 1e-9);
  EXPECT_NEAR(exchange_percent("4", " sync=1", "nic"), 100 * 6 / 15.0, 1e-9);
  EXPECT_EQ(exchange_percent("12", " sync=1", "nic"), 0) << "the first is through";
  EXPECT_EQ(exchange_percent("0", "", "nic"), 0) << "nobody announces it";
  EXPECT_EQ(exchange_percent("0", " sync=1", "bus"), 0) << "they wait for each other anyway";
}

TEST(Contention, MessagesInsideANodeNeedNoLink) {
  EXPECT_NEAR(finish(send("0", "1", "1000") + recv("1", "0", "1000"), 2, "map=0,0", 1, "nic")[1], 0, 1e-12);
}

}  // namespace
}  // namespace lbf::contention_test