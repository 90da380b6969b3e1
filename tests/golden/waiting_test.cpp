// What waiting ranks cost each other: times that can be worked out on paper. A message takes 1 s, a vain poll
// 1 s of work on one node, 3 s where connections to other nodes are polled, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/golden/predict.h"

namespace lbf {
namespace {

using golden::make_target;
using testing::ElementsAre;

const char* const kNetwork = R"(
name = "lan"
[[path]]
locality = "self-node"
table = [[0, 1e6]]
turn_us = 1e6
[[path]]
locality = "remote"
table = [[0, 1e6]]
turn_us = 3e6
)";

// Rank 0 works for 4 s and sends to rank 1, which sends to rank 2; both wait from the start.
std::vector<Seconds> finish(Waiting waiting, std::uint32_t cores, const std::string& placement = "block",
                            std::uint32_t nodes = 1) {
  Target target = make_target(3, placement, nodes, cores, golden::network(kNetwork));
  target.waiting = waiting;
  return golden::predict_all(
             "0 send 4 to=1 tag=0 bytes=1\n0 exit 0\n"
             "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=1\n1 send 0 to=2 tag=0 bytes=1\n1 "
             "exit 0\n"
             "2 startRecv 0 from=1 tag=0\n2 endRecv 0 from=1 tag=0 bytes=1\n2 exit 0\n",
             3, {target})
      .front()
      .rank_finish_s;
}

// The message for rank 1 is there at 5, rank 2 has its turn before it; nobody waits beside rank 2 at 7.
TEST(WaitingRanks, LetEachOtherHaveTheirTurns) {
  EXPECT_THAT(finish(Waiting::kYield, 1), ElementsAre(4, 6, 7));
  EXPECT_THAT(finish(Waiting::kBlock, 1), ElementsAre(4, 5, 6));
}

TEST(WaitingRanks, TakeTurnsOnAllProcessorsOfTheNode) {
  EXPECT_THAT(finish(Waiting::kYield, 2), ElementsAre(4, 5.5, 6.5));
}

TEST(WaitingRanks, CostNothingWhereEachHasAProcessor) {
  EXPECT_THAT(finish(Waiting::kYield, 3), ElementsAre(4, 5, 6));
}

TEST(WaitingRanks, PollTheirConnectionsWhereTheyHaveAny) {
  EXPECT_THAT(finish(Waiting::kYield, 1, "map=0,1,1", 2), ElementsAre(4, 8, 9));
  // All on one of two nodes: nobody has a connection.
  EXPECT_THAT(finish(Waiting::kYield, 1, "map=1,1,1", 2), ElementsAre(4, 6, 7));
}

// A turn is work: it shares the processor with rank 3, which works all the time.
TEST(WaitingRanks, TakeTurnsFromThoseThatWork) {
  Target target = make_target(4, "block", 1, 1, golden::network(kNetwork));
  const auto prediction = golden::predict_all(
      "0 blocked 0 off=4\n0 send 0 to=1 tag=0 bytes=1\n0 exit 0\n"
      "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=1\n1 send 0 to=2 tag=0 bytes=1\n1 exit 0\n"
      "2 startRecv 0 from=1 tag=0\n2 endRecv 0 from=1 tag=0 bytes=1\n2 exit 0\n"
      "3 compute 20\n3 exit 0\n",
      4, {target});
  // The turn of rank 2 takes 2 s, from 5 to 7.
  EXPECT_THAT(prediction.front().rank_finish_s, ElementsAre(4, 7, 8, 21));
}

}  // namespace
}  // namespace lbf
