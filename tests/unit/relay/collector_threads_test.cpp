// Collector: the rings of several threads of one process become one sequence of events.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event/mpi_function_table.h"
#include "tests/unit/relay/collector_fixture.h"

namespace lbf::relay::collector_threads_test {
namespace {

class CollectorThreads : public CollectorTest {};

std::vector<EventKind> kinds(const FakeLbfd::Decoded& decoded) {
  std::vector<EventKind> result;
  for (const auto& [rank, event] : decoded.events) result.push_back(event.kind);
  return result;
}

TEST_F(CollectorThreads, ThreadsOfAProcessAreMergedByEnter) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  const auto put = [](RingFile& file, std::uint64_t at) {
    ring::Record r = RingFile::record(EventKind::kSend, at, at + 10);
    r.bytes = at;
    file.append(r);
  };
  put(main_thread, 2000);
  put(main_thread, 4000);
  put(other, 1500);
  other.append_adjust(100, 0, 0);
  put(other, 3000);
  pass();
  const auto decoded = finish();
  std::vector<std::uint64_t> order;
  for (const auto& [rank, event] : decoded.events) {
    if (event.kind == EventKind::kSend) order.push_back(event.bytes);
  }
  EXPECT_THAT(order, testing::ElementsAre(1500, 2000, 3000, 4000));
  EXPECT_NEAR(decoded.events[2].second.process_s, (3000 - 2010 - 100) * 1e-9, 1e-12);
}

// Each thread's ring holds one long record whose time has not come: they were held without a bound.
TEST_F(CollectorThreads, LongRecordsOfManyThreadsDoNotWaitForTheirTurn) {
  Sleeper process;
  std::vector<std::unique_ptr<RingFile>> rings;
  for (int i = 0; i < 8; ++i)
    rings.push_back(std::make_unique<RingFile>(dir_.path(), process.pid(), process.pid() + i, 1 << 20));
  pass();
  constexpr std::uint64_t kLater = 3'600'000'000'000;
  for (const auto& ring : rings)
    ASSERT_TRUE(ring->append(RingFile::record(EventKind::kWait, kLater, kLater), std::vector<std::uint64_t>(60'000)));
  collector_->pass({now_ns_, now_ns_}, rate_, builder_, {0, {}});
  EXPECT_LT(collector_->held_bytes(), Bytes{3} << 20);
  EXPECT_EQ(finish().events.size(), 9U);
}

// What a receive waits for may be sent by a thread whose own call returns later: sends count from their
// begin, receives from their end.
TEST_F(CollectorThreads, AReceiveOfOneThreadDoesNotComeBeforeWhatAnotherSentMeanwhile) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  const auto put = [](RingFile& file, EventKind kind, std::uint64_t enter, std::uint64_t leave,
                      std::uint8_t flags = kFlagCallBegin) {
    ring::Record r = RingFile::record(kind, enter, leave);
    r.bytes = enter;
    r.flags = flags;
    file.append(r);
  };
  put(main_thread, EventKind::kRecv, 2000, 9000);
  put(other, EventKind::kSend, 3000, 3100);
  put(other, EventKind::kStartRecv, 4000, 20000);  // MPI_Sendrecv: its message is under way from 4000 on
  put(other, EventKind::kSend, 20000, 20000, 0);
  put(other, EventKind::kEndRecv, 20000, 20000, 0);
  pass();
  EXPECT_THAT(kinds(finish()),
              testing::ElementsAre(EventKind::kStartRecv, EventKind::kSend, EventKind::kStartRecv, EventKind::kSend,
                                   EventKind::kEndRecv, EventKind::kEndRecv, EventKind::kExit));
}

// Threads of two ranks that send to each other with MPI_Ssend: no send is over before its receive was posted.
TEST_F(CollectorThreads, BlockingCallsOfThreadsBeginAndEnd) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  ring::Record send = RingFile::record(EventKind::kSend, 2000, 7000);
  send.flags |= kFlagSync;
  send.bytes = 8;
  send.tag = 3;
  main_thread.append(send);
  ring::Record receive = RingFile::record(EventKind::kRecv, 3000, 8000);
  receive.flags |= kFlagWildcardTag;
  receive.bytes = 16;
  other.append(receive);
  pass();
  const auto decoded = finish();
  ASSERT_THAT(kinds(decoded), testing::ElementsAre(EventKind::kIsend, EventKind::kStartRecv, EventKind::kWait,
                                                   EventKind::kEndRecv, EventKind::kExit));
  const auto event = [&](std::size_t i) { return decoded.events[i].second; };
  EXPECT_EQ(event(0).flags, kFlagSync | kFlagHasRequest | kFlagCallBegin);
  EXPECT_EQ(event(0).tag, 3);
  EXPECT_EQ(event(0).bytes, 8u);
  EXPECT_EQ(event(2).request, event(0).request);
  EXPECT_EQ(event(1).flags, kFlagWildcardTag | kFlagHasRequest | kFlagCallBegin);
  EXPECT_EQ(event(3).request, event(1).request);
  EXPECT_EQ(event(3).bytes, 16u);
  EXPECT_NE(event(0).request, event(1).request);
  EXPECT_NEAR(event(2).call_s, 4000e-9, 1e-12);
  EXPECT_NEAR(event(3).call_s, 1000e-9, 1e-12);
}

TEST_F(CollectorThreads, ABlockingCallThatNothingCameBetweenIsOneEvent) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  ring::Record record = RingFile::record(EventKind::kSend, 2000, 3000);
  record.bytes = 8;
  main_thread.append(record);
  main_thread.append(RingFile::record(EventKind::kRecv, 5000, 6000));
  other.append(RingFile::record(EventKind::kRecv, 3100, 4000));
  other.append(RingFile::record(EventKind::kCollective, 7000, 8000));
  pass();
  const auto decoded = finish();
  ASSERT_THAT(kinds(decoded), testing::ElementsAre(EventKind::kSend, EventKind::kRecv, EventKind::kRecv,
                                                   EventKind::kCollective, EventKind::kExit));
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& event = decoded.events[i].second;
    EXPECT_EQ(event.flags, kFlagCallBegin) << i;
    EXPECT_NEAR(event.call_s, i == 1 ? 900e-9 : 1000e-9, 1e-12) << i;
  }
}

