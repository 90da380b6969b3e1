// The façade: what it refuses, what it says about programs that do not end, predictions so far.
#include "predictor/engine/metric/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::predictor_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

engine::Target target(std::vector<std::uint32_t> node_of_rank, std::uint32_t nodes, std::uint32_t cores = 1) {
  engine::Target made;
  made.node_of_rank = std::move(node_of_rank);
  made.nodes = nodes;
  made.cores_per_node = cores;
  made.network = std::make_shared<const engine::Network>(engine::Network::zero());
  return made;
}

Event event(EventKind kind, Seconds process_s = 0, Rank peer = kAnyRank, std::int32_t tag = kAnyTag) {
  Event made;
  made.kind = kind;
  made.process_s = process_s;
  made.peer = peer;
  made.tag = tag;
  return made;
}

std::string refused(Rank ranks, std::vector<engine::Target> targets) {
  const auto made = engine::Predictor::make(ranks, std::move(targets));
  EXPECT_FALSE(made.ok());
  return made.ok() ? "" : made.error().message;
}

// A predictor of two targets: a node each, and all ranks on one processor.
class TwoTargets : public testing::Test {
 protected:
  void make(Rank ranks) {
    std::vector<std::uint32_t> apart;
    for (Rank rank = 0; rank < ranks; ++rank) apart.push_back(static_cast<std::uint32_t>(rank));
    ranks_ = ranks;
    predictor_ =
        *engine::Predictor::make(ranks, {target(apart, static_cast<std::uint32_t>(ranks)),
                                         target(std::vector<std::uint32_t>(static_cast<std::size_t>(ranks), 0), 1)});
  }
  void feed(Rank rank, const Event& e) {
    const Result<void> fed = predictor_->feed(rank, e);
    ASSERT_TRUE(fed.ok()) << fed.error().message;
  }
  std::string diagnosis() {
    for (Rank rank = 0; rank < ranks_; ++rank) predictor_->close(rank);
    EXPECT_TRUE(predictor_->advance().ok());
    const Result<void> whole = predictor_->diagnosis();
    return whole.ok() ? "" : whole.error().message;
  }
  Rank ranks_ = 0;
  std::unique_ptr<engine::Predictor> predictor_;
};

TEST(PredictorMake, RefusesTargetsThatCannotBe) {
  EXPECT_THAT(refused(0, {target({0}, 1)}), HasSubstr("ranks"));
  EXPECT_THAT(refused(1, {}), HasSubstr("no target"));
  EXPECT_THAT(refused(2, {target({0}, 1)}), HasSubstr("places 1 ranks"));
  EXPECT_THAT(refused(2, {target({0, 1}, 2), target({0, 2}, 2)}), AllOf(HasSubstr("target 2"), HasSubstr("rank 1")));
  EXPECT_THAT(refused(1, {target({0}, 0)}), HasSubstr("no node"));
  EXPECT_THAT(refused(1, {target({0}, 1, 0)}), HasSubstr("no processor"));
  engine::Target slow = target({0}, 1);
  slow.speed = 0;
  EXPECT_THAT(refused(1, {slow}), HasSubstr("speed"));
  engine::Target nowhere = target({0}, 1);
  nowhere.network = nullptr;
  EXPECT_THAT(refused(1, {nowhere}), HasSubstr("no network"));
  engine::Target uneven = target({0, 1}, 2);
  uneven.speed_of_node = {1.0};
  EXPECT_THAT(refused(2, {uneven}), HasSubstr("1 speeds for 2 nodes"));
  uneven.speed_of_node = {1.0, -1.0};
  EXPECT_THAT(refused(2, {uneven}), HasSubstr("speed"));
  uneven.speed_of_node.clear();
  uneven.cores_of_node = {1, 0};
  EXPECT_THAT(refused(2, {uneven}), HasSubstr("no processor"));
}

TEST_F(TwoTargets, AMessageThatWasNeverSentIsNamed) {
  make(2);
  feed(0, event(EventKind::kCompute, 1));
  feed(0, event(EventKind::kRecv, 1, 1, 5));
  feed(0, event(EventKind::kExit));
  feed(1, event(EventKind::kExit, 2));
  EXPECT_EQ(diagnosis(),
            "rank 0 waits at its event 2 for a message from rank 1, tag 5, communicator 0, that was never sent");
  for (const engine::Prediction& prediction : predictor_->predictions()) EXPECT_FALSE(prediction.complete);
}

