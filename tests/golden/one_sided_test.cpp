// One-sided communication: times that can be worked out on paper. 1 s of latency, 100 bytes per second between
// nodes, nothing within one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "event/text_trace.h"
#include "tests/golden/predict.h"

namespace lbf::one_sided_test {
namespace {

using golden::Outcome;
using golden::predict;
using testing::DoubleNear;
using testing::ElementsAre;

std::shared_ptr<const engine::Network> lan(const std::string& model = "none", const std::string& eager = "") {
  return golden::network(R"(
name = "lan"
[[path]]
locality = "remote"
table = [[0, 1e6], [100000, 1001e6]]
)" + eager + R"(
[[path]]
locality = "self-node"
table = [[0, 0]]
[contention]
bandwidth_MBps = 1e-4
model = ")" + model + "\"\n");
}

std::vector<Seconds> finish(const std::string& trace, const std::string& map, std::uint32_t nodes,
                            std::shared_ptr<const engine::Network> on = lan(), std::uint32_t cores = 16) {
  const auto ranks = static_cast<Rank>(1 + std::count(map.begin(), map.end(), ','));
  std::string all = trace;
  for (Rank rank = 0; rank < ranks; ++rank) all += std::to_string(rank) + " exit 0\n";
  const Outcome outcome = predict(all, ranks, map, nodes, cores, std::move(on));
  EXPECT_TRUE(outcome.diagnosis.ok());
  return outcome.prediction.rank_finish_s;
}

std::string operation(const std::string& op, int from, int to, int bytes, const std::string& more = "") {
  return std::to_string(from) + " oneSided 0 op=" + op + " to=" + std::to_string(to) +
         " bytes=" + std::to_string(bytes) + more + "\n";
}

TEST(OneSided, APutAndAFenceTakeTheBytesThereAndAnEmptyMessageBack) {
  const std::string trace =
      operation("put", 0, 1, 1000) + "0 oneSidedSync 0\n1 oneSidedSync 0\n0 coll 0 op=barrier\n1 coll 0 op=barrier\n";
  // There 1 + 10 s, back 1 s; then rank 1 hears of it in the barrier.
  EXPECT_THAT(finish(trace, "map=0,1", 2), ElementsAre(DoubleNear(12, 1e-9), DoubleNear(13, 1e-9)));
  EXPECT_THAT(finish(trace, "map=0,0", 1), ElementsAre(DoubleNear(0, 1e-9), DoubleNear(0, 1e-9)));
}

TEST(OneSided, EachOperationTakesItsBytesItsWay) {
  const auto alone = [](const std::string& op, int bytes) {
    return finish(operation(op, 0, 1, bytes) + "0 oneSidedSync 0 to=1\n", "map=0,1", 2)[0];
  };
  EXPECT_NEAR(alone("put", 1000), 12, 1e-9);
  EXPECT_NEAR(alone("accumulate", 1000), 12, 1e-9);
  EXPECT_NEAR(alone("get", 1000), 12, 1e-9);
  EXPECT_NEAR(alone("get_accumulate", 1000), 22, 1e-9);
  EXPECT_NEAR(alone("fetch_and_op", 100), 4, 1e-9);
  EXPECT_NEAR(alone("compare_and_swap", 100), 5, 1e-9);
}

TEST(OneSided, TheTargetNeedNotKnowAndLosesNoTime) {
  const std::string trace = "1 compute 100\n" + operation("get", 0, 1, 1000) + "0 oneSidedSync 0 to=1\n";
  EXPECT_THAT(finish(trace, "map=0,1", 2), ElementsAre(DoubleNear(12, 1e-9), DoubleNear(100, 1e-9)));
  // On one processor the two processes share it; the answer does not.
  EXPECT_THAT(finish(trace, "map=0,0", 1, lan(), 1), ElementsAre(DoubleNear(0, 1e-9), DoubleNear(100, 1e-9)));
}

TEST(OneSided, WithoutASyncNobodyWaits) {
  EXPECT_NEAR(finish(operation("put", 0, 1, 1000), "map=0,1", 2)[0], 0, 1e-9);
}

TEST(OneSided, ASyncWaitsForItsTargetAndItsWindow) {
  const std::string two = operation("put", 0, 1, 100) + operation("put", 0, 2, 1000);
  EXPECT_NEAR(finish(two + "0 oneSidedSync 0 to=1\n", "map=0,1,2", 3)[0], 3, 1e-9);
  EXPECT_NEAR(finish(two + "0 oneSidedSync 0 to=1\n0 oneSidedSync 0\n", "map=0,1,2", 3)[0], 12, 1e-9);
  EXPECT_NEAR(finish("comm 1 0,1,2\n" + two + "0 oneSidedSync 0 comm=1\n", "map=0,1,2", 3)[0], 0, 1e-9);
}

TEST(OneSided, ALockIsARoundTripAndARequestEndsAtItsWait) {
  EXPECT_NEAR(finish(operation("lock", 0, 1, 0), "map=0,1", 2)[0], 2, 1e-9);
  const std::string puts = operation("put", 0, 1, 100, " req=7") + operation("put", 0, 1, 1000);
  EXPECT_NEAR(finish(puts + "0 wait 0 req=7\n", "map=0,1", 2)[0], 3, 1e-9);
  EXPECT_NEAR(finish(puts + "0 wait 0 req=7\n0 oneSidedSync 0\n", "map=0,1", 2)[0], 12, 1e-9);
  EXPECT_NEAR(finish(puts + "0 oneSidedSync 0\n0 wait 0 req=7\n", "map=0,1", 2)[0], 12, 1e-9);
}

TEST(OneSided, OperationsShareLinks) {
  const std::string two = operation("put", 0, 1, 1000) + operation("put", 0, 1, 1000) + "0 oneSidedSync 0\n";
  EXPECT_NEAR(finish(two, "map=0,1", 2, lan("none"))[0], 12, 1e-9);
  EXPECT_NEAR(finish(two, "map=0,1", 2, lan("nic"))[0], 22, 1e-9);
}

TEST(OneSided, LargeOperationsDoNotWaitForEachOthersReceive) {
  const std::string eager = "eager_limit_bytes = 100\n";
  std::string puts, gets;
  for (int i = 0; i < 4; ++i) {
    puts += operation("put", 0, 1, 1000);
    gets += operation("get", 0, 1, 1000);
  }
  EXPECT_NEAR(finish(puts + "0 oneSidedSync 0\n", "map=0,1", 2, lan("none", eager))[0], 12, 1e-9);
  EXPECT_NEAR(finish(gets + "0 oneSidedSync 0\n", "map=0,1", 2, lan("none", eager))[0], 12, 1e-9);
}

// Actors of one target that work for different origins: their order does not come from when events arrive.
TEST(OneSided, TheResultDoesNotDependOnWhoseEventsArriveFirst) {
  std::vector<std::string> of_rank;
  for (int rank = 0; rank < 4; ++rank) {
    std::string events;
    for (int i = 0; i < 20; ++i) {
      events += operation(i % 2 == 0 ? "put" : "get", rank, (rank + 1 + i % 3) % 4, 100 * (i % 5));
      if (i % 7 == 6) events += std::to_string(rank) + " oneSidedSync 0.5\n";
    }
    of_rank.push_back(events + std::to_string(rank) + " oneSidedSync 0\n");
  }
  const auto in_order = [&](const std::vector<std::size_t>& order) {
    std::string trace;
    for (const std::size_t rank : order) trace += of_rank[rank];
    return finish(trace, "map=0,1,1,2", 3, lan("nic"), 1);
  };
  const std::vector<Seconds> first = in_order({0, 1, 2, 3});
  EXPECT_GT(first[0], 10);
  EXPECT_EQ(first, in_order({3, 2, 1, 0}));
  EXPECT_EQ(first, in_order({2, 0, 3, 1}));
}

}  // namespace
}  // namespace lbf::one_sided_test