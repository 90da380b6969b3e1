// What the matcher makes of events: which message each receive takes, and which contradictions it names.
#include "predictor/engine/match/matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::matcher_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Event make(EventKind kind, Rank peer = kAnyRank, std::int32_t tag = kAnyTag, int request = -1) {
  Event event;
  event.kind = kind;
  event.peer = peer;
  event.tag = tag;
  if (request >= 0) {
    event.request = static_cast<std::uint32_t>(request);
    event.flags |= kFlagHasRequest;
  }
  return event;
}
Event send(Rank to, std::int32_t tag, Bytes bytes = 0) {
  Event event = make(EventKind::kSend, to, tag);
  event.bytes = bytes;
  return event;
}
Event post(Rank from, std::int32_t tag, int request = -1) {
  Event event = make(EventKind::kStartRecv, from, tag, request);
  if (from == kAnyRank) event.flags |= kFlagWildcardSource;
  if (tag == kAnyTag) event.flags |= kFlagWildcardTag;
  return event;
}
Event complete(Rank from, std::int32_t tag, int request = -1) {
  return make(EventKind::kEndRecv, from, tag, request);
}

class Match : public testing::Test {
 protected:
  void feed(Rank rank, const Event& event) {
    const Result<void> fed = matcher_.feed(rank, event);
    ASSERT_TRUE(fed.ok()) << fed.error().message;
  }
  std::string refused(Rank rank, const Event& event) {
    const Result<void> fed = matcher_.feed(rank, event);
    EXPECT_FALSE(fed.ok());
    return fed.ok() ? "" : fed.error().message;
  }
  // Bytes of the messages that the rank's receive ops take, in order (tests give each send its own size).
  std::vector<Bytes> received(Rank rank) {
    std::vector<Bytes> bytes;
    engine::OpStore::Cursor& cursor = cursors_[static_cast<std::size_t>(rank)];
    while (const engine::Op* op = store_.front(static_cast<engine::ProcessIndex>(rank), cursor)) {
      if (op->kind == engine::OpKind::kRecv) bytes.push_back(store_.message(op->message()).bytes);
      engine::OpStore::pop(cursor);
    }
    return bytes;
  }
  engine::OpStore store_{4, 1};
  engine::Matcher matcher_{4, store_};
  std::vector<engine::OpStore::Cursor> cursors_ = std::vector<engine::OpStore::Cursor>(4);
};

TEST_F(Match, PostingOrderDecidesNotCompletionOrder) {
  feed(0, post(1, 7, 1));
  feed(0, post(1, 7, 2));
  feed(0, complete(1, 7, 2));
  feed(0, complete(1, 7, 1));
  feed(1, send(0, 7, 100));
  feed(1, send(0, 7, 200));
  EXPECT_THAT(received(0), testing::ElementsAre(200, 100));
  EXPECT_EQ(matcher_.stats().messages, 2u);
}

Event operation(OneSidedOp op, Rank target, Bytes bytes, int request = -1) {
  Event event = make(EventKind::kOneSided, target, kAnyTag, request);
  set_op(event, op);
  event.bytes = bytes;
  return event;
}

TEST_F(Match, ASyncReceivesTheAnswersInTheOrderOfIssue) {
  feed(0, operation(OneSidedOp::kGet, 1, 100));
  feed(0, operation(OneSidedOp::kPut, 2, 200));
  feed(0, operation(OneSidedOp::kFetchAndOp, 1, 8, 5));
  feed(0, operation(OneSidedOp::kGet, 1, 300));
  feed(0, make(EventKind::kWait, kAnyRank, kAnyTag, 5));
  EXPECT_THAT(received(0), testing::ElementsAre(8));
  feed(0, make(EventKind::kOneSidedSync, 1));
  EXPECT_THAT(received(0), testing::ElementsAre(100, 300));
  feed(0, make(EventKind::kOneSidedSync));
  EXPECT_THAT(received(0), testing::ElementsAre(0));
  feed(0, make(EventKind::kOneSidedSync));
  EXPECT_THAT(received(0), testing::ElementsAre());
  EXPECT_EQ(matcher_.stats().one_sided_operations, 4u);
}