// A message of no bytes, or a buffered one, waits for nobody.
TEST_F(CollectorThreads, ASendThatWaitsForNobodyIsOneEvent) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  main_thread.append(RingFile::record(EventKind::kSend, 2000, 4000));
  ring::Record buffered = RingFile::record(EventKind::kSend, 3000, 5000);
  buffered.bytes = 8;
  buffered.flags |= kFlagBuffered;
  other.append(buffered);
  pass();
  EXPECT_THAT(kinds(finish()), testing::ElementsAre(EventKind::kSend, EventKind::kSend, EventKind::kExit));
}

// What MPI_Sendrecv begins, it begins at once; the send is over when the call is. Its time is in what ends it.
TEST_F(CollectorThreads, ASendrecvOfAThreadBeginsAndEnds) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  const auto put = [&](EventKind kind, std::uint64_t enter, std::uint8_t flags) {
    ring::Record r = RingFile::record(kind, enter, 9000);
    r.function = mpi_function("MPI_Sendrecv")->id;
    r.bytes = 8;
    r.flags = flags;
    r.request = (flags & kFlagHasRequest) != 0 ? 7 : 0;
    main_thread.append(r);
  };
  put(EventKind::kStartRecv, 2000, kFlagCallBegin | kFlagHasRequest);
  put(EventKind::kSend, 9000, 0);
  put(EventKind::kEndRecv, 9000, kFlagHasRequest);
  other.append(RingFile::record(EventKind::kRecv, 3000, 4000));
  pass();
  const auto decoded = finish();
  ASSERT_THAT(kinds(decoded), testing::ElementsAre(EventKind::kStartRecv, EventKind::kIsend, EventKind::kRecv,
                                                   EventKind::kWait, EventKind::kEndRecv, EventKind::kExit));
  const auto event = [&](std::size_t i) { return decoded.events[i].second; };
  EXPECT_EQ(event(3).request, event(1).request);
  EXPECT_EQ(event(4).request, event(0).request);
  EXPECT_NEAR(event(0).process_s, 1000e-9, 1e-12);
  EXPECT_NEAR(event(2).process_s, 1000e-9, 1e-12) << "the other thread ran meanwhile";
  EXPECT_NEAR(event(3).call_s, 5000e-9, 1e-12);
  EXPECT_NEAR(event(4).process_s + event(4).call_s, 0, 1e-12);
}

