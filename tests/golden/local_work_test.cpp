// What ranks do by themselves inside a collective: times that can be worked out on paper. A message takes 1
// s, a copy 2 s and a reduction 3 s, whatever their size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/golden/predict.h"

namespace lbf::local_work_test {
namespace {

using golden::make_target;
using golden::network;
using golden::predict_all;
using testing::ElementsAre;

const std::string kMessages = R"(
name = "lan"
[[path]]
locality = "remote"
table = [[0, 1e6]]
)";
const std::string kLocal = kMessages + "[local]\ncopy = [[0, 2e6]]\nreduce = [[0, 3e6]]\n";

std::string call(const std::string& what, Rank ranks, const std::string& first_starts = "0") {
  std::string trace;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::string number = std::to_string(rank);
    trace += number + " coll " + (rank == 0 ? first_starts : "0") + " " + what + "\n" + number + " exit 0\n";
  }
  return trace;
}

// On a node for each rank, and a processor.
std::vector<Seconds> apart(const std::string& trace, Rank ranks, const std::string& toml = kLocal, double speed = 1) {
  engine::Target target = make_target(ranks, "block", static_cast<std::uint32_t>(ranks), 1, network(toml));
  target.speed = speed;
  return predict_all(trace, ranks, {target}).front().rank_finish_s;
}
// On one node with so many processors.
std::vector<Seconds> together(const std::string& trace, Rank ranks, std::uint32_t cores) {
  return predict_all(trace, ranks, {make_target(ranks, "block", 1, cores, network(kLocal))}).front().rank_finish_s;
}

// Four ranks, linear: each copies its own block, then sends all others, then receives.
TEST(LocalWork, AllToAllCopiesTheOwnBlockFirst) {
  const std::string all = "op=alltoall bytes=100";
  EXPECT_THAT(apart(call(all, 4), 4), ElementsAre(3, 3, 3, 3));
  // The first one comes at 4: its messages leave at 6; what the others sent has been there since 3.
  EXPECT_THAT(apart(call(all, 4, "4"), 4), ElementsAre(6, 7, 7, 7));
  EXPECT_THAT(apart(call(all, 4), 4, kLocal, 2), ElementsAre(2, 2, 2, 2));  // processors twice as fast
  EXPECT_THAT(apart(call(all, 4), 4, kMessages), ElementsAre(1, 1, 1, 1));  // nobody knows what a copy costs
}

// Recursive doubling: each copies its vector, and combines it with another one in both rounds. The result
// goes from one of two vectors to the other where the partner is the higher rank: twice or never, it is in
// the wrong one.
TEST(LocalWork, AllreduceCopiesCombinesAndCopies) {
  // Copied at 2, combined at 2 + 1 + 3 = 6 and 6 + 1 + 3 = 10.
  EXPECT_THAT(apart(call("op=allreduce bytes=16", 4), 4), ElementsAre(12, 10, 10, 12));
}

// A binary tree: 3 to 1, 1 and 2 to 0.
TEST(LocalWork, ReduceCombinesWhatEachChildSends) {
  // Rank 1 has 3's vector at 1 and its own result at 4; rank 0 gets that at 5, combines it (8), then 2's
  // (11).
  EXPECT_THAT(apart(call("op=reduce bytes=8", 4), 4), ElementsAre(11, 4, 0, 0));
}

TEST(LocalWork, SharesTheProcessorAsOtherWorkDoes) {
  // Both copy until 4, hear of each other at 5, combine until 11; rank 1 copies alone.
  EXPECT_THAT(together(call("op=allreduce bytes=8", 2), 2, 1), ElementsAre(11, 13));
  EXPECT_THAT(together(call("op=allreduce bytes=8", 2), 2, 2), ElementsAre(6, 8));
}

TEST(LocalWork, TheOnlyRankOfACommunicatorCopies) {
  EXPECT_THAT(apart("comm 7 1\n0 exit 0\n1 coll 1 op=allgather bytes=8 comm=7\n1 exit 0\n", 2), ElementsAre(0, 3));
}

TEST(LocalWork, NoTargetDependsOnWhatOthersKnow) {
  const std::string trace = call("op=allreduce bytes=16", 4);
  const auto both =
      predict_all(trace, 4,
                  {make_target(4, "block", 4, 1, network(kMessages)), make_target(4, "block", 1, 2, network(kLocal)),
                   make_target(4, "block", 4, 1, network(kLocal))});
  EXPECT_EQ(both[0].rank_finish_s, apart(trace, 4, kMessages));
  EXPECT_EQ(both[1].rank_finish_s, together(trace, 4, 2));
  EXPECT_EQ(both[2].rank_finish_s, apart(trace, 4));
}

// The table is of bytes: 10 s from 0 to 100, more is several copies of 2^30 at most.
TEST(LocalWork, GoesByTheBytes) {
  const std::string toml = kMessages + "[local]\ncopy = [[0, 0], [100, 10e6]]\n";
  EXPECT_THAT(apart(call("op=alltoall bytes=50", 4), 4, toml), ElementsAre(6, 6, 6, 6));
  const std::string flat = kMessages + "[local]\ncopy = [[0, 1e6]]\n";
  EXPECT_THAT(apart(call("op=alltoall bytes=3000000000", 4), 4, flat), ElementsAre(4, 4, 4, 4));
}

}  // namespace
}  // namespace lbf::local_work_test