TEST_F(Match, AFreedRequestOfAnOperationIsLeftToTheSync) {
  feed(0, operation(OneSidedOp::kGet, 1, 100, 5));
  feed(0, make(EventKind::kRequestFree, kAnyRank, kAnyTag, 5));
  feed(0, make(EventKind::kOneSidedSync));
  EXPECT_THAT(received(0), testing::ElementsAre(100));
}

TEST_F(Match, OperationsThatNobodyWaitsForAreBounded) {
  const auto limit = static_cast<Bytes>(engine::OneSided::kMaxUnderWay);
  for (Bytes i = 0; i < limit + 3; ++i) feed(0, operation(OneSidedOp::kGet, 1, i));
  EXPECT_THAT(received(0), testing::ElementsAre(0, 1, 2));
  feed(0, make(EventKind::kOneSidedSync, 1));
  EXPECT_EQ(received(0).size(), limit);
}

TEST_F(Match, OneSidedOperationsThatCannotBe) {
  EXPECT_THAT(refused(0, operation(OneSidedOp::kPut, 4, 8)), HasSubstr("rank 4 does not exist"));
  EXPECT_THAT(refused(0, operation(OneSidedOp::kPut, kAnyRank, 8)), HasSubstr("does not exist"));
  EXPECT_THAT(refused(0, operation(static_cast<OneSidedOp>(7), 1, 8)), HasSubstr("one-sided operation 7"));
  EXPECT_THAT(refused(0, make(EventKind::kOneSidedSync, 4)), HasSubstr("rank 4 does not exist"));
  feed(0, operation(OneSidedOp::kPut, 1, 8, 5));
  EXPECT_THAT(refused(0, operation(OneSidedOp::kPut, 1, 8, 5)), HasSubstr("active already"));
  EXPECT_THAT(refused(0, make(EventKind::kCancel, kAnyRank, kAnyTag, 5)), HasSubstr("no send or receive"));
}

TEST_F(Match, TimeInMpiIoIsKeptAndCounted) {
  Event io = make(EventKind::kIo);
  set_op(io, IoDirection::kWrite);
  io.bytes = 1000;
  io.call_s = 2;
  feed(0, io);
  engine::OpStore::Cursor cursor;
  const engine::Op* op = store_.front(0, cursor);
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->kind, engine::OpKind::kBlocked);
  EXPECT_EQ(op->call_s, 2);
  EXPECT_EQ(matcher_.stats().io_s, 2);
  EXPECT_EQ(matcher_.stats().bytes_written, 1000u);
  EXPECT_EQ(matcher_.stats().bytes_read, 0u);
}

TEST_F(Match, CollectivesFollowTheLibraryAndTheNodes) {
  // A broadcast of 64 bytes from rank 1 on nodes 0 1 | 2 3.
  Event bcast = make(EventKind::kCollective);
  set_op(bcast, CollectiveOp::kBcast);
  bcast.bytes = 64;
  bcast.root = 1;
  matcher_.set_mpi({{engine::MpiLibrary::kMpich4, true}, {0, 0, 1, 1}});
  for (Rank rank = 0; rank < 4; ++rank) feed(rank, bcast);
  EXPECT_EQ(matcher_.stats().approximated_collectives, 4u);
  EXPECT_THAT(received(0), testing::ElementsAre(64));
  EXPECT_THAT(received(1), testing::ElementsAre(64));  // the root's copy from its node's first rank
  // Without nodes, and of a library that is not known well.
  Event alltoall = make(EventKind::kCollective);
  set_op(alltoall, CollectiveOp::kAlltoall);
  alltoall.bytes = 8;
  engine::Matcher exact(4, store_);
  exact.set_mpi({{engine::MpiLibrary::kMpich4, true}, {}});
  ASSERT_TRUE(exact.feed(0, alltoall).ok());
  EXPECT_EQ(exact.stats().approximated_collectives, 0u);
  engine::Matcher inexact(4, store_);
  inexact.set_mpi({{engine::MpiLibrary::kMpich4, false}, {}});
  ASSERT_TRUE(inexact.feed(0, alltoall).ok());
  EXPECT_EQ(inexact.stats().approximated_collectives, 1u);
}