// Two threads, each in a fence of a window of its own.
TEST_F(CollectorThreads, FencesOfThreadsBeginAndEnd) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  const auto fence = [](RingFile& file, std::uint64_t enter, std::uint64_t leave) {
    for (const EventKind kind : {EventKind::kOneSidedSync, EventKind::kCollective}) {
      ring::Record r = RingFile::record(kind, kind == EventKind::kCollective ? leave : enter, leave);
      r.function = mpi_function("MPI_Win_fence")->id;
      r.peer = kind == EventKind::kCollective ? 0 : kAnyRank;
      r.flags = kind == EventKind::kCollective ? 0 : kFlagCallBegin;
      file.append(r);
    }
  };
  fence(main_thread, 2000, 8000);
  fence(other, 3000, 9000);
  pass();
  EXPECT_THAT(kinds(finish()),
              testing::ElementsAre(EventKind::kOneSidedSync, EventKind::kIcollective, EventKind::kOneSidedSync,
                                   EventKind::kIcollective, EventKind::kWait, EventKind::kWait, EventKind::kExit));
}

// Two threads, each in a collective on a communicator of its own: both begin before one of them ends.
TEST_F(CollectorThreads, CollectivesOfThreadsBeginAndEnd) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  const auto put = [](RingFile& file, std::uint64_t enter, std::uint64_t leave, std::uint64_t bytes) {
    ring::Record r = RingFile::record(EventKind::kCollective, enter, leave);
    ring::set_op(r, CollectiveOp::kBcast);
    r.bytes = bytes;
    file.append(r);
  };
  put(main_thread, 2000, 9000, 1);
  put(other, 3000, 10000, 2);
  pass();
  const auto decoded = finish();
  ASSERT_EQ(decoded.events.size(), 5u);
  const auto& begin_1 = decoded.events[0].second;
  const auto& begin_2 = decoded.events[1].second;
  const auto& end_1 = decoded.events[2].second;
  const auto& end_2 = decoded.events[3].second;
  EXPECT_EQ(begin_1.kind, EventKind::kIcollective);
  EXPECT_EQ(collective_op(begin_1), CollectiveOp::kBcast);
  EXPECT_EQ(begin_1.bytes, 1u);
  EXPECT_NE(begin_1.flags & kFlagBlockingCall, 0);
  EXPECT_EQ(begin_2.bytes, 2u);
  EXPECT_EQ(end_2.kind, EventKind::kWait);
  EXPECT_EQ(end_2.request, begin_2.request);
  EXPECT_NEAR(end_2.call_s, 1000e-9, 1e-12);
  EXPECT_EQ(end_1.request, begin_1.request);
  EXPECT_NE(begin_1.request, begin_2.request);
}

