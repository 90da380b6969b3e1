// What waiting ranks cost each other: times that can be worked out on paper. A message takes 1 s, a vain poll
// 1 s of work on one node, 3 s where connections to other nodes are polled, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/golden/predict.h"

namespace lbf::waiting_test {
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
std::vector<Seconds> finish(engine::Waiting waiting, std::uint32_t cores, const std::string& placement = "block",
                            std::uint32_t nodes = 1, const std::string& network = kNetwork) {
  engine::Target target = make_target(3, placement, nodes, cores, golden::network(network));
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
  EXPECT_THAT(finish(engine::Waiting::kYield, 1), ElementsAre(4, 6, 7));
  EXPECT_THAT(finish(engine::Waiting::kBlock, 1), ElementsAre(4, 5, 6));
}

TEST(WaitingRanks, TakeTurnsOnAllProcessorsOfTheNode) {
  EXPECT_THAT(finish(engine::Waiting::kYield, 2), ElementsAre(4, 5.5, 6.5));
}

TEST(WaitingRanks, CostNothingWhereEachHasAProcessor) {
  EXPECT_THAT(finish(engine::Waiting::kYield, 3), ElementsAre(4, 5, 6));
}

TEST(WaitingRanks, PollTheirConnectionsWhereTheyHaveAny) {
  EXPECT_THAT(finish(engine::Waiting::kYield, 1, "map=0,1,1", 2), ElementsAre(4, 8, 9));
  // All on one of two nodes: nobody has a connection.
  EXPECT_THAT(finish(engine::Waiting::kYield, 1, "map=1,1,1", 2), ElementsAre(4, 6, 7));
}

// A message of the own node comes from a process that had the processor: it has to be switched from there.
// The message for rank 1 is there at 5, a turn and a switch pass; rank 2's at 7.5, a switch passes.
TEST(WaitingRanks, HaveTheProcessorBackFromASenderOfTheirNode) {
  std::string network = kNetwork;
  network.replace(network.find("turn_us = 1e6"), 0, "switch_us = 0.5e6\n");
  network.replace(network.find("turn_us = 3e6"), 0, "switch_us = 2e6\n");
  const auto switched = [&](engine::Waiting waiting, std::uint32_t cores, const std::string& placement = "block",
                            std::uint32_t nodes = 1) { return finish(waiting, cores, placement, nodes, network); };
  EXPECT_THAT(switched(engine::Waiting::kYield, 1), ElementsAre(4, 6.5, 8));
  EXPECT_THAT(switched(engine::Waiting::kYield, 2), ElementsAre(4, 5.75, 7));
  EXPECT_THAT(switched(engine::Waiting::kYield, 3), ElementsAre(4, 5, 6));
  EXPECT_THAT(switched(engine::Waiting::kBlock, 1), ElementsAre(4, 5, 6));
  // Rank 1's message comes from the other node; rank 2's from its own, whose ranks have connections to poll.
  EXPECT_THAT(switched(engine::Waiting::kYield, 1, "map=0,1,1", 2), ElementsAre(4, 8, 11));
}

std::vector<Seconds> finish_two(const std::string& keys, const std::string& rank0, const std::string& rank1) {
  const std::string network = "name = \"one\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 0]]\n" + keys;
  return golden::predict_all(rank0 + rank1, 2, {make_target(2, "block", 1, 1, golden::network(network))})
      .front()
      .rank_finish_s;
}

// Both work for 4 s on one processor and send at 8. Neither waits in the model; really one would have waited
// for the other, so half of a switch passes for each.
TEST(WaitingRanks, ThatGoOnTogetherHaveHalfOfASwitchEach) {
  const std::string rank0 =
      "0 isend 4 to=1 tag=0 bytes=1 req=1\n0 startRecv 0 from=1 tag=0\n0 endRecv 0 from=1 tag=0 bytes=1\n"
      "0 wait 0 req=1\n0 exit 0\n";
  const std::string rank1 =
      "1 isend 4 to=0 tag=0 bytes=1 req=1\n1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=1\n"
      "1 wait 0 req=1\n1 exit 0\n";
  EXPECT_THAT(finish_two("switch_us = 1e6\n", rank0, rank1), ElementsAre(9, 9));
  EXPECT_THAT(finish_two("", rank0, rank1), ElementsAre(8, 8));
}

// A turn is work: it shares the processor with rank 3, which works all the time.
TEST(WaitingRanks, TakeTurnsFromThoseThatWork) {
  engine::Target target = make_target(4, "block", 1, 1, golden::network(kNetwork));
  const auto prediction = golden::predict_all(
      "0 blocked 0 off=4\n0 send 0 to=1 tag=0 bytes=1\n0 exit 0\n"
      "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=1\n1 send 0 to=2 tag=0 bytes=1\n1 exit 0\n"
      "2 startRecv 0 from=1 tag=0\n2 endRecv 0 from=1 tag=0 bytes=1\n2 exit 0\n"
      "3 compute 20\n3 exit 0\n",
      4, {target});
  // The turn of rank 2 takes 2 s, from 5 to 7.
  EXPECT_THAT(prediction.front().rank_finish_s, ElementsAre(4, 7, 8, 21));
}

// Rank 0 works for 1 s, looks 10 times for messages that are not there, which took 3 s of processor, and sends to rank
// 1, which waits. Each look gives the processor away: who waits on the node looks as often.
std::vector<Seconds> finish_looks(engine::Waiting waiting, Rank ranks, std::uint32_t cores,
                                  const std::string& keys = "") {
  std::string trace = "0 compute 1 looks=10 time=3\n0 send 0 to=1 tag=0 bytes=1\n0 exit 0\n";
  for (Rank rank = 1; rank < ranks; ++rank) {
    const std::string line = "\n" + std::to_string(rank) + " ";
    const std::string from = " from=" + std::to_string(rank - 1) + " tag=0";
    trace += line.substr(1) + "startRecv 0" + from + line + "endRecv 0" + from + " bytes=1";
    if (rank + 1 < ranks) trace += line + "send 0 to=" + std::to_string(rank + 1) + " tag=0 bytes=1";
    trace += line + "exit 0\n";
  }
  const std::string network = "name = \"one\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 0]]\n" + keys;
  engine::Target target = make_target(ranks, "block", 1, cores, golden::network(network));
  target.waiting = waiting;
  return golden::predict_all(trace, ranks, {target}).front().rank_finish_s;
}

TEST(VainLooks, GiveTheProcessorToThoseThatWait) {
  EXPECT_THAT(finish_looks(engine::Waiting::kYield, 2, 1), ElementsAre(7, 7));
  // One of two processors has two of the three, and the pace is that one's.
  EXPECT_THAT(finish_looks(engine::Waiting::kYield, 3, 2), ElementsAre(7, 7, 7));
}

TEST(VainLooks, CostNothingWhereNobodyGivesItsProcessorAway) {
  EXPECT_THAT(finish_looks(engine::Waiting::kYield, 2, 2), ElementsAre(1, 1));
  EXPECT_THAT(finish_looks(engine::Waiting::kBlock, 2, 1), ElementsAre(1, 1));
  EXPECT_THAT(finish_looks(engine::Waiting::kSpin, 2, 1), ElementsAre(2, 2));
}

// A run with a processor for each rank has cheap looks. 10 turns of 1 s are more than its 3 s, then a turn is free.
TEST(VainLooks, TakeTheNetworksTurnsWhereTheseAreLonger) {
  EXPECT_THAT(finish_looks(engine::Waiting::kYield, 2, 1, "turn_us = 1e6\n"), ElementsAre(21, 21));
  EXPECT_THAT(finish_looks(engine::Waiting::kYield, 2, 1, "turn_us = 1e5\n"), ElementsAre(7, 7));
}

// Both look, each in its turn; a rank that sleeps between its looks takes none.
TEST(VainLooks, OfSeveralRanksShareTheProcessor) {
  const std::string looks = " compute 0 looks=5 time=3\n";
  const std::string sleeps =
      "2 startRecv 0 from=1 tag=0\n2 blocked 0 off=8 every=1\n2 endRecv 0 from=1 tag=0 bytes=1\n2 exit 0\n";
  EXPECT_THAT(
      golden::predict_all(
          "0" + looks + "0 exit 0\n1" + looks + "1 send 0 to=2 tag=0 bytes=1\n1 exit 0\n" + sleeps, 3,
          {make_target(3, "block", 1, 1,
                       golden::network("name = \"one\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 0]]\n"))})
          .front()
          .rank_finish_s,
      ElementsAre(6, 6, 6));
}

// A rank that sleeps between looks finds the message at the first one after its arrival, here at 5 s; each sleep is
// 3 s, however many there were in the run.
TEST(SleepsBetweenLooks, EndAtTheNextOneThatFindsTheMessage) {
  const auto finish_of_looks = [](const std::string& sleep_and_wait) {
    const engine::Target target = make_target(2, "block", 1, 2, golden::network(kNetwork));
    return golden::predict_all("0 send 4 to=1 tag=0 bytes=1\n0 exit 0\n1 startRecv 0 from=0 tag=0 req=1\n" +
                                   sleep_and_wait + "1 exit 0\n",
                               2, {target})
        .front()
        .rank_finish_s[1];
  };
  EXPECT_EQ(finish_of_looks("1 blocked 0 off=9 every=3\n1 endRecv 0 from=0 tag=0 bytes=1 req=1\n"), 6);
  // What it did between the looks is work: it begins to wait after it.
  EXPECT_EQ(finish_of_looks("1 blocked 1 off=9 every=3\n1 endRecv 0.5 from=0 tag=0 bytes=1 req=1\n"), 7.5);
  // The message was there before it looked: no sleep.
  EXPECT_EQ(finish_of_looks("1 blocked 0 off=9 every=3\n1 endRecv 8 from=0 tag=0 bytes=1 req=1\n"), 8);
  // No look but a blocking call after the sleep: that is kept.
  EXPECT_EQ(finish_of_looks("1 blocked 0 off=9 every=3\n1 compute 0\n1 endRecv 0 from=0 tag=0 bytes=1 req=1\n"), 9);
}

// ... and lets the others have the processor meanwhile.
TEST(SleepsBetweenLooks, TakeNoProcessor) {
  const std::string trace =
      "0 send 4 to=1 tag=0 bytes=1\n0 exit 0\n"
      "1 startRecv 0 from=0 tag=0\n1 blocked 0 off=30 every=3\n1 endRecv 0 from=0 tag=0 bytes=1\n1 send 0 to=2 tag=0 "
      "bytes=1\n1 exit 0\n"
      "2 startRecv 0 from=1 tag=0\n2 endRecv 0 from=1 tag=0 bytes=1\n2 exit 0\n";
  for (const engine::Waiting waiting : {engine::Waiting::kYield, engine::Waiting::kBlock}) {
    engine::Target target = make_target(3, "block", 1, 1, golden::network(kNetwork));
    target.waiting = waiting;
    EXPECT_THAT(golden::predict_all(trace, 3, {target}).front().rank_finish_s, ElementsAre(4, 6, 7));
  }
}

}  // namespace
}  // namespace lbf::waiting_test