TEST_F(Match, AReceiveBehindAWildcardTakesItsPlaceWhenTheWildcardIsDone) {
  feed(0, post(kAnyRank, 7, 1));
  feed(0, post(1, 7, 2));
  feed(0, post(1, 7, 3));
  feed(0, complete(1, 7, 1));  // the wildcard got the first message
  feed(0, complete(1, 7, 3));
  feed(0, complete(1, 7, 2));
  for (Bytes bytes : {100, 200, 300}) feed(1, send(0, 7, bytes));
  EXPECT_THAT(received(0), testing::ElementsAre(100, 300, 200));
}

TEST_F(Match, AReceiveThatEndsBeforeAnOlderWildcardTakesTheNextPlace) {
  feed(0, post(kAnyRank, kAnyTag, 1));
  feed(0, post(1, 7, 2));
  feed(0, complete(1, 7, 2));
  feed(0, complete(1, 7, 1));
  feed(1, send(0, 7, 100));
  feed(1, send(0, 7, 200));
  EXPECT_THAT(received(0), testing::ElementsAre(100, 200));
}

TEST_F(Match, AWildcardThatCannotMatchHoldsNobodyBack) {
  feed(0, post(kAnyRank, 8, 1));  // another tag
  feed(0, post(1, 7, 2));
  feed(0, post(1, 7, 3));
  feed(0, complete(1, 7, 3));
  feed(1, send(0, 7, 100));
  feed(1, send(0, 7, 200));
  EXPECT_THAT(received(0), testing::IsEmpty());  // what the wildcard takes may still get known
  matcher_.close(0);
  EXPECT_THAT(received(0), testing::ElementsAre(200));
}

TEST_F(Match, CancelMovesLaterReceivesUp) {
  for (const bool sends_first : {false, true}) {
    SCOPED_TRACE(sends_first);
    if (sends_first) {
      feed(1, send(0, 7, 100));
      feed(1, send(0, 7, 200));
    }
    feed(0, post(1, 7, 1));
    feed(0, post(1, 7, 2));
    feed(0, make(EventKind::kCancel, kAnyRank, kAnyTag, 1));
    feed(0, post(1, 7, 1));  // the number may be used again
    feed(0, complete(1, 7, 1));
    feed(0, complete(1, 7, 2));
    if (!sends_first) {
      feed(1, send(0, 7, 100));
      feed(1, send(0, 7, 200));
    }
    EXPECT_THAT(received(0), testing::ElementsAre(200, 100));
  }
}

TEST_F(Match, AFreedReceiveStillTakesItsMessage) {
  feed(0, post(1, 7, 1));
  feed(0, make(EventKind::kRequestFree, kAnyRank, kAnyTag, 1));
  feed(0, make(EventKind::kRecv, 1, 7));
  feed(1, send(0, 7, 100));
  feed(1, send(0, 7, 200));
  EXPECT_THAT(received(0), testing::ElementsAre(200));
}

TEST_F(Match, CollectivesOnASubCommunicatorUseWorldRanks) {
  const std::vector<std::uint64_t> members{77, 0, 3, 1};  // uid, L, ranks 3 and 1
  for (Rank rank : {1, 3}) {
    Event create = make(EventKind::kCommCreate);
    create.comm = 5;
    create.values = members;
    feed(rank, create);
    Event bcast = make(EventKind::kCollective);
    bcast.comm = 5;
    set_op(bcast, CollectiveOp::kBcast);
    bcast.bytes = 64;
    bcast.root = 0;  // world rank 3
    feed(rank, bcast);
  }
  EXPECT_THAT(received(1), testing::ElementsAre(64));
  EXPECT_THAT(received(3), testing::ElementsAre());
  EXPECT_EQ(matcher_.stats().collectives, 2u);
}