// One thread closes the window, another one ends the capture; both records bear the same time, and the latter's ring
// may be read first.
TEST_F(CollectorThreads, TheEndOfACaptureComesBehindTheCloseThatAnotherThreadWrote) {
  for (const bool closer_is_first : {true, false}) {
    lbfd_.batches.clear();
    Sleeper process;
    RingFile main_thread(dir_.path(), process.pid(), process.pid());
    RingFile other(dir_.path(), process.pid(), process.pid() + 1);
    main_thread.append(RingFile::record(EventKind::kRecv, 2000, 2900));
    other.append(RingFile::record(EventKind::kRecv, 2100, 2950));
    (closer_is_first ? main_thread : other).append_adjust(10, 0, 0);
    (closer_is_first ? main_thread : other).append(RingFile::record(EventKind::kWindowClose, 3000, 3000));
    ring::Record end = RingFile::record(EventKind::kSkipped, 3000, 3000);
    ring::set_skipped(end, SkippedSide::kEverything, 1);
    (closer_is_first ? other : main_thread).append(end);
    ring::Record definition = RingFile::record(EventKind::kCommCreate, 3000, 3000);  // by the closer, while it counted
    definition.comm = 1;
    (closer_is_first ? main_thread : other).append(definition, {42, 0, 0, 1});
    pass();
    process.kill();
    auto again = Collector::make({dir_.path(), 2, 0});
    const auto decoded = finish();
    EXPECT_THAT(kinds(decoded),
                testing::ElementsAre(EventKind::kStartRecv, EventKind::kStartRecv, EventKind::kEndRecv,
                                     EventKind::kEndRecv, EventKind::kWindowClose, EventKind::kCommCreate,
                                     EventKind::kSkipped, EventKind::kWindowOpen, EventKind::kExit));
    EXPECT_NEAR(decoded.events.at(4).second.process_s, 40e-9, 1e-12) << "the close has its own adjustment";
    ASSERT_TRUE(again.ok());
    *collector_ = std::move(*again);
  }
}

// The thread that closes the window writes the regions of its last gap first, at the same time.
TEST_F(CollectorThreads, RegionsOfTheLastGapComeBeforeTheClose) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  main_thread.append(RingFile::record(EventKind::kRecv, 2000, 2900));
  other.append(RingFile::record(EventKind::kRecv, 2100, 2950));
  ring::Record regions = RingFile::record(EventKind::kRegions, 3100, 3100);
  regions.flags = 0;
  std::vector<std::uint64_t> values(ring::kRegionWords);
  ring::write_regions(values.data(), {1, 1, 100, 100, 0, 100});
  main_thread.append(regions, values);
  main_thread.append(RingFile::record(EventKind::kWindowClose, 3100, 3100));
  pass();
  const auto decoded = finish();
  EXPECT_THAT(kinds(decoded), testing::ElementsAre(EventKind::kStartRecv, EventKind::kStartRecv, EventKind::kEndRecv,
                                                   EventKind::kEndRecv, EventKind::kRegions, EventKind::kWindowClose,
                                                   EventKind::kSkipped, EventKind::kWindowOpen, EventKind::kExit));
}

// A rank's threads in calls side by side: its time passes once.
TEST_F(CollectorThreads, CallsOfThreadsSideBySideTakeTheirTimeOnce) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  main_thread.append(RingFile::record(EventKind::kRecv, 2000, 9000));
  other.append(RingFile::record(EventKind::kRecv, 3000, 4000));
  other.append(RingFile::record(EventKind::kRecv, 5000, 6000));
  pass();
  Seconds all_s = 0;
  const auto decoded = finish();
  ASSERT_EQ(decoded.events.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) all_s += decoded.events[i].second.process_s + decoded.events[i].second.call_s;
  EXPECT_NEAR(all_s, 8000e-9, 1e-12) << "from 1000 to 9000";
  EXPECT_NEAR(decoded.events[3].second.call_s, 3000e-9, 1e-12);
}