TEST_F(TwoTargets, ARankThatStoppedIsNamed) {
  make(2);
  feed(0, event(EventKind::kRecv, 1, 1, 5));
  feed(0, event(EventKind::kExit));
  feed(1, event(EventKind::kCompute, 2));
  EXPECT_THAT(diagnosis(), HasSubstr("never sent: rank 1 stopped after its event 1"));
}

TEST_F(TwoTargets, AStopWithoutAnyoneWaiting) {
  make(2);
  feed(0, event(EventKind::kExit, 1));
  feed(1, event(EventKind::kCompute, 2));
  EXPECT_EQ(diagnosis(), "rank 1 stopped after its event 1 without reaching its end (MPI_Finalize)");
  EXPECT_THAT(predictor_->predictions()[0].rank_finish_s, ElementsAre(1.0, 2.0));
}

TEST_F(TwoTargets, ACyclicWaitIsNamed) {
  make(3);
  for (Rank rank = 0; rank < 3; ++rank) {
    feed(rank, event(EventKind::kRecv, 1, (rank + 1) % 3, 4));
    feed(rank, event(EventKind::kSend, 1, (rank + 2) % 3, 4));
    feed(rank, event(EventKind::kExit));
  }
  const std::string why = diagnosis();
  EXPECT_THAT(why,
              AllOf(HasSubstr("cyclic wait: rank 0 (event 1) waits for a message from rank 1, tag 4, communicator 0"),
                    HasSubstr("rank 2 (event 1)"), HasSubstr("back at rank 0 (event 1)")));
}

TEST_F(TwoTargets, TheCauseOfAChainIsNamedNotItsEnd) {
  make(3);
  feed(0, event(EventKind::kRecv, 1, 1, 0));
  feed(1, event(EventKind::kRecv, 1, 2, 0));
  feed(1, event(EventKind::kSend, 1, 0, 0));
  for (Rank rank = 0; rank < 3; ++rank) feed(rank, event(EventKind::kExit));
  EXPECT_THAT(diagnosis(), HasSubstr("rank 1 waits at its event 1 for a message from rank 2"));
}

TEST_F(TwoTargets, ANonBlockingCollectiveThatNotAllCalled) {
  make(2);
  Event barrier = event(EventKind::kIcollective);
  barrier.request = 1;
  barrier.flags = kFlagHasRequest;
  feed(0, barrier);
  Event wait = event(EventKind::kWait, 1);
  wait.request = 1;
  wait.flags = kFlagHasRequest;
  feed(0, wait);
  feed(0, event(EventKind::kExit));
  feed(1, event(EventKind::kExit));
  EXPECT_THAT(diagnosis(), AllOf(HasSubstr("a non-blocking collective of rank 0"), HasSubstr("rank 1, collective 1")));
}

TEST_F(TwoTargets, AnErrorIsFinalAndPredictionsStayReadable) {
  make(2);
  feed(0, event(EventKind::kCompute, 1));
  EXPECT_FALSE(predictor_->feed(0, event(EventKind::kSend, 1, 9, 0)).ok());
  const Result<void> after = predictor_->feed(1, event(EventKind::kCompute, 1));
  ASSERT_FALSE(after.ok());
  EXPECT_THAT(after.error().message, HasSubstr("rank 0, event 2"));
  EXPECT_THAT(diagnosis(), HasSubstr("rank 9 does not exist"));
  EXPECT_EQ(predictor_->predictions()[0].rank_finish_s[0], 1.0);
}

TEST_F(TwoTargets, LostEventsMakeItPartial) {
  make(1);
  Event gap = event(EventKind::kGap, 1);
  gap.bytes = 3;
  feed(0, gap);
  feed(0, event(EventKind::kExit, 1));
  EXPECT_THAT(diagnosis(), HasSubstr("3 events were lost"));
  EXPECT_EQ(predictor_->stats().lost_events, 3u);
  EXPECT_THAT(predictor_->stats().why_partial, HasSubstr("lost"));
  EXPECT_EQ(predictor_->predictions()[0].lbf_s, 2.0);
}

