// Small traces whose times can be worked out on paper; the working is beside each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/golden/predict.h"

namespace lbf::golden_replay_test {
namespace {

using golden::network;
using golden::Outcome;
using golden::predict;
using testing::DoubleEq;
using testing::ElementsAre;

// A remote message takes 100 s, one inside a node 10 s, whatever its size.
const char* const kSlow = R"(
name = "slow"
[[path]]
locality = "remote"
table = [[0, 100e6]]
[[path]]
locality = "self-node"
table = [[0, 10e6]]
)";

// 1 s of work to send, 2 s of flight, 3 s of work to receive.
const char* const kProtocol = R"(
name = "protocol"
[[path]]
locality = "remote"
send_cpu = [[0, 1e6]]
table = [[0, 2e6]]
recv_cpu = [[0, 3e6]]
)";

TEST(Golden, Fig3Is7) {
  std::ifstream in(std::string(LBF_GOLDEN_DIR) + "/fig3.lbf");
  std::string line;
  std::string trace;
  while (std::getline(in, line)) {
    if (!line.starts_with("lbf-trace") && !line.starts_with("ranks")) trace += line + "\n";
  }
  const Outcome outcome = predict(trace, 3, "map=0,0,1", 2, 1);
  EXPECT_EQ(outcome.prediction.lbf_s, 7.0);
  EXPECT_TRUE(outcome.diagnosis.ok());
  // With a processor each it is the Critical Path: P3's send at 5, P1's exit 2 later.
  EXPECT_EQ(predict(trace, 3, "block", 3, 1).prediction.lbf_s, 7.0);
  EXPECT_THAT(predict(trace, 3, "block", 3, 1).prediction.rank_finish_s, ElementsAre(7.0, 3.0, 6.0));
  // All on one processor: 3 of P1, 3 of P2 and 6 of P3, and the processor is never idle (while P1 waits, P3
  // works).
  EXPECT_EQ(predict(trace, 3, "block", 1, 1).prediction.lbf_s, 12.0);
}

TEST(Golden, FourProcessesShareTwoProcessors) {
  // Each has 1 s: 4 on 2 processors run at half speed, all end at 2; at twice the speed at 1.
  const std::string trace = "0 exit 1\n1 exit 1\n2 exit 1\n3 exit 1\n";
  EXPECT_THAT(predict(trace, 4, "block", 1, 2).prediction.rank_finish_s, ElementsAre(2.0, 2.0, 2.0, 2.0));
  EXPECT_THAT(predict(trace, 4, "block", 1, 2, nullptr, 2.0).prediction.rank_finish_s, ElementsAre(1.0, 1.0, 1.0, 1.0));
  // 1, 2, 3, 4 s on 2 processors. Until all have got 1 (time 2) half speed; three at 2/3 until 2 (time 3.5);
  // then one processor each: 4.5 and 5.5.
  EXPECT_THAT(predict("0 exit 1\n1 exit 2\n2 exit 3\n3 exit 4\n", 4, "block", 1, 2).prediction.rank_finish_s,
              ElementsAre(2.0, 3.5, 4.5, 5.5));
}

TEST(Golden, MessagesInsideANodeAndBetweenNodes) {
  const std::string trace =
      "0 send 1 to=1 tag=0 bytes=8\n0 exit 0\n"
      "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=8\n1 send 0 to=2 tag=0 bytes=8\n1 exit 0\n"
      "2 startRecv 0 from=1 tag=0\n2 endRecv 0 from=1 tag=0 bytes=8\n2 exit 0.5\n";
  // 1 + 10 inside node 0, + 100 to node 1, + 0.5.
  EXPECT_THAT(predict(trace, 3, "map=0,0,1", 2, 2, network(kSlow)).prediction.rank_finish_s,
              ElementsAre(1.0, 11.0, 111.5));
  EXPECT_THAT(predict(trace, 3, "map=0,0,1", 2, 1, network(kSlow)).prediction.rank_finish_s,
              ElementsAre(1.0, 11.0, 111.5));  // nobody works at the same time: sharing changes nothing
}