TEST_F(CollectorThreads, ARanksCaptureEndsForAllOfItsThreads) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile ended(dir_.path(), process.pid(), process.pid() + 1);  // its thread was gone when the capture ended
  pass();
  for (const RingUse& use : collector_->ring_uses()) EXPECT_FALSE(use.off);
  main_thread.put(offsetof(ring::Header, off_ticks), std::uint64_t{2'000'001'000});
  main_thread.put(offsetof(ring::Header, off), std::uint32_t{1});
  pass();
  EXPECT_EQ(collector_->ring_uses().size(), 2U);
  for (const RingUse& use : collector_->ring_uses()) EXPECT_TRUE(use.off);
  EXPECT_NEAR(collector_->costs().at(0).watched_s, 2.0, 1e-9) << "since MPI_Init, not until now";
  (void)finish();
}

TEST_F(CollectorThreads, ASendThatIsUnderWayHoldsTheOtherThreadsBack) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  const std::uint64_t begin = now_ns_ + 1'000'000;
  constexpr std::uint32_t kSend = 6;
  ASSERT_EQ(mpi_function(kSend)->name, "MPI_Send");
  other.put(offsetof(ring::Header, in_call), ring::kInCall | kSend << ring::kWhereBits);
  other.put(offsetof(ring::Header, call_enter_ticks), begin);
  main_thread.append(RingFile::record(EventKind::kRecv, begin - 10, begin + 10));
  pass(2);
  // Its message may be what the receive's sender waited for: of the receive its begin only.
  EXPECT_EQ(events_so_far(), 1U);
  other.append(RingFile::record(EventKind::kSend, begin, begin + 5000));
  other.put(offsetof(ring::Header, in_call), ring::kInProgram);
  pass(2);
  EXPECT_EQ(events_so_far(), 3U);
  EXPECT_THAT(kinds(finish()),
              testing::ElementsAre(EventKind::kStartRecv, EventKind::kSend, EventKind::kEndRecv, EventKind::kExit));
}

// A thread that sits in MPI_Recv may have its message, and the sender may be back from MPI_Ssend.
TEST_F(CollectorThreads, AReceiveThatIsUnderWayHoldsTheOtherThreadsBack) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  const std::uint64_t begin = now_ns_ + 1'000'000;
  other.put(offsetof(ring::Header, in_call),
            ring::kInCall | std::uint32_t{mpi_function("MPI_Recv")->id} << ring::kWhereBits);
  other.put(offsetof(ring::Header, call_enter_ticks), begin);
  main_thread.append(RingFile::record(EventKind::kProbe, begin + 10, begin + 20));
  pass(100);
  EXPECT_EQ(events_so_far(), 0U);
  pass(1800);
  EXPECT_EQ(events_so_far(), 0U);
  const std::uint64_t late = now_ns_ + 110'000'000 - 10'000'000;  // in the grace of the next pass
  main_thread.append(RingFile::record(EventKind::kProbe, late, late));
  pass(110);
  EXPECT_EQ(events_so_far(), 1U) << "it does not hold for ever";
  other.append(RingFile::record(EventKind::kRecv, begin, late - 10));
  other.put(offsetof(ring::Header, in_call), ring::kInProgram);
  pass(1);
  EXPECT_THAT(kinds(finish()),
              testing::ElementsAre(EventKind::kProbe, EventKind::kRecv, EventKind::kProbe, EventKind::kExit));
}

TEST_F(CollectorThreads, WhereMuchWaitsAReceiveHoldsNothingBack) {
  Sleeper process;
  RingFile busy(dir_.path(), process.pid(), process.pid(), 8 << 20);
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  other.put(offsetof(ring::Header, in_call),
            ring::kInCall | std::uint32_t{mpi_function("MPI_Recv")->id} << ring::kWhereBits);
  other.put(offsetof(ring::Header, call_enter_ticks), std::uint64_t{1500});
  const auto add = [&](std::uint64_t from, std::uint64_t n) {
    std::vector<ring::Record> records;
    for (std::uint64_t i = 0; i < n; ++i)
      records.push_back(RingFile::record(EventKind::kProbe, from + 10 * i, from + 10 * i));
    busy.append_all(records);
  };
  const std::uint64_t begin = now_ns_ + 130'000'000;
  add(begin, 100);
  pass();
  EXPECT_EQ(events_so_far(), 0U);
  add(begin + 1000, 20000);
  pass(1);
  EXPECT_EQ(events_so_far(), 20100U);
  (void)finish();
}

TEST_F(CollectorThreads, ASendThatTakesForEverDoesNotHoldForEver) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  other.put(offsetof(ring::Header, in_call), ring::kInCall | std::uint32_t{6} << ring::kWhereBits);
  other.put(offsetof(ring::Header, call_enter_ticks), now_ns_);
  main_thread.append(RingFile::record(EventKind::kRecv, now_ns_ - 10, now_ns_ + 10));
  pass(100);
  EXPECT_EQ(events_so_far(), 1U);
  pass(1800);
  EXPECT_EQ(events_so_far(), 1U);
  pass(200);
  EXPECT_EQ(events_so_far(), 2U);
  (void)finish();
}

TEST_F(CollectorThreads, WhatIsYoungerThanThePassWaitsForTheNext) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  const std::uint64_t soon = now_ns_ + 150'000'000 + 1000;  // a pass's time is read before its rings are
  main_thread.append(RingFile::record(EventKind::kRecv, soon, soon + 10));
  pass();
  EXPECT_EQ(events_so_far(), 0U);
  other.append(RingFile::record(EventKind::kRecv, soon - 500, soon - 400));
  pass();
  const auto decoded = finish();
  ASSERT_EQ(decoded.events.size(), 3U);
  EXPECT_NEAR(decoded.events[0].second.call_s, 100e-9, 1e-12);
  EXPECT_NEAR(decoded.events[1].second.call_s, 10e-9, 1e-12);
}

TEST_F(CollectorThreads, AThreadsCommunicatorIsDefinedForTheOthers) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  ring::Record use = RingFile::record(EventKind::kSend, 2000, 6000);
  use.comm = 1;
  main_thread.append(use);
  ring::Record definition = RingFile::record(EventKind::kCommCreate, 3000, 3000);
  definition.comm = 1;
  other.append(definition, {42, 0, 0, 1});
  pass();
  EXPECT_THAT(kinds(finish()),
              testing::ElementsAre(EventKind::kCommCreate, EventKind::kSend, EventKind::kCommCreate, EventKind::kExit));
}

// One thread has more in its ring than a pass takes: the other's later records wait for it.
TEST_F(CollectorThreads, AThreadThatIsFarAheadWaits) {
  Sleeper process;
  RingFile busy(dir_.path(), process.pid(), process.pid(), 8 << 20);
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  constexpr std::uint64_t kRecords = (6 << 20) / sizeof(ring::Record);
  std::vector<ring::Record> records;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    records.push_back(RingFile::record(EventKind::kRecv, 2000 + 10 * i, 2000 + 10 * i + 5));
  }
  busy.append_all(records);
  ring::Record last = RingFile::record(EventKind::kProbe, 2000 + 10 * kRecords, 2000 + 10 * kRecords);
  other.append(last);
  pass();
  EXPECT_LT(events_so_far(), kRecords);
  for (int i = 0; i < 10; ++i) pass();
  const auto decoded = finish();
  ASSERT_EQ(decoded.events.size(), kRecords + 2);
  EXPECT_EQ(decoded.events[kRecords].second.kind, EventKind::kProbe);
  Seconds process_s = 0;
  for (const auto& [rank, event] : decoded.events) process_s += event.process_s;
  EXPECT_NEAR(process_s, 1000e-9 + static_cast<double>(kRecords) * 5e-9, 1e-12);
}

}  // namespace
}  // namespace lbf::relay::collector_threads_test