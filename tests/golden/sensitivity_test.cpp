// What a time is made of, on paper. Between nodes a message takes 1 s, 1 s more for 10 bytes and 9 s more above, which
// is a rendezvous; the sender works 0.5 s for it and the receiver 0.25 s. Inside a node it takes 0.125 s.
#include "predictor/engine/metric/sensitivity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/golden/predict.h"

namespace lbf::sensitivity_golden_test {
namespace {

using engine::Parameter;
using engine::Term;
using golden::make_target;
using golden::network;

const char* const kNetwork = R"(
name = "lan"
[[path]]
locality = "remote"
eager_limit_bytes = 10
table = [[0, 1e6], [10, 2e6], [11, 10e6], [1000, 10e6]]
send_cpu = [[0, 0.5e6]]
recv_cpu = [[0, 0.25e6]]
[[path]]
locality = "self-node"
table = [[0, 0.125e6]]
)";

engine::Target two_nodes() {
  return make_target(2, "block", 2, 1, network(kNetwork));
}

engine::Composed composition(const std::string& trace, const engine::Target& target) {
  const auto predictions = golden::predict_all(trace, 2, {target}, engine::Clocks::kComposed);
  EXPECT_TRUE(predictions.front().complete) << predictions.front().why_stuck;
  return *predictions.front().composition;
}

Seconds time_s(const std::string& trace, const engine::Target& target) {
  return golden::predict_all(trace, 2, {target}).front().lbf_s;
}

// Rank 0 leaves at 5.5 what arrives at 7.5; rank 1 has it at 7.75.
const char* const kWaits =
    "0 send 5 to=1 tag=0 bytes=10\n0 exit 0\n"
    "1 startRecv 0 from=0 tag=0\n1 endRecv 3 from=0 tag=0 bytes=10\n1 exit 0\n";

TEST(Composition, OfAReceiveThatWaits) {
  const engine::Composed all = composition(kWaits, two_nodes());
  EXPECT_EQ(all.value, 7.75);
  EXPECT_EQ(all.of(Term::kWork), 5) << "the sender's: what rank 1 worked meanwhile counts for nothing";
  EXPECT_EQ(all.of(Term::kOverhead), 0.75);
  EXPECT_EQ(all.of(Term::kLatencyBetween), 1);
  EXPECT_EQ(all.of(Term::kBytesBetween), 1);
  EXPECT_EQ(all.of(Term::kLatencyInside), 0);
  EXPECT_EQ(all.of(Term::kBlocked), 0);
}

TEST(Composition, OfAReceiveThatDoesNotWait) {
  // The message is there at 7.5, rank 1 works until 9: 1.5 more than needed.
  const std::string trace =
      "0 send 5 to=1 tag=0 bytes=10\n0 exit 0\n"
      "1 startRecv 0 from=0 tag=0\n1 endRecv 9 from=0 tag=0 bytes=10\n1 exit 0\n";
  const engine::Composed all = composition(trace, two_nodes());
  EXPECT_EQ(all.value, 9.25);
  EXPECT_EQ(all.of(Term::kWork), 9);
  EXPECT_EQ(all.of(Term::kOverhead), 0.25);
  EXPECT_EQ(all.of(Term::kLatencyBetween), 0);
  EXPECT_EQ(time_s(trace, engine::scaled(two_nodes(), Parameter::kLatency, 2.5)), 9.25) << "a latency of 2.5 hides";
  EXPECT_EQ(time_s(trace, engine::scaled(two_nodes(), Parameter::kLatency, 3)), 9.75);
}

TEST(Composition, OfARendezvousWithALateReceive) {
  // Announced at 1.5, posted at 20: 9 s more until it is there. The announcement is no part of it.
  const engine::Composed all = composition(
      "0 send 0 to=1 tag=0 bytes=100\n0 exit 0\n"
      "1 startRecv 20 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=100\n1 exit 0\n",
      two_nodes());
  EXPECT_EQ(all.value, 29.25);
  EXPECT_EQ(all.of(Term::kWork), 20);
  EXPECT_EQ(all.of(Term::kBytesBetween), 9);
  EXPECT_EQ(all.of(Term::kLatencyBetween), 0);
}

TEST(Composition, OfBlockedTimeAndOneNode) {
  const engine::Composed all = composition(
      "0 blocked 2 off=3\n0 send 0 to=1 tag=0 bytes=10\n0 exit 0\n"
      "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=10\n1 exit 0\n",
      make_target(2, "block", 1, 2, network(kNetwork)));
  EXPECT_EQ(all.value, 5.125);
  EXPECT_EQ(all.of(Term::kWork), 2);
  EXPECT_EQ(all.of(Term::kBlocked), 3);
  EXPECT_EQ(all.of(Term::kLatencyInside), 0.125);
}

// Rank 0 leaves at 5.5 what goes by communicator 1, and at 7 an empty message by the world, which is there at 8. Rank 1
// had the first one at 7.75, and has the second one at 8.25.
TEST(Composition, ByRankAndCommunicator) {
  const auto predictions = golden::predict_all(
      "comm 1 0,1\n"
      "0 send 5 to=1 tag=0 bytes=10 comm=1\n0 send 1 to=1 tag=0 bytes=0\n0 exit 0\n"
      "1 startRecv 0 from=0 tag=0 comm=1\n1 endRecv 0 from=0 tag=0 bytes=10 comm=1\n"
      "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=0\n1 exit 0\n",
      2, {two_nodes()}, engine::Clocks::kFollowed);
  const engine::PathComposition& path = *predictions.front().path;
  EXPECT_EQ(path.all.value, 8.25);
  const auto by = [&](engine::PathBy grouping) {
    std::vector<std::pair<std::int64_t, Seconds>> out;
    for (const engine::PathShare& share : engine::path_shares(path, grouping))
      out.emplace_back(share.id, share.seconds);
    return out;
  };
  EXPECT_THAT(by(engine::PathBy::kRank), testing::ElementsAre(testing::Pair(0, 7), testing::Pair(1, 1.25)));
  EXPECT_THAT(by(engine::PathBy::kCommunicator), testing::ElementsAre(testing::Pair(engine::PathShare::kNone, 6),
                                                                      testing::Pair(0, 1.75), testing::Pair(1, 0.5)));
  EXPECT_EQ(path.mean_work_s, 3);
}

TEST(Scaled, EachParameterScalesItsTerms) {
  EXPECT_EQ(time_s(kWaits, engine::scaled(two_nodes(), Parameter::kLatency, 3)), 9.75);
  EXPECT_EQ(time_s(kWaits, engine::scaled(two_nodes(), Parameter::kGap, 3)), 9.75);
  EXPECT_EQ(time_s(kWaits, engine::scaled(two_nodes(), Parameter::kOverhead, 3)), 9.25);
  EXPECT_EQ(time_s(kWaits, engine::scaled(two_nodes(), Parameter::kSpeed, 2)), 13.5);
  const engine::Composed all = composition(kWaits, two_nodes());
  EXPECT_EQ(engine::scaled_s(all, Parameter::kLatency), 1);
  EXPECT_EQ(engine::scaled_s(all, Parameter::kGap), 1);
  EXPECT_EQ(engine::scaled_s(all, Parameter::kOverhead), 0.75);
  EXPECT_EQ(engine::scaled_s(all, Parameter::kSpeed), 5.75);
}

}  // namespace
}  // namespace lbf::sensitivity_golden_test