TEST(Golden, ProtocolProcessingIsWork) {
  const std::string trace =
      "0 send 1 to=1 tag=0 bytes=0\n0 exit 1\n1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 "
      "bytes=0\n1 exit 4\n";
  // Sender: 1 + 1 (send_cpu) = 2, then 1. Receiver: arrives at 4, + 3 (recv_cpu) = 7, + 4 = 11.
  EXPECT_THAT(predict(trace, 2, "block", 2, 1, network(kProtocol)).prediction.rank_finish_s, ElementsAre(3.0, 11.0));
  // Twice as fast a processor: sender (1 + 1)/2 = 1, + 0.5; receiver 1 + 2 = 3, + 1.5 + 2.
  EXPECT_THAT(predict(trace, 2, "block", 2, 1, network(kProtocol), 2.0).prediction.rank_finish_s,
              ElementsAre(1.5, 6.5));
  // Sharing one processor with the only path: as above but the sender's last second is alone, at 3.
  EXPECT_THAT(predict(trace, 2, "block", 1, 1, network(kProtocol)).prediction.rank_finish_s, ElementsAre(3.0, 11.0));
}

TEST(Golden, BlockedTimeNeedsNoProcessor) {
  // Rank 0 is off for 5 s, rank 1 has the processor meanwhile.
  EXPECT_THAT(predict("0 blocked 1 off=5\n0 exit 1\n1 exit 3\n", 2, "block", 1, 1).prediction.rank_finish_s,
              ElementsAre(8.0, 4.0));
}

TEST(Golden, MessagesOvertakeAcrossTags) {
  // The receiver takes tag 2 first: sent at 3; then tag 1, which is there long since.
  const std::string trace =
      "0 send 1 to=1 tag=1 bytes=0\n0 send 2 to=1 tag=2 bytes=0\n0 exit 0\n"
      "1 startRecv 0 from=0 tag=2\n1 endRecv 0 from=0 tag=2 bytes=0\n1 startRecv 1 from=0 tag=1\n"
      "1 endRecv 0 from=0 tag=1 bytes=0\n1 exit 0\n";
  EXPECT_THAT(predict(trace, 2, "block", 2, 1).prediction.rank_finish_s, ElementsAre(3.0, 4.0));
}

TEST(Golden, NonBlockingReceivesPairInPostingOrder) {
  // Two receives on one channel complete in the opposite order: request 2 has the second message, sent at 5.
  const std::string trace =
      "0 isend 1 to=1 tag=0 bytes=0 req=1\n0 isend 4 to=1 tag=0 bytes=0 req=2\n0 wait 0 req=1,2\n0 exit 0\n"
      "1 startRecv 0 from=0 tag=0 req=1\n1 startRecv 0 from=0 tag=0 req=2\n"
      "1 endRecv 0 from=0 tag=0 bytes=0 req=2\n1 compute 1\n1 endRecv 0 from=0 tag=0 bytes=0 req=1\n1 exit "
      "0\n";
  EXPECT_THAT(predict(trace, 2, "block", 2, 1).prediction.rank_finish_s, ElementsAre(5.0, 6.0));
}

TEST(Golden, WildcardTakesThePlaceOfTheMatchThatHappened) {
  // Posted first for anything, it got rank 2's message (at 7); the concrete one got rank 1's (at 3).
  const std::string trace =
      "0 startRecv 0 from=any tag=any req=1\n0 startRecv 0 from=1 tag=5 req=2\n"
      "0 endRecv 0 from=1 tag=5 bytes=0 req=2\n0 compute 1\n0 endRecv 0 from=2 tag=9 bytes=0 req=1\n0 exit "
      "1\n"
      "1 send 3 to=0 tag=5 bytes=0\n1 exit 0\n2 send 7 to=0 tag=9 bytes=0\n2 exit 0\n";
  const Outcome outcome = predict(trace, 3, "block", 3, 1);
  EXPECT_THAT(outcome.prediction.rank_finish_s, ElementsAre(8.0, 3.0, 7.0));
  EXPECT_EQ(outcome.stats.wildcard_receives, 1u);
  EXPECT_EQ(outcome.stats.messages, 2u);
}

TEST(Golden, SubCommunicatorRanks) {
  // Communicator 1 is world ranks 2, 0: its rank 0 is world rank 2.
  const std::string trace =
      "comm 1 2,0\n2 send 4 to=1 tag=0 bytes=0 comm=1\n2 exit 0\n"
      "0 startRecv 0 from=0 tag=0 comm=1\n0 endRecv 0 from=0 tag=0 bytes=0 comm=1\n0 exit 1\n1 exit 0\n";
  EXPECT_THAT(predict(trace, 3, "block", 3, 1).prediction.rank_finish_s, ElementsAre(5.0, 0.0, 4.0));
}

}  // namespace
}  // namespace lbf::golden_replay_test