TEST_F(TwoTargets, PredictionsSoFarWithTheMeasuredTimeAtTheSamePoint) {
  make(2);
  Event first = event(EventKind::kCompute, 2);
  first.call_s = 10;
  feed(0, first);
  EXPECT_TRUE(predictor_->advance().ok());
  EXPECT_THAT(predictor_->predictions()[0].rank_finish_s, ElementsAre(2.0, 0.0));
  EXPECT_THAT(predictor_->predictions()[0].rank_measured_s, ElementsAre(12.0, 0.0));
  // On the shared processor rank 1 may still do something first (TSE Sec. 2.1).
  EXPECT_THAT(predictor_->predictions()[1].rank_finish_s, ElementsAre(0.0, 0.0));
  feed(1, event(EventKind::kKeepAlive, 5));
  EXPECT_TRUE(predictor_->advance().ok());
  EXPECT_THAT(predictor_->predictions()[1].rank_finish_s, ElementsAre(4.0, 0.0));
  Event off = event(EventKind::kBlocked, 1);
  off.off_s = 3;
  feed(0, off);
  feed(0, event(EventKind::kExit));
  feed(1, event(EventKind::kExit));
  EXPECT_EQ(diagnosis(), "");
  EXPECT_THAT(predictor_->predictions()[0].rank_measured_s, ElementsAre(16.0, 5.0));
  EXPECT_THAT(predictor_->predictions()[0].rank_finish_s, ElementsAre(6.0, 5.0));
  // Shared: both work until 6 (3 each), rank 0 is off until 9, rank 1's last 2 end at 8.
  EXPECT_THAT(predictor_->predictions()[1].rank_finish_s, ElementsAre(9.0, 8.0));
}