TEST_F(Match, ContradictionsNameRankAndEvent) {
  feed(2, make(EventKind::kCompute));
  EXPECT_THAT(refused(2, complete(1, 7)), AllOf(HasSubstr("rank 2, event 2"), HasSubstr("startRecv")));
  EXPECT_THAT(refused(0, complete(1, 7, 9)), HasSubstr("request 9"));
  EXPECT_THAT(refused(0, send(4, 0)), HasSubstr("rank 4 does not exist"));
  EXPECT_THAT(refused(0, send(-3, 0)), HasSubstr("does not exist"));
  feed(1, post(0, 7, 1));
  EXPECT_THAT(refused(1, complete(0, 8, 1)), AllOf(HasSubstr("tag 8"), HasSubstr("tag 7")));
  EXPECT_THAT(refused(1, complete(2, 7, 1)), HasSubstr("posted for rank 0"));
  EXPECT_THAT(refused(1, post(0, 7, 1)), HasSubstr("active already"));
  EXPECT_THAT(refused(1, make(EventKind::kWait, kAnyRank, kAnyTag, 1)), HasSubstr("is a receive"));
  EXPECT_THAT(refused(1, make(EventKind::kWait, kAnyRank, kAnyTag, 5)), HasSubstr("not active"));
  Event collective = make(EventKind::kCollective);
  collective.comm = 9;
  EXPECT_THAT(refused(1, collective), HasSubstr("communicator 9 is not defined"));
  Event negative = make(EventKind::kCompute);
  negative.process_s = -1;
  EXPECT_THAT(refused(1, negative), HasSubstr("negative"));
  Event unknown = make(static_cast<EventKind>(99));
  EXPECT_THAT(refused(1, unknown), HasSubstr("99"));
  feed(3, make(EventKind::kExit));
  EXPECT_THAT(refused(3, make(EventKind::kCompute)), HasSubstr("after the rank's exit"));
  EXPECT_THAT(refused(4, make(EventKind::kCompute)), HasSubstr("4 ranks"));
  EXPECT_EQ(matcher_.why_partial(), "");
}

TEST_F(Match, HostileDefinitionsOfCommunicators) {
  Event create = make(EventKind::kCommCreate);
  create.comm = 1;
  std::vector<std::uint64_t> values{1, 0};
  create.values = values;
  EXPECT_THAT(refused(0, create), HasSubstr("without members"));
  values = {1, 9, 0, 1};
  create.values = values;
  EXPECT_THAT(refused(0, create), HasSubstr("without members"));
  values = {1, 0, 0, 99};
  create.values = values;
  EXPECT_THAT(refused(0, create), HasSubstr("rank 99"));
  create.comm = 2;
  values = {1, 0, 0, 0};
  create.values = values;
  EXPECT_THAT(refused(0, create), HasSubstr("twice"));
  create.comm = 0;
  EXPECT_THAT(refused(0, create), HasSubstr("cannot be defined"));
}

TEST_F(Match, AfterAGapContradictionsMakeThePredictionPartial) {
  Event gap = make(EventKind::kGap);
  gap.bytes = 17;
  feed(0, gap);
  EXPECT_THAT(matcher_.why_partial(), HasSubstr("17 events were lost"));
  feed(0, complete(1, 7));  // its start was lost: taken as it came
  feed(0, make(EventKind::kWait, kAnyRank, kAnyTag, 3));
  feed(1, send(0, 7, 100));
  EXPECT_THAT(received(0), testing::ElementsAre(100));
  EXPECT_EQ(matcher_.stats().lost_events, 17u);
  EXPECT_THAT(refused(1, complete(0, 7)), HasSubstr("rank 1"));  // other ranks lost nothing
}

TEST_F(Match, AGapBetweenWindowsMakesThePredictionPartial) {
  feed(0, make(EventKind::kWindowClose));
  Event gap = make(EventKind::kGap);
  gap.bytes = 2;
  feed(0, gap);
  EXPECT_THAT(matcher_.why_partial(), HasSubstr("2 events were lost"));
  Event open = make(EventKind::kWindowOpen);
  open.bytes = 1;
  feed(0, open);
  feed(0, send(1, 7, 100));
}

