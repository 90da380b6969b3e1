// First contact: times that can be worked out on paper. Between nodes a message takes 1 s, a rank's first one
// to a peer leaves 2 s later, and a rank that has no connection of its own yet has its first message 10 s
// later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/golden/predict.h"

namespace lbf::first_contact_test {
namespace {

using golden::make_target;
using golden::predict;
using golden::predict_all;
using testing::ElementsAre;

const char* const kNetwork = R"(
name = "lan"
[[path]]
locality = "remote"
eager_limit_bytes = 10
table = [[0, 1e6], [10, 1e6], [11, 4e6], [500, 4e6], [1000, 4e6]]
first_message_us = 2e6
first_peer_us = 10e6
[[path]]
locality = "self-node"
table = [[0, 1e6]]
)";

// Once on processors of their own (max-plus), once with the event queue (bus without a bandwidth to share).
class FirstContactOn : public testing::TestWithParam<bool> {
 protected:
  std::shared_ptr<const engine::Network> lan() {
    engine::Network lan = *engine::Network::parse(kNetwork, "lan.toml");
    if (GetParam()) lan.set_contention(engine::Contention::kBus);  // flat table: infinite bandwidth
    return std::make_shared<const engine::Network>(lan);
  }
  std::vector<Seconds> finish(const std::string& trace, Rank ranks, std::uint32_t nodes) {
    const auto outcome = predict(trace, ranks, "block", nodes, static_cast<std::uint32_t>(ranks), lan());
    EXPECT_TRUE(outcome.diagnosis.ok()) << outcome.diagnosis.error().message;
    return outcome.prediction.rank_finish_s;
  }
};

// Sent at 5, leaves at 7, arrives at 8; rank 1 looks for connections 10 s later, and has the second one, too.
TEST_P(FirstContactOn, OnlyTheFirstMessageWaitsForTheConnection) {
  EXPECT_THAT(finish("0 send 5 to=1 tag=0 bytes=1\n0 send 0 to=1 tag=9 bytes=1\n0 exit 0\n"
                     "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=1\n"
                     "1 startRecv 0 from=0 tag=9\n1 endRecv 0 from=0 tag=9 bytes=1\n1 exit 0\n",
                     2, 2),
              ElementsAre(7, 18));
}

// Rank 1 has the message at 13 and answers at once: it has the connection, and rank 0 made it.
TEST_P(FirstContactOn, AnAnswerFindsTheConnection) {
  EXPECT_THAT(finish("0 send 0 to=1 tag=0 bytes=1\n0 startRecv 0 from=1 tag=0\n"
                     "0 endRecv 0 from=1 tag=0 bytes=1\n0 exit 0\n"
                     "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=1\n"
                     "1 send 0 to=0 tag=0 bytes=1\n1 exit 0\n",
                     2, 2),
              ElementsAre(14, 13));
}

TEST_P(FirstContactOn, OfTwoThatSendAtTheSameTimeNeitherHasAConnectionYet) {
  const auto side = [](const std::string& me, const std::string& peer) {
    return me + " isend 0 to=" + peer + " tag=0 bytes=1 req=1\n" + me + " startRecv 0 from=" + peer + " tag=0\n" + me +
           " endRecv 0 from=" + peer + " tag=0 bytes=1\n" + me + " wait 0 req=1\n" + me + " exit 0\n";
  };
  EXPECT_THAT(finish(side("0", "1") + side("1", "0"), 2, 2), ElementsAre(13, 13));
}

TEST_P(FirstContactOn, EachPairConnectsOnItsOwn) {
  const std::string receivers =
      "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=1\n1 exit 0\n"
      "2 startRecv 0 from=0 tag=0\n2 endRecv 0 from=0 tag=0 bytes=1\n2 exit 0\n";
  EXPECT_THAT(finish("0 send 0 to=1 tag=0 bytes=1\n0 send 0 to=2 tag=0 bytes=1\n0 exit 0\n" + receivers, 3, 3),
              ElementsAre(4, 13, 15));
  // Without waiting for one connection before the next.
  EXPECT_THAT(finish("0 isend 0 to=1 tag=0 bytes=1 req=1\n0 isend 0 to=2 tag=0 bytes=1 req=2\n"
                     "0 wait 0 req=1,2\n0 exit 0\n" +
                         receivers,
                     3, 3),
              ElementsAre(0, 13, 13));
}

TEST_P(FirstContactOn, InsideANodeThereIsNothingToConnect) {
  EXPECT_THAT(finish("0 send 5 to=1 tag=0 bytes=1\n0 exit 0\n"
                     "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=1\n1 exit 0\n",
                     2, 1),
              ElementsAre(5, 6));
}

// The announcement leaves at 2 and is there at 3, the data 3 s later; the sender is free 1 s before that.
// Rank 1 sent to rank 0 at 0, which had left at 2: after rank 0's message was ready, so it looks 10 s later.
TEST_P(FirstContactOn, ARendezvousIsAnnouncedLater) {
  EXPECT_THAT(finish("0 send 0 to=1 tag=0 bytes=100\n0 exit 0\n"
                     "1 isend 0 to=0 tag=0 bytes=1 buffered=1 req=1\n1 startRecv 0 from=0 tag=0\n"
                     "1 endRecv 0 from=0 tag=0 bytes=100\n1 wait 0 req=1\n1 exit 0\n",
                     2, 2),
              ElementsAre(5, 16));
}

INSTANTIATE_TEST_SUITE_P(Replays, FirstContactOn, testing::Bool(),
                         [](const auto& use) { return use.param ? std::string("Shared") : std::string("Dedicated"); });

// On every target on its own: one node, two nodes, two nodes of a network without the keys.
TEST(FirstContact, IsTheTargetsOwn) {
  const auto lan = golden::network(kNetwork);
  const auto plain = golden::network("name = \"plain\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 1e6]]\n");
  const auto predictions = predict_all(
      "0 send 5 to=1 tag=0 bytes=1\n0 exit 0\n"
      "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=1\n1 exit 0\n",
      2,
      {make_target(2, "block", 1, 2, lan), make_target(2, "block", 2, 1, lan), make_target(2, "block", 2, 1, plain)});
  EXPECT_THAT(predictions[0].rank_finish_s, ElementsAre(5, 6));
  EXPECT_THAT(predictions[1].rank_finish_s, ElementsAre(7, 18));
  EXPECT_THAT(predictions[2].rank_finish_s, ElementsAre(5, 6));
}

}  // namespace
}  // namespace lbf::first_contact_test