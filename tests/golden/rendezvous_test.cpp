// Rendezvous: times that can be worked out on paper. A remote message takes 3 s if it has 10 bytes or less,
// else 10 s; an empty one takes 1 s; more than 10 bytes are a rendezvous.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/golden/predict.h"

namespace lbf::rendezvous_test {
namespace {

using golden::make_target;
using golden::network;
using golden::predict;
using golden::predict_all;
using testing::ElementsAre;
using testing::HasSubstr;

const char* const kNetwork = R"(
name = "lan"
[[path]]
locality = "remote"
eager_limit_bytes = 10
table = [[0, 1e6], [10, 3e6], [11, 10e6], [1000, 10e6]]
[[path]]
locality = "self-node"
table = [[0, 1e6], [10, 3e6], [11, 10e6], [1000, 10e6]]
)";

// Once on processors of their own (max-plus), once with the event queue (bus without a bandwidth to share).
class RendezvousOn : public testing::TestWithParam<bool> {
 protected:
  std::vector<Seconds> finish(const std::string& trace, Rank ranks) {
    engine::Network lan = *engine::Network::parse(kNetwork, "lan.toml");
    if (GetParam()) lan.set_contention(engine::Contention::kBus);  // flat table: infinite bandwidth
    const auto outcome = predict(trace, ranks, "block", static_cast<std::uint32_t>(ranks), 1,
                                 std::make_shared<const engine::Network>(lan));
    EXPECT_TRUE(outcome.diagnosis.ok()) << outcome.diagnosis.error().message;
    return outcome.prediction.rank_finish_s;
  }
};

TEST_P(RendezvousOn, AnEarlyReceiveCostsWhatTheTableSays) {
  // Sent at 5, posted at 0: arrives at 15; the sender is free a handshake (1 s) before.
  EXPECT_THAT(finish("0 send 5 to=1 tag=0 bytes=100\n0 exit 0\n"
                     "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=100\n1 exit 0\n",
                     2),
              ElementsAre(14, 15));
}

TEST_P(RendezvousOn, ALateReceiveHoldsTheSenderBack) {
  // Announced at 0, the announcement is there at 1, the receive is posted at 20: 9 s more until it arrives.
  EXPECT_THAT(finish("0 send 0 to=1 tag=0 bytes=100\n0 exit 0\n"
                     "1 startRecv 20 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=100\n1 exit 0\n",
                     2),
              ElementsAre(28, 29));
}

TEST_P(RendezvousOn, UpToTheEagerLimitNobodyWaits) {
  EXPECT_THAT(finish("0 send 0 to=1 tag=0 bytes=10\n0 exit 0\n"
                     "1 startRecv 20 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=10\n1 exit 0\n",
                     2),
              ElementsAre(0, 20));
}

TEST_P(RendezvousOn, ASynchronousSendWaitsWhateverItsSize) {
  // Posted at 20, the answer needs 1 s back; the message itself is there at 20 + 3 - 1.
  EXPECT_THAT(finish("0 send 0 to=1 tag=0 bytes=10 sync=1\n0 exit 0\n"
                     "1 startRecv 20 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=10\n1 exit 0\n",
                     2),
              ElementsAre(21, 22));
}

TEST_P(RendezvousOn, ABufferedSendWaitsForNobody) {
  EXPECT_THAT(finish("0 send 0 to=1 tag=0 bytes=100 buffered=1\n0 isend 0 to=1 tag=1 bytes=100 buffered=1 req=1\n"
                     "0 wait 0 req=1\n0 exit 0\n"
                     "1 startRecv 20 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=100\n"
                     "1 startRecv 0 from=0 tag=1\n1 endRecv 0 from=0 tag=1 bytes=100\n1 exit 0\n",
                     2),
              ElementsAre(0, 38));
}

TEST_P(RendezvousOn, ANonBlockingSendOverlapsWithWork) {
  // Starts at 1, arrives at 10, free at 9: 5 s of work fit in, 4 s of waiting are left.
  EXPECT_THAT(finish("0 isend 0 to=1 tag=0 bytes=100 req=1\n0 wait 5 req=1\n0 exit 0\n"
                     "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=100\n1 exit 0\n",
                     2),
              ElementsAre(9, 10));
}

TEST_P(RendezvousOn, AWildcardReceiveIsPostedWhenItWasPosted) {
  // Posted at 2 for anyone. Before it is waited for, the receiver needs a second message that the sender
  // sends only after the first one is gone.
  EXPECT_THAT(finish("0 send 0 to=1 tag=0 bytes=100\n0 send 0 to=1 tag=1 bytes=0\n0 exit 0\n"
                     "1 startRecv 2 from=any tag=0 req=1\n"
                     "1 startRecv 0 from=0 tag=1\n1 endRecv 0 from=0 tag=1 bytes=0\n"
                     "1 endRecv 0 from=0 tag=0 bytes=100 req=1\n1 exit 0\n",
                     2),
              ElementsAre(10, 11));
}

TEST_P(RendezvousOn, LargeExchangesOfACollectiveDoNotHoldEachOtherUp) {
  std::string trace;
  for (const char* rank : {"0", "1", "2", "3"}) {
    trace += std::string(rank) + " coll 0 op=alltoall bytes=100\n" + rank + " exit 0\n";
  }
  for (const Seconds seconds : finish(trace, 4)) {
    EXPECT_GE(seconds, 10);
    EXPECT_LE(seconds, 30);  // pairwise: three exchanges one after the other
  }
}

INSTANTIATE_TEST_SUITE_P(Both, RendezvousOn, testing::Bool(),
                         [](const auto& which) { return which.param ? "EventQueue" : "MaxPlus"; });

// Both send first: fine as long as the library buffers.
const char* const kSendFirst =
    "0 send 1 to=1 tag=0 bytes=100\n0 startRecv 0 from=1 tag=0\n"
    "0 endRecv 0 from=1 tag=0 bytes=100\n0 exit 0\n"
    "1 send 1 to=0 tag=0 bytes=100\n1 startRecv 0 from=0 tag=0\n"
    "1 endRecv 0 from=0 tag=0 bytes=100\n1 exit 0\n";

TEST(Rendezvous, AProgramThatReliesOnBuffersIsStuckWhereThereAreNone) {
  const auto outcome = predict(kSendFirst, 2, "block", 2, 1, network(kNetwork));
  EXPECT_FALSE(outcome.prediction.complete);
  ASSERT_FALSE(outcome.diagnosis.ok());
  EXPECT_EQ(outcome.diagnosis.error().message,
            "cyclic wait: rank 0 (event 1) waits until its message is received by rank 1, tag 0, communicator 0; "
            "rank 1 (event 1) waits until its message is received by rank 0, tag 0, communicator 0; back at rank 0 "
            "(event 1) (messages above the eager limit: the program relies on the library's buffers)");
}

TEST(Rendezvous, WhereItIsStuckDoesNotTouchOtherTargets) {
  const auto lan = network(kNetwork);
  const auto zero = std::make_shared<const engine::Network>(engine::Network::zero());
  // On one node nothing is a rendezvous (kNetwork), between nodes it is; all are replayed in one pass.
  const std::vector<engine::Target> targets{make_target(2, "block", 2, 1, lan), make_target(2, "block", 1, 2, lan),
                                            make_target(2, "block", 2, 1, zero), make_target(2, "cyclic", 2, 1, lan)};
  const std::vector<engine::Prediction> predictions = predict_all(kSendFirst, 2, targets);
  for (const std::size_t stuck : {0U, 3U}) {
    EXPECT_FALSE(predictions[stuck].complete);
    EXPECT_THAT(predictions[stuck].why_stuck, HasSubstr("relies on the library's buffers"));
  }
  EXPECT_TRUE(predictions[1].complete);
  EXPECT_THAT(predictions[1].rank_finish_s, ElementsAre(11, 11));
  EXPECT_TRUE(predictions[2].complete);
  EXPECT_THAT(predictions[2].rank_finish_s, ElementsAre(1, 1));
  EXPECT_TRUE(predictions[2].why_stuck.empty());
}

TEST(Rendezvous, AReceiveThatNeverComesIsNamed) {
  const auto outcome =
      predict("0 send 0 to=1 tag=3 bytes=100\n0 exit 0\n1 exit 1\n", 2, "block", 2, 1, network(kNetwork));
  ASSERT_FALSE(outcome.diagnosis.ok());
  EXPECT_EQ(outcome.diagnosis.error().message,
            "rank 0 waits at its event 1 until its message is received by rank 1, tag 3, communicator 0, "
            "which never "
            "does");
}

}  // namespace
}  // namespace lbf::rendezvous_test