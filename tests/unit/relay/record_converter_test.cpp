// RecordConverter: the rules of ring.h, and that no process time is lost or counted twice.
#include "spank_plugin/relay/record_converter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "event/mpi_function_table.h"
#include "event/wire.h"
#include "tests/unit/relay/recorded.h"
#include "tests/unit/relay/ring_file.h"

namespace lbf::relay::record_converter_test {
namespace {

TEST(RecordConverter, GapIsProcessTimeAndCallIsCallTime) {
  RecordConverter converter(1000, 2);
  Recorded out;
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, 1500, 1700), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kRecv, 2000, 2900), {}, kNs, out.sink()).ok());
  ASSERT_EQ(out.events.size(), 2U);
  EXPECT_DOUBLE_EQ(out.events[0].process_s, 500e-9);
  EXPECT_DOUBLE_EQ(out.events[0].call_s, 200e-9);
  EXPECT_DOUBLE_EQ(out.events[1].process_s, 300e-9);
  EXPECT_DOUBLE_EQ(out.events[1].call_s, 900e-9);
}

TEST(RecordConverter, AdjustTakesPreemptedAndWaitingAwayAndKeepsBlocked) {
  RecordConverter converter(0, 2);
  Recorded out;
  ASSERT_TRUE(converter.convert(adjust(100, 250, 50), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(adjust(1, 2, 3), {}, kNs, out.sink()).ok());  // two before one record add up
  EXPECT_TRUE(out.events.empty());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, 1000, 1001), {}, kNs, out.sink()).ok());
  ASSERT_EQ(out.events.size(), 2U);
  EXPECT_EQ(out.events[0].kind, EventKind::kBlocked);
  EXPECT_DOUBLE_EQ(out.events[0].off_s, 252e-9);
  EXPECT_DOUBLE_EQ(out.events[0].process_s, 0);
  EXPECT_DOUBLE_EQ(out.events[1].process_s, (1000 - 101 - 252 - 53) * 1e-9);
  // They belong to one gap only.
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, 1101, 1102), {}, kNs, out.sink()).ok());
  ASSERT_EQ(out.events.size(), 3U);
  EXPECT_DOUBLE_EQ(out.events[2].process_s, 100e-9);
}

// A quarter of the run delay was the ranks' own. What others took is an event before the call's; the rest is in none.
TEST(RecordConverter, WhatOthersTookIsAnEvent) {
  RecordConverter converter(0, 2);
  converter.set_others_share(0.75);
  Recorded out;
  ring::Adjustment adjustment{400'000, 100'000, 50'000};
  adjustment.delayed_end = 2'000 << ring::Adjustment::kLostBits;
  ASSERT_TRUE(converter.convert(ring::record_of(adjustment), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, 1'000'000, 1'000'010), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kExit, 1'000'010, 1'000'010), {}, kNs, out.sink()).ok());
  ASSERT_EQ(out.events.size(), 4U);
  EXPECT_EQ(out.events[0].kind, EventKind::kPreempted);
  EXPECT_DOUBLE_EQ(out.events[0].off_s, 300e-6);
  EXPECT_NEAR(static_cast<double>(delayed_end_ns(out.events[0])), 0.75 * 2'000 * 1024, 0.01 * 2'000 * 1024);
  EXPECT_EQ(out.events[1].kind, EventKind::kBlocked);
  EXPECT_DOUBLE_EQ(out.events[2].process_s, 450e-6);
  EXPECT_DOUBLE_EQ(out.events[3].call_s, 150e-6) << "the ranks' own quarter, and what was waited for";
}

TEST(RecordConverter, SoLittleThatItIsNoiseIsNoEvent) {
  RecordConverter converter(0, 2);
  converter.set_others_share(0.01);
  Recorded out;
  ASSERT_TRUE(converter.convert(adjust(1'000'000, 0, 0), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kExit, 2'000'000, 2'000'000), {}, kNs, out.sink()).ok());
  ASSERT_EQ(out.events.size(), 1U);
  EXPECT_DOUBLE_EQ(out.events[0].process_s, 1e-3);
  EXPECT_DOUBLE_EQ(out.events[0].call_s, 1e-3);
}