// Rank 1 works 1 s and looks each 3 s. Its second message was there at once in the run, and is not here: it sleeps for
// that one, too. They come at 4 and 8: it looks at 1, 4, then at 7, 10. On one processor its work ends at 2, they come
// at 5 and 9: it looks at 2, 5, then at 8, 11.
TEST_F(TwoTargets, WhoSleepsBetweenLooksDoesSoForEachMessage) {
  make(2);
  for (int i = 0; i < 2; ++i) feed(0, event(EventKind::kSend, 4, 1, i));
  feed(0, event(EventKind::kExit));
  Event sleep = event(EventKind::kBlocked);
  sleep.off_s = 6;
  set_look_period(sleep, 3'000'000'000);
  feed(1, sleep);
  for (int i = 0; i < 2; ++i) {
    Event found = event(EventKind::kProbe, 0, 0, i);
    found.function = 1;
    found.flags = kFlagCallBegin;
    if (i == 0) found.process_s = 1;
    feed(1, found);
    feed(1, event(EventKind::kRecv, 0, 0, i));
  }
  feed(1, event(EventKind::kExit));
  EXPECT_EQ(diagnosis(), "");
  EXPECT_THAT(predictor_->predictions()[0].rank_measured_s, ElementsAre(8.0, 7.0));
  EXPECT_THAT(predictor_->predictions()[0].rank_finish_s, ElementsAre(8.0, 10.0));
  EXPECT_THAT(predictor_->predictions()[1].rank_finish_s, ElementsAre(9.0, 11.0));
}

// A rank in a busy loop of MPI_Test was off its processor once for 3 s: each of its later waits ended at a multiple of
// that, and ABYSS-P was predicted 13 times too long.
TEST_F(TwoTargets, WhoSleptOnceAndThenNoMoreDoesNotSleep) {
  make(2);
  constexpr int kMessages = 20;
  for (int i = 0; i < kMessages; ++i) feed(0, event(EventKind::kSend, 4, 1, i));
  feed(0, event(EventKind::kExit));
  Event sleep = event(EventKind::kBlocked);
  sleep.off_s = 3;
  set_look_period(sleep, 3'000'000'000);
  feed(1, sleep);
  for (int i = 0; i < kMessages; ++i) {
    Event found = event(EventKind::kProbe, 0, 0, i);
    found.function = 1;
    found.flags = kFlagCallBegin;
    feed(1, found);
    feed(1, event(EventKind::kRecv, 0, 0, i));
  }
  feed(1, event(EventKind::kExit));
  EXPECT_EQ(diagnosis(), "");
  EXPECT_THAT(predictor_->predictions()[0].rank_finish_s, ElementsAre(80.0, 80.0));
}

// MPI_Test of a barrier in the background, each 2 s; the other rank is there at 5.
TEST_F(TwoTargets, ANonBlockingCollectiveIsFoundAtTheNextLook) {
  make(2);
  Event barrier = event(EventKind::kIcollective);
  barrier.request = 1;
  barrier.flags = kFlagHasRequest;
  Event wait = event(EventKind::kWait);
  wait.request = 1;
  wait.flags = kFlagHasRequest;
  Event sleep = event(EventKind::kBlocked);
  sleep.off_s = 8;
  set_look_period(sleep, 2'000'000'000);
  feed(0, barrier);
  feed(0, sleep);
  feed(0, wait);
  feed(1, event(EventKind::kCompute, 5));
  feed(1, barrier);
  feed(1, wait);
  for (const Rank rank : {0, 1}) feed(rank, event(EventKind::kExit));
  EXPECT_EQ(diagnosis(), "");
  EXPECT_THAT(predictor_->predictions()[0].rank_finish_s, ElementsAre(6.0, 5.0));
  EXPECT_THAT(predictor_->predictions()[1].rank_finish_s, ElementsAre(6.0, 5.0));
}

TEST_F(TwoTargets, ANonBlockingCollectiveGoesOnWhileItsRankWorks) {
  // Rank 1 enters the barrier at 5; rank 0 entered at 0 and works 5 meanwhile: its wait costs nothing.
  make(2);
  Event barrier = event(EventKind::kIcollective);
  barrier.request = 1;
  barrier.flags = kFlagHasRequest;
  Event wait = event(EventKind::kWait, 5);
  wait.request = 1;
  wait.flags = kFlagHasRequest;
  feed(0, barrier);
  feed(0, wait);
  feed(0, event(EventKind::kExit, 1));
  barrier.process_s = 5;
  wait.process_s = 0;
  feed(1, barrier);
  feed(1, wait);
  feed(1, event(EventKind::kExit));
  EXPECT_EQ(diagnosis(), "");
  EXPECT_THAT(predictor_->predictions()[0].rank_finish_s, ElementsAre(6.0, 5.0));
  EXPECT_EQ(predictor_->stats().nonblocking_collectives, 2u);
}

TEST_F(TwoTargets, CollectivesOnAnIntercommunicator) {
  make(5);
  // Group {0, 2, 4} and group {3, 1}: each side lists its own first.
  const std::vector<std::uint64_t> one{99, 3, 0, 2, 4, 3, 1};
  const std::vector<std::uint64_t> other{99, 2, 3, 1, 0, 2, 4};
  for (Rank rank = 0; rank < 5; ++rank) {
    const bool in_one = rank % 2 == 0;
    Event create = event(EventKind::kCommCreate);
    create.comm = 1;
    create.values = in_one ? one : other;
    feed(rank, create);
    for (CollectiveOp op : {CollectiveOp::kBarrier, CollectiveOp::kAllreduce, CollectiveOp::kBcast}) {
      Event call = event(EventKind::kCollective, 1 + rank);
      call.comm = 1;
      set_op(call, op);
      call.bytes = 8;
      if (op == CollectiveOp::kBcast)
        call.root = !in_one ? 2 : rank == 4 ? kRootIsMe : kRootIsElsewhere;  // from world rank 4
      feed(rank, call);
    }
    feed(rank, event(EventKind::kCommFree));
    feed(rank, event(EventKind::kExit));
  }
  EXPECT_EQ(diagnosis(), "");
  // Barrier and allreduce hold everybody until rank 4 (5 s of work each) is there; in the broadcast the other
  // group waits for rank 4 (at 15), its own group for nobody.
  EXPECT_THAT(predictor_->predictions()[0].rank_finish_s, ElementsAre(11.0, 15.0, 13.0, 15.0, 15.0));
}

TEST_F(TwoTargets, MemoryIsFlatInTheLengthOfTheTrace) {
  make(2);
  std::uint64_t most = 0;
  for (int i = 0; i < 200000; ++i) {
    feed(0, event(EventKind::kSend, 1, 1, i));
    feed(1, event(EventKind::kRecv, 1, 0, i));
    if (i % 1000 == 0) most = std::max(most, predictor_->stats().events_in_flight);
  }
  EXPECT_LT(most, 20000u);
}

TEST_F(TwoTargets, UnmodelledCallsAreKeptAndCounted) {
  make(1);
  Event call = event(EventKind::kUnmodelled, 1);
  call.call_s = 4;
  feed(0, call);
  feed(0, event(EventKind::kExit, 1));
  EXPECT_EQ(diagnosis(), "");
  EXPECT_EQ(predictor_->predictions()[0].lbf_s, 6.0);
  EXPECT_EQ(predictor_->stats().unmodelled_calls, 1u);
  EXPECT_EQ(predictor_->stats().unmodelled_s, 4.0);
}

}  // namespace
}  // namespace lbf::predictor_test