// Sizes that no program has: an error of the trace, whatever algorithm would cut or multiply them.
TEST_F(Match, CollectivesOfImpossibleSizes) {
  for (const CollectiveOp op : {CollectiveOp::kReduce, CollectiveOp::kBcast, CollectiveOp::kAllreduce,
                                CollectiveOp::kAlltoall, CollectiveOp::kAllgather, CollectiveOp::kReduceScatterBlock}) {
    for (const Bytes bytes : {~Bytes{0}, Bytes{1} << 60, Bytes{1} << 45}) {
      for (const EventKind kind : {EventKind::kCollective, EventKind::kIcollective}) {
        engine::OpStore store{2, 1};
        engine::Matcher matcher{2, store};
        Event event = make(kind, kAnyRank, kAnyTag, kind == EventKind::kIcollective ? 1 : -1);
        set_op(event, op);
        event.root = 0;
        event.bytes = bytes;
        const Result<void> fed = matcher.feed(0, event);
        ASSERT_FALSE(fed.ok());
        EXPECT_THAT(fed.error().message, HasSubstr("an impossible number of bytes"));
      }
    }
  }
  Event large = make(EventKind::kIcollective, kAnyRank, kAnyTag, 1);  // more than a million pieces of a chain's 8 KiB
  set_op(large, CollectiveOp::kReduce);
  large.root = 0;
  large.bytes = Bytes{1} << 42;
  engine::OpStore store{2, 1};
  engine::Matcher matcher{2, store};
  EXPECT_TRUE(matcher.feed(0, large).ok());
}

TEST_F(Match, AGapSaysWhatIsKnownOfItsReason) {
  const auto reason = [](const Event& gap) {
    engine::OpStore store{1, 1};
    engine::Matcher matcher{1, store};
    EXPECT_TRUE(matcher.feed(0, gap).ok());
    return matcher.why_partial();
  };
  Event full = make(EventKind::kGap);
  full.bytes = 3;
  full.call_s = 1e-6;
  EXPECT_EQ(reason(full), "rank 0, event 1: 3 events were lost here (its event ring was full)");
  Event unknown = make(EventKind::kGap);
  unknown.bytes = 1;
  EXPECT_THAT(reason(unknown), HasSubstr("1 event was lost here (its event ring was full, or could not be"));
  Event undefined = unknown;
  undefined.function = mpi_function("MPI_Bcast")->id;
  EXPECT_THAT(reason(undefined),
              AllOf(HasSubstr("a call of MPI_Bcast was lost here"), HasSubstr("communicator is not known")));
}

// Which call made the communicator comes from the event's function.
TEST_F(Match, CreatingACommunicatorGoesByTheCall) {
  const auto receives = [](const char* function) {
    engine::OpStore store{2, 1};
    engine::Matcher matcher{2, store};
    for (const Rank rank : {0, 1}) {
      Event create = make(EventKind::kCollective);
      set_op(create, CollectiveOp::kCommCreate);
      create.bytes = 8;
      if (const MpiFunction* found = mpi_function(function)) create.function = found->id;
      EXPECT_TRUE(matcher.feed(rank, create).ok());
    }
    std::vector<Bytes> bytes;
    engine::OpStore::Cursor cursor;
    while (const engine::Op* op = store.front(0, cursor)) {
      if (op->kind == engine::OpKind::kRecv) bytes.push_back(store.message(op->message()).bytes);
      engine::OpStore::pop(cursor);
    }
    return std::pair(bytes, matcher.stats().approximated_collectives);
  };
  EXPECT_EQ(receives("MPI_Comm_dup"), std::pair(std::vector<Bytes>({4, 4, 4}), std::uint64_t{0}));
  EXPECT_EQ(receives("MPI_Comm_split"), std::pair(std::vector<Bytes>({8, 4, 4, 4}), std::uint64_t{0}));
  EXPECT_EQ(receives("none"), std::pair(std::vector<Bytes>({4, 4, 4}), std::uint64_t{2}));
}

TEST_F(Match, KeepAlivesAreNoEventsOfTheProgram) {
  feed(0, make(EventKind::kKeepAlive));
  feed(0, make(EventKind::kCompute));
  EXPECT_EQ(matcher_.stats().events, 1u);
  EXPECT_EQ(matcher_.events_of(0), 1u);
}

}  // namespace
}  // namespace lbf::matcher_test