// A master looked three times, slept 10 ms after each look that found nothing, and was off for 2 ms besides. The 40 ms
// were kept as blocked time on every target once.
TEST(RecordConverter, SleepBetweenLooksIsWaitingWithAPeriod) {
  const auto sleep_before = [](std::string_view function) {
    RecordConverter converter(0, 2);
    Recorded out;
    const ring::Adjustment sleep{0, 32'000'000, 0, 30'000'000, 3};
    EXPECT_TRUE(converter.convert(ring::record_of(sleep), {}, kNs, out.sink()).ok());
    ring::Record found = RingFile::record(EventKind::kProbe, 40'000'000, 40'000'001);
    found.function = mpi_function(function)->id;
    EXPECT_TRUE(converter.convert(found, {}, kNs, out.sink()).ok());
    EXPECT_DOUBLE_EQ(out.process_s(), 8e-3);
    return out.events;
  };
  const std::vector<Event> looked = sleep_before("MPI_Iprobe");
  ASSERT_EQ(looked.size(), 3U);
  EXPECT_EQ(look_period_ns(looked[0]), 0);
  EXPECT_DOUBLE_EQ(looked[0].off_s, 2e-3);
  EXPECT_NEAR(static_cast<double>(look_period_ns(looked[1])), 10e6, 0.02 * 10e6);
  EXPECT_DOUBLE_EQ(looked[1].off_s, 30e-3);
  // What a call that waits by itself followed was no look.
  const std::vector<Event> waited = sleep_before("MPI_Probe");
  ASSERT_EQ(waited.size(), 2U);
  EXPECT_EQ(look_period_ns(waited[0]), 0);
  EXPECT_DOUBLE_EQ(waited[0].off_s, 32e-3);
}

// ABYSS-P looks after each k-mer, finds nothing, and goes on. On an oversubscribed node each of these looks gives the
// processor away; their time was taken for waiting, and its predictions were 68 % too short.
TEST(RecordConverter, LooksThatNoEndOfAWaitFollowsAreWork) {
  const auto events_before = [](std::string_view function, EventKind kind, std::vector<std::uint64_t> looks) {
    RecordConverter converter(0, 2);
    Recorded out;
    EXPECT_TRUE(converter.convert(adjust(100, 0, 600), looks, kNs, out.sink()).ok());
    ring::Record record = RingFile::record(kind, 1000, 1010);
    record.function = mpi_function(function)->id;
    EXPECT_TRUE(converter.convert(record, {}, kNs, out.sink()).ok());
    return out.events;
  };
  // Two of seven were timed, with 43 ns each: 301 of 600 ns of waiting are the looks' own, 50 what it did between them;
  // 249 were others' on its processor.
  const std::vector<Event> went_on = events_before("MPI_Send", EventKind::kSend, {7, 50, 2, 86});
  ASSERT_EQ(went_on.size(), 2U);
  EXPECT_EQ(vain_looks(went_on[0]), 7U);
  EXPECT_DOUBLE_EQ(went_on[0].call_s, 301e-9);
  EXPECT_DOUBLE_EQ(went_on[0].process_s, 0);
  EXPECT_DOUBLE_EQ(went_on[1].process_s, 350e-9);
  for (const std::string_view function : {"MPI_Test", "MPI_Wait", "MPI_Recv"}) {
    const std::vector<Event> waited = events_before(function, EventKind::kEndRecv, {7, 50, 2, 86});
    ASSERT_EQ(waited.size(), 1U) << function;
    EXPECT_DOUBLE_EQ(waited[0].process_s, 300e-9);
  }
  // A hostile ring: no more than what was waiting, whatever it says. An older one: no looks.
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  const std::vector<Event> bounded = events_before("MPI_Send", EventKind::kSend, {kHuge, kHuge, 1, kHuge});
  ASSERT_EQ(bounded.size(), 2U);
  EXPECT_DOUBLE_EQ(bounded[0].call_s, 600e-9);
  EXPECT_DOUBLE_EQ(bounded[1].process_s, 300e-9);
  EXPECT_EQ(events_before("MPI_Send", EventKind::kSend, {}).size(), 1U);
}

// What is in no event is known of the window as a whole: where it closes, or the run ends.
TEST(RecordConverter, AWindowsTimeIsAllThatPassed) {
  RecordConverter converter(0, 2);
  Recorded out;
  const auto convert = [&](EventKind kind, std::uint64_t enter, std::uint64_t leave) {
    ASSERT_TRUE(converter.convert(RingFile::record(kind, enter, leave), {}, kNs, out.sink()).ok());
  };
  ASSERT_TRUE(converter.convert(adjust(100, 0, 50), {}, kNs, out.sink()).ok());
  convert(EventKind::kSend, 1000, 1010);
  ASSERT_TRUE(converter.convert(adjust(0, 30, 200), {}, kNs, out.sink()).ok());
  convert(EventKind::kWindowClose, 2000, 2000);
  const auto measured_s = [&] {
    Seconds sum_s = 0;
    for (const Event& event : out.events) sum_s += event.process_s + event.call_s + event.off_s;
    return sum_s;
  };
  EXPECT_DOUBLE_EQ(out.events.back().call_s, 350e-9);
  EXPECT_NEAR(measured_s(), 2000e-9, 1e-15);
  convert(EventKind::kWindowOpen, 2000, 5000);
  EXPECT_DOUBLE_EQ(out.events.back().call_s, 3000e-9);
  ASSERT_TRUE(converter.convert(adjust(0, 0, 400), {}, kNs, out.sink()).ok());
  convert(EventKind::kSend, 5500, 5600);
  EXPECT_DOUBLE_EQ(out.events.back().process_s, 100e-9);
  EXPECT_DOUBLE_EQ(out.events.back().call_s, 100e-9);
  convert(EventKind::kExit, 6000, 6000);
  EXPECT_DOUBLE_EQ(out.events.back().call_s, 400e-9);
  EXPECT_NEAR(measured_s(), 6000e-9, 1e-15);
}

// While the window is open it can be told so far; nothing is told twice, and what a killed process has not closed is
// there to its last record.
TEST(RecordConverter, TimeInNoEventIsToldOnce) {
  RecordConverter converter(0, 2);
  Recorded out;
  const auto convert = [&](EventKind kind, std::uint64_t enter, std::uint64_t leave) {
    ASSERT_TRUE(converter.convert(RingFile::record(kind, enter, leave), {}, kNs, out.sink()).ok());
  };
  const auto adjusted = [&](std::uint64_t preempted, std::uint64_t waiting) {
    ASSERT_TRUE(converter.convert(adjust(preempted, 0, waiting), {}, kNs, out.sink()).ok());
  };
  const auto measured_s = [&] {
    Seconds sum_s = 0;
    for (const Event& event : out.events) sum_s += event.process_s + event.call_s + event.off_s;
    return sum_s;
  };
  converter.report_unrecorded_time(kNs, out.sink());
  EXPECT_TRUE(out.events.empty());
  adjusted(100, 50);
  convert(EventKind::kSend, 1000, 1010);
  converter.report_unrecorded_time(kNs, out.sink());
  converter.report_unrecorded_time(kNs, out.sink());
  ASSERT_EQ(out.events.size(), 2U);
  EXPECT_EQ(out.events.back().kind, EventKind::kKeepAlive);
  EXPECT_DOUBLE_EQ(out.events.back().call_s, 150e-9);
  EXPECT_DOUBLE_EQ(out.events.back().process_s, 0);
  EXPECT_NEAR(measured_s(), 1010e-9, 1e-15);
  adjusted(0, 200);
  convert(EventKind::kWindowClose, 2000, 2000);
  EXPECT_DOUBLE_EQ(out.events.back().call_s, 200e-9);
  converter.report_unrecorded_time(kNs, out.sink());
  EXPECT_NEAR(measured_s(), 2000e-9, 1e-15);
  convert(EventKind::kWindowOpen, 2000, 5000);
  adjusted(0, 300);
  convert(EventKind::kSend, 5500, 5600);
  converter.close(9000, kNs, out.sink());
  EXPECT_EQ(out.events.back().kind, EventKind::kExit);
  EXPECT_DOUBLE_EQ(out.events.back().call_s, 300e-9);
  EXPECT_NEAR(measured_s(), 5600e-9, 1e-15);
}

TEST(RecordConverter, MoreAdjustmentThanGapGivesZeroNotNegative) {
  RecordConverter converter(0, 2);
  Recorded out;
  constexpr auto kHuge = ~std::uint64_t{0};
  ASSERT_TRUE(converter.convert(adjust(kHuge, kHuge, kHuge), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(adjust(kHuge, kHuge, kHuge), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, 10, 5), {}, kNs, out.sink()).ok());
  ASSERT_EQ(out.events.size(), 2U);
  EXPECT_DOUBLE_EQ(out.events[0].off_s, 10e-9);  // all of the gap at most
  EXPECT_DOUBLE_EQ(out.events[1].process_s, 0);
  EXPECT_DOUBLE_EQ(out.events[1].call_s, 0);  // leave before enter
}

TEST(RecordConverter, KeepAlivesAreTakenFromTheGapsThatFollow) {
  RecordConverter converter(0, 2);
  Recorded out;
  converter.keep_alive(300e-9, out.sink());
  converter.keep_alive(900e-9, out.sink());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, 1000, 1000), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, 2000, 2000), {}, kNs, out.sink()).ok());
  ASSERT_EQ(out.events.size(), 4U);
  EXPECT_EQ(out.events[0].kind, EventKind::kKeepAlive);
  EXPECT_NEAR(out.events[2].process_s, 0, 1e-18);
  EXPECT_NEAR(out.events[3].process_s, 800e-9, 1e-18);
  EXPECT_NEAR(out.process_s(), 2000e-9, 1e-18);
}

TEST(RecordConverter, SumsAreExactOverManyRecords) {
  std::mt19937_64 random(3);
  RecordConverter converter(0, 2);
  Recorded out;
  std::uint64_t now = 0;
  std::uint64_t process = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t gap = random() % 100000;
    const std::uint64_t dropped = random() % 3 == 0 ? random() % (gap + 1) : 0;
    const std::uint64_t blocked = dropped > 0 ? random() % (gap - dropped + 1) : 0;
    if (dropped > 0) {
      ASSERT_TRUE(converter.convert(adjust(dropped, blocked, 0), {}, kNs, out.sink()).ok());
    }
    process += gap - dropped - blocked;
    if (random() % 50 == 0) converter.keep_alive(static_cast<double>(random() % 50000) * kNs, out.sink());
    now += gap;
    const std::uint64_t leave = now + random() % 1000;
    ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, now, leave), {}, kNs, out.sink()).ok());
    now = leave;
  }
  // The last keep-alives may not be used up yet.
  ASSERT_TRUE(
      converter.convert(RingFile::record(EventKind::kExit, now + 10'000'000, now + 10'000'000), {}, kNs, out.sink())
          .ok());
  EXPECT_NEAR(out.process_s(), static_cast<double>(process + 10'000'000) * kNs, 1e-12);
}

TEST(RecordConverter, RoundingDoesNotAddUp) {
  // Ticks of a third of a nanosecond: the sums stay exact to 1 ns.
  constexpr Seconds kThird = 1e-9 / 3;
  RecordConverter converter(0, 2);
  Recorded out;
  constexpr int kRecords = 3000;
  std::uint64_t now = 0;
  Nanoseconds process_ns = 0;
  Nanoseconds call_ns = 0;
  for (int i = 0; i < kRecords; ++i) {
    ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, now + 1, now + 6), {}, kThird, out.sink()).ok());
    now += 6;
    process_ns += out.events.back().process_s.ns();
    call_ns += out.events.back().call_s.ns();
  }
  EXPECT_NEAR(static_cast<double>(process_ns), kRecords / 3.0, 1);
  EXPECT_NEAR(static_cast<double>(call_ns), kRecords * 5 / 3.0, 1);
}

TEST(RecordConverter, RanksOutsideTheWorldAreRefused) {
  RecordConverter converter(0, 2);
  Recorded out;
  ring::Record r = RingFile::record(EventKind::kSend, 1, 2);
  r.peer = 2;
  EXPECT_FALSE(converter.convert(r, {}, kNs, out.sink()).ok());
  r.peer = -7;
  EXPECT_FALSE(converter.convert(r, {}, kNs, out.sink()).ok());
  r = RingFile::record(EventKind::kCollective, 1, 2);
  r.peer = 2;
  EXPECT_FALSE(converter.convert(r, {}, kNs, out.sink()).ok());
  r = RingFile::record(EventKind::kCommCreate, 1, 2);
  r.comm = 1;
  const std::vector<std::uint64_t> outside{1, 0, 0, 2};
  EXPECT_FALSE(converter.convert(r, outside, kNs, out.sink()).ok());
  const std::vector<std::uint64_t> cut{1, 5, 0};
  EXPECT_FALSE(converter.convert(r, cut, kNs, out.sink()).ok());
  EXPECT_TRUE(out.events.empty());
  const std::vector<std::uint64_t> good{1, 0, 0, 1};
  r.comm = 0;  // MPI_COMM_WORLD is not defined by anybody
  EXPECT_FALSE(converter.convert(r, good, kNs, out.sink()).ok());
  r.comm = 1;
  EXPECT_TRUE(converter.convert(r, good, kNs, out.sink()).ok());
}

TEST(RecordConverter, CollectiveRootAndOpAreTakenOver) {
  RecordConverter converter(0, 4);
  Recorded out;
  ring::Record r = RingFile::record(EventKind::kCollective, 1, 2);
  ring::set_op(r, CollectiveOp::kReduce);
  r.peer = 3;
  ASSERT_TRUE(converter.convert(r, {}, kNs, out.sink()).ok());
  EXPECT_EQ(collective_op(out.events[0]), CollectiveOp::kReduce);
  EXPECT_EQ(out.events[0].root, 3);
  EXPECT_EQ(out.events[0].peer, kAnyRank);
}

TEST(RecordConverter, OperationsOfTheirOwnKindsAreTakenOverAndBounded) {
  RecordConverter converter(0, 4);
  Recorded out;
  ring::Record r = RingFile::record(EventKind::kOneSided, 1, 2);
  ring::set_op(r, OneSidedOp::kGet);
  r.peer = 3;
  r.bytes = 100;
  ASSERT_TRUE(converter.convert(r, {}, kNs, out.sink()).ok());
  EXPECT_EQ(one_sided_op(out.events[0]), OneSidedOp::kGet);
  EXPECT_EQ(out.events[0].peer, 3);
  EXPECT_EQ(out.events[0].bytes, 100u);
  r.peer = 4;
  EXPECT_FALSE(converter.convert(r, {}, kNs, out.sink()).ok());
  r.peer = 3;
  ring::set_op_code(r, 0xff);
  EXPECT_FALSE(converter.convert(r, {}, kNs, out.sink()).ok());
  r = RingFile::record(EventKind::kOneSidedSync, 3, 4);
  r.peer = kAnyRank;
  ASSERT_TRUE(converter.convert(r, {}, kNs, out.sink()).ok());
  EXPECT_EQ(out.events[1].peer, kAnyRank);
  r = RingFile::record(EventKind::kIo, 5, 6);
  ring::set_op(r, IoDirection::kWrite);
  ASSERT_TRUE(converter.convert(r, {}, kNs, out.sink()).ok());
  EXPECT_EQ(io_direction(out.events[2]), IoDirection::kWrite);
  EXPECT_EQ(out.events.size(), 3u);
}

ring::Record on_comm(EventKind kind, std::uint32_t comm, std::uint64_t enter, std::uint64_t leave) {
  ring::Record r = RingFile::record(kind, enter, leave);
  r.comm = comm;
  return r;
}

TEST(RecordConverter, ARecordOnAnUnknownCommunicatorIsAGap) {
  RecordConverter converter(0, 2);
  Recorded out;
  const std::vector<std::uint64_t> members{9, 0, 0, 1};
  ASSERT_TRUE(converter.convert(on_comm(EventKind::kSend, 3, 10, 25), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(on_comm(EventKind::kCommCreate, 3, 25, 25), members, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(on_comm(EventKind::kSend, 3, 30, 31), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(on_comm(EventKind::kCommFree, 3, 32, 33), {}, kNs, out.sink()).ok());
  // A receive may end after MPI_Comm_free.
  ASSERT_TRUE(converter.convert(on_comm(EventKind::kEndRecv, 3, 34, 35), {}, kNs, out.sink()).ok());
  ASSERT_EQ(out.events.size(), 5U);
  EXPECT_EQ(out.events[0].kind, EventKind::kGap);
  EXPECT_EQ(out.events[0].bytes, 1U);
  EXPECT_EQ(out.events[0].comm, 0U);
  EXPECT_DOUBLE_EQ(out.events[0].process_s, 10e-9);
  EXPECT_DOUBLE_EQ(out.events[0].call_s, 15e-9);
  EXPECT_EQ(out.events[2].kind, EventKind::kSend);
  EXPECT_EQ(out.events[2].comm, 3U);
  EXPECT_EQ(out.events[4].kind, EventKind::kEndRecv);
  EXPECT_EQ(converter.events_without_communicator(), 1U);
}

TEST(RecordConverter, MoreCommunicatorsThanATraceMayHaveAreAGap) {
  RecordConverter converter(0, 2);
  Recorded out;
  const std::vector<std::uint64_t> members{9, 0, 0, 1};
  constexpr auto kFirstTooMany = static_cast<std::uint32_t>(kMaxTraceCommunicators);
  ASSERT_TRUE(converter.convert(on_comm(EventKind::kCommCreate, kFirstTooMany, 1, 1), members, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(on_comm(EventKind::kSend, kFirstTooMany, 2, 3), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(
      converter.convert(on_comm(EventKind::kCommCreate, kFirstTooMany - 1, 4, 4), members, kNs, out.sink()).ok());
  ASSERT_EQ(out.events.size(), 3U);
  EXPECT_EQ(out.events[0].kind, EventKind::kGap);
  EXPECT_EQ(out.events[1].kind, EventKind::kGap);
  EXPECT_EQ(out.events[2].kind, EventKind::kCommCreate);
}

// An earlier relay took the definitions: lbfd knows them. After a gap of its own the converter knows what is
// lost.
TEST(RecordConverter, ARelayThatCameLaterTrustsUntilItSeesAGap) {
  RecordConverter converter(0, 2, false);
  Recorded out;
  ASSERT_TRUE(converter.convert(on_comm(EventKind::kSend, 3, 10, 25), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kGap, 26, 27), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(on_comm(EventKind::kSend, 4, 30, 31), {}, kNs, out.sink()).ok());
  ASSERT_EQ(out.events.size(), 3U);
  EXPECT_EQ(out.events[0].kind, EventKind::kSend);
  EXPECT_EQ(out.events[2].kind, EventKind::kGap);
}

TEST(RecordConverter, ADefinitionAheadTakesNoTime) {
  RecordConverter converter(0, 2);
  Recorded out;
  const std::vector<std::uint64_t> members{9, 0, 0, 1};
  const ring::Record definition = on_comm(EventKind::kCommCreate, 3, 40, 45);
  converter.define_ahead(definition, members, out.sink());
  converter.define_ahead(definition, members, out.sink());
  converter.define_ahead(on_comm(EventKind::kCommCreate, 4, 1, 1), std::vector<std::uint64_t>{9, 0, 7}, out.sink());
  ASSERT_EQ(out.events.size(), 1U);
  EXPECT_DOUBLE_EQ(out.events[0].process_s, 0);
  ASSERT_TRUE(converter.convert(on_comm(EventKind::kSend, 3, 10, 20), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(definition, members, kNs, out.sink()).ok());
  ASSERT_EQ(out.events.size(), 3U);
  EXPECT_EQ(out.events[1].kind, EventKind::kSend);
  EXPECT_DOUBLE_EQ(out.events[2].process_s, 20e-9);
}

TEST(RecordConverter, NothingFollowsTheExit) {
  RecordConverter converter(0, 2);
  Recorded out;
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kExit, 5, 5), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kSend, 6, 7), {}, kNs, out.sink()).ok());
  converter.close(8, kNs, out.sink());
  EXPECT_EQ(out.events.size(), 1U);
}

TEST(RecordConverter, AnEndThatNobodySawKeepsItsTime) {
  RecordConverter converter(0, 2);
  Recorded out;
  ring::Record open = RingFile::record(EventKind::kWindowOpen, 20, 30);
  open.bytes = 17;
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kWindowClose, 20, 20), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(open, {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kWindowClose, 50, 50), {}, kNs, out.sink()).ok());
  ASSERT_EQ(out.events.size(), 3U);
  converter.close(1'000'000'050, kNs, out.sink());
  ASSERT_EQ(out.events.size(), 6U);
  EXPECT_EQ(out.events[3].kind, EventKind::kSkipped);
  EXPECT_EQ(skipped_side(out.events[3]), SkippedSide::kEverything);
  EXPECT_EQ(out.events[4].kind, EventKind::kWindowOpen);
  EXPECT_EQ(out.events[4].bytes, 17U);
  EXPECT_DOUBLE_EQ(out.events[4].call_s, 1);
  EXPECT_EQ(out.events[5].kind, EventKind::kExit);
}

TEST(RecordConverter, TheCapturesOwnWordThatItEndedIsNotSaidTwice) {
  RecordConverter converter(0, 2);
  Recorded out;
  ring::Record end = RingFile::record(EventKind::kSkipped, 20, 20);
  ring::set_skipped(end, SkippedSide::kEverything, 1);
  end.peer = kAnyRank;
  ASSERT_TRUE(converter.convert(RingFile::record(EventKind::kWindowClose, 20, 20), {}, kNs, out.sink()).ok());
  ASSERT_TRUE(converter.convert(end, {}, kNs, out.sink()).ok());
  converter.close(10, kNs, out.sink());  // a clock that lies
  ASSERT_EQ(out.events.size(), 4U);
  EXPECT_EQ(out.events[2].kind, EventKind::kWindowOpen);
  EXPECT_DOUBLE_EQ(out.events[2].call_s, 0);
  EXPECT_EQ(out.events[3].kind, EventKind::kExit);
}

TEST(RecordConverter, AProcessThatDiesInAWindowJustEnds) {
  RecordConverter converter(0, 2);
  Recorded out;
  converter.close(100, kNs, out.sink());
  ASSERT_EQ(out.events.size(), 1U);
  EXPECT_EQ(out.events[0].kind, EventKind::kExit);
}

TEST(RecordConverter, AProceduresTicksBecomeNanosecondsOnceItHasAName) {
  constexpr Seconds kTick = 0.5e-9;
  RecordConverter converter(1000, 2);
  Recorded out;
  const auto spent = [] {
    ring::Record record = RingFile::record(EventKind::kProcedure, 3000, 3000);
    record.flags = 0;
    return record;
  };
  const std::vector<std::uint64_t> values{7, 1600, 400, 12};
  ASSERT_TRUE(converter.convert(spent(), values, kTick, out.sink()).ok());
  ASSERT_EQ(out.events.size(), 1U);
  EXPECT_EQ(out.events[0].kind, EventKind::kCompute) << "nobody named it: time like any other";
  EXPECT_DOUBLE_EQ(out.events[0].process_s, 2000 * kTick);
  converter.name_procedure(7);
  std::vector<std::uint64_t> told;
  const RelayEventSink sink = [&](const Event& event) {
    out.events.push_back(event);
    told.assign(event.values.begin(), event.values.end());
  };
  ASSERT_TRUE(converter.convert(spent(), values, kTick, sink).ok());
  EXPECT_EQ(out.events[1].kind, EventKind::kProcedure);
  EXPECT_EQ(told, (std::vector<std::uint64_t>{7, 800, 200, 12}));
  EXPECT_EQ(out.events[1].peer, kAnyRank);

  for (const std::vector<std::uint64_t>& bad :
       {std::vector<std::uint64_t>{7, 1600, 400}, {7, 400, 1600, 1}, {7, ~std::uint64_t{0}, 1, 1}}) {
    EXPECT_FALSE(converter.convert(spent(), bad, kTick, sink).ok());
  }
  EXPECT_EQ(out.events.size(), 2U);
}

}  // namespace
}  // namespace lbf::relay::record_converter_test