// Parallel regions on other numbers of threads and processors: times that can be worked out on paper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/golden/predict.h"

namespace lbf::regions_test {
namespace {

using golden::make_target;

// Of both ranks.
auto are(Seconds first, Seconds second) {
  return testing::ElementsAre(testing::DoubleNear(first, 1e-9), testing::DoubleNear(second, 1e-9));
}

std::vector<Seconds> finish(const std::string& trace, std::uint32_t threads, std::uint32_t nodes, std::uint32_t cores) {
  engine::Target target =
      make_target(2, "block", nodes, cores, std::make_shared<const engine::Network>(engine::Network::zero()));
  target.threads = threads;
  return golden::predict_all(trace, 2, {target}).front().rank_finish_s;
}

// Two regions of two threads with 2 s of work each, 0.2 s of fork and join, then 1 s alone.
const char* const kBalanced =
    "0 regions 2.2 count=2 threads=2 work=4 critical=2 fork=0.2\n0 exit 1\n"
    "1 regions 2.2 count=2 threads=2 work=4 critical=2 fork=0.2\n1 exit 1\n";

TEST(Regions, TakeAsLongAsTheyTookWhereTheyRan) {
  EXPECT_THAT(finish(kBalanced, 0, 2, 2), are(3.2, 3.2));
  EXPECT_THAT(finish(kBalanced, 2, 2, 2), are(3.2, 3.2));
}

// 2 nodes of 2 processors, 2 ranks of 2 threads: one node was said to take exactly as long.
TEST(Regions, ShareTheProcessorsOfOneNode) {
  EXPECT_THAT(finish(kBalanced, 0, 1, 2), are(5.2, 5.2));
  EXPECT_THAT(finish(kBalanced, 2, 1, 2), are(5.2, 5.2));
}

// Without fork and join: 4 + 1. Four threads: twice the fork and join of two, a quarter of the work.
TEST(Regions, TakeOtherNumbersOfThreads) {
  EXPECT_THAT(finish(kBalanced, 1, 1, 2), are(5, 5));
  EXPECT_THAT(finish(kBalanced, 4, 2, 4), are(2.4, 2.4));
}

// The longest thread of two has 2 of 3 s: 1 s is nobody else's, the other 2 are shared.
TEST(Regions, KeepWhatTheLongestThreadHasAlone) {
  const char* const unbalanced =
      "0 regions 2 count=1 threads=2 work=3 critical=2\n0 exit 0\n"
      "1 exit 0\n";
  EXPECT_THAT(finish(unbalanced, 2, 2, 2), are(2, 0));
  EXPECT_THAT(finish(unbalanced, 4, 2, 4), are(1.5, 0));
  EXPECT_THAT(finish(unbalanced, 1, 2, 1), are(3, 0));
}

// A microsecond of fork and join for each region: nothing was measured.
TEST(Regions, OfOneThreadAreSharedByMore) {
  const char* const alone = "0 regions 4 count=2 threads=1 work=4 critical=4\n0 exit 0\n1 exit 0\n";
  EXPECT_THAT(finish(alone, 2, 2, 2), are(2 + 2e-6, 0));
  EXPECT_THAT(finish(alone, 0, 2, 2), are(4, 0));
}

// Measured: 2 us for two threads, 3 us for four, so 4.5 us for eight. What ran keeps its ratio.
TEST(Regions, ForkAndJoinAsMeasured) {
  const auto on = golden::network(
      "name = \"m\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 0.0]]\n[threads]\nfork_join_us = [[2, 2.0], [4, "
      "3.0]]\n");
  const auto one_rank = [&](const char* trace, std::uint32_t threads) {
    engine::Target target = make_target(1, "block", 1, 8, on);
    target.threads = threads;
    return golden::predict_all(trace, 1, {target}).front().lbf_s;
  };
  const char* const alone = "0 regions 4 count=1000 threads=1 work=4 critical=4\n0 exit 0\n";
  EXPECT_NEAR(one_rank(alone, 2), 2.002, 1e-9);
  EXPECT_NEAR(one_rank(alone, 4), 1.003, 1e-9);
  EXPECT_NEAR(one_rank(alone, 8), 0.5045, 1e-9);
  const char* const two = "0 regions 2.2 count=1 threads=2 work=4 critical=2 fork=0.2\n0 exit 0\n";
  EXPECT_NEAR(one_rank(two, 4), 1.3, 1e-9);
  EXPECT_NEAR(one_rank(two, 2), 2.2, 1e-9);
}

// Two threads and a rank alone on two processors: 2/3 of one each until the rank is done with 1 s of work at 1.5;
// then the threads have got 1 of 2 s, and a processor each.
TEST(Regions, AreRunnableThreadsAmongOthers) {
  const char* const beside = "0 regions 2 count=1 threads=2 work=4 critical=2\n0 exit 0\n1 compute 1\n1 exit 0\n";
  EXPECT_THAT(finish(beside, 2, 1, 2), are(2.5, 1.5));
}

TEST(Regions, MeasuredTimeIsAsItRan) {
  engine::Target target =
      make_target(2, "block", 1, 2, std::make_shared<const engine::Network>(engine::Network::zero()));
  target.threads = 4;
  EXPECT_THAT(golden::predict_all(kBalanced, 2, {target}).front().rank_measured_s, are(3.2, 3.2));
}

}  // namespace
}  // namespace lbf::regions_test
