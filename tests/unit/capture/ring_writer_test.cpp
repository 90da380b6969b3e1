// The ring writer against a reader that believes ring.h only: records, adjustments, pads, several records of
// one call, and a full ring.
#include "spank_plugin/capture/ring_writer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <vector>

namespace lbf::capture::ring_writer_test {
namespace {

using ring::Record;

struct Read {
  Record record;
  std::vector<std::uint64_t> values;
};

class RingWriterTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kCapacity = 4096;

  RingWriterTest() { writer_.attach(header_.get(), data_.data(), kCapacity, kCapacity); }

  // One call that leaves one record with `values` values that count up from `bytes`.
  void call(std::uint64_t enter, std::uint64_t leave, std::uint64_t bytes = 0, std::uint32_t values = 0) {
    writer_.begin_call(enter, 7);
    if (Record* record = writer_.append(EventKind::kSend, values)) {
      record->bytes = bytes;
      for (std::uint32_t i = 0; i < values; ++i) RingWriter::values_of(record)[i] = bytes + i;
    }
    writer_.commit(leave);
  }

  // A call that finds nothing.
  void look() {
    writer_.note_look(1);
    writer_.adjust(0, 0, 1);
  }

  // Everything that is published, pads left out.
  std::vector<Read> drain() {
    std::vector<Read> all;
    std::uint64_t at = header_->tail;
    const std::uint64_t head = header_->head;
    EXPECT_LE(head - at, kCapacity);
    while (at < head) {
      const std::uint64_t offset = at & (kCapacity - 1);
      Read read{};
      std::memcpy(static_cast<void*>(&read.record), data_.data() + offset,
                  std::min<std::uint64_t>(sizeof(Record), kCapacity - offset));
      const std::uint64_t words = read.record.words_and_op & 0xffffff;
      if (words == 0 || offset + words * 8 > kCapacity) {
        ADD_FAILURE() << "record of " << words << " words at " << offset;
        break;
      }
      at += words * 8;
      if (read.record.kind == ring::kRecordPad) continue;
      read.values.resize(words - ring::kRecordWords);
      if (!read.values.empty()) {
        std::memcpy(read.values.data(), data_.data() + offset + sizeof(Record), read.values.size() * 8);
      }
      all.push_back(read);
    }
    header_->tail.store(at);
    return all;
  }

  std::unique_ptr<ring::Header> header_ = std::make_unique<ring::Header>();
  alignas(64) std::array<std::byte, kCapacity> data_{};
  RingWriter writer_;
};

// Whatever happened before: what a record says does not depend on how it was written.
TEST_F(RingWriterTest, FieldsMakeTheSameRecordInAnyState) {
  std::mt19937 random(5);
  std::uint64_t now = 100;
  std::uint64_t lost = 0;
  std::uint64_t seen = 0;
  std::uint64_t plain = 0;
  std::vector<RingWriter::Fields> expected;
  const auto check = [&] {
    std::size_t i = 0;
    for (const Read& read : drain()) {
      const Record& record = read.record;
      if (record.kind == ring::kRecordAdjust || record.kind == static_cast<std::uint8_t>(EventKind::kGap)) continue;
      ASSERT_LT(i, expected.size());
      const RingWriter::Fields& fields = expected[i++];
      EXPECT_EQ(record.words_and_op, ring::kRecordWords);
      EXPECT_EQ(record.function, 9);
      EXPECT_EQ(record.kind, static_cast<std::uint8_t>(EventKind::kIsend));
      EXPECT_EQ(record.peer, fields.peer);
      EXPECT_EQ(record.tag, fields.tag);
      EXPECT_EQ(record.comm, fields.comm);
      EXPECT_EQ(record.request, fields.request);
      EXPECT_EQ(record.bytes, fields.bytes);
      EXPECT_EQ(record.flags & ~kFlagCallBegin, fields.flags);
      EXPECT_EQ((record.flags & kFlagCallBegin) != 0, record.enter != record.leave);
      ++seen;
    }
    EXPECT_EQ(i, expected.size());
    expected.clear();
  };
  for (int call = 0; call < 20'000; ++call) {
    const auto number = [&] { return static_cast<std::uint32_t>(random()); };
    if (number() % 8 == 0) writer_.adjust(1, 0, 0);
    if (number() % 64 == 0) writer_.lose_calls(1, now);
    if (number() % 64 == 0) writer_.use_kept_back();
    if (number() % 16 == 0) writer_.keep_back();
    writer_.begin_call(now, 9);
    const std::uint64_t lost_before = header_->lost_records;
    const std::uint32_t records = 1 + number() % 4;
    std::vector<RingWriter::Fields> of_call;
    for (std::uint32_t i = 0; i < records; ++i) {
      of_call.push_back({static_cast<std::int32_t>(number()), static_cast<std::int32_t>(number()), number(), number(),
                         number(), static_cast<std::uint8_t>(number() % 2 != 0 ? kFlagHasRequest : 0)});
      if (writer_.has_plain_room() && number() % 2 == 0) {
        writer_.append_plain(EventKind::kIsend, of_call.back());
        ++plain;
      } else {
        writer_.append(EventKind::kIsend, of_call.back());
      }
    }
    const bool one = records == 1 && writer_.has_one_record();
    if (one) {
      writer_.commit_one(now + 5);
    } else {
      writer_.commit(now + 5);
    }
    // The first ones of a call may be in the ring where a later one was lost.
    const std::uint64_t missing = header_->lost_records - lost_before;
    ASSERT_LE(missing, records);
    lost += missing;
    of_call.resize(records - missing);
    expected.insert(expected.end(), of_call.begin(), of_call.end());
    now += 10;
    if (number() % 12 == 0) check();
  }
  check();
  EXPECT_GT(lost, 100u);
  EXPECT_GT(seen, 10'000u);
  EXPECT_GT(plain, 1'000u);
}

TEST_F(RingWriterTest, RecordCarriesItsCall) {
  call(100, 130, 8);
  const auto all = drain();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].record.enter, 100u);
  EXPECT_EQ(all[0].record.leave, 130u);
  EXPECT_EQ(all[0].record.bytes, 8u);
  EXPECT_EQ(all[0].record.function, 7u);
  EXPECT_EQ(all[0].record.flags, kFlagCallBegin);
}

TEST_F(RingWriterTest, NothingIsVisibleBeforeTheCallEnds) {
  writer_.begin_call(1, 7);
  writer_.append(EventKind::kRecv);
  EXPECT_EQ(header_->head.load(), 0u);
  writer_.commit(2);
  EXPECT_EQ(header_->head.load(), sizeof(Record));
}

TEST_F(RingWriterTest, LaterRecordsOfACallHaveNoTimeOfTheirOwn) {
  writer_.begin_call(10, 7);
  writer_.append(EventKind::kStartRecv);
  writer_.append(EventKind::kSend, 3);
  writer_.append(EventKind::kEndRecv);
  writer_.commit(50);
  const auto all = drain();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].record.enter, 10u);
  EXPECT_EQ(all[0].record.leave, 50u);
  for (std::size_t i : {1u, 2u}) {
    EXPECT_EQ(all[i].record.enter, 50u);
    EXPECT_EQ(all[i].record.leave, 50u);
    EXPECT_EQ(all[i].record.flags & kFlagCallBegin, 0);
  }
}

TEST_F(RingWriterTest, AdjustmentsAddUpBeforeTheNextRecord) {
  writer_.adjust(1, 20, 300);
  writer_.begin_call(5, 7);
  writer_.commit(6);  // a call without a record does not carry them
  writer_.adjust(4, 0, 1000);
  call(10, 20);
  call(30, 40);
  const auto all = drain();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].record.kind, ring::kRecordAdjust);
  EXPECT_EQ(all[0].record.enter, 5u);
  EXPECT_EQ(all[0].record.leave, 20u);
  EXPECT_EQ(all[0].record.bytes, 1300u);
  EXPECT_EQ(all[1].record.kind, static_cast<std::uint8_t>(EventKind::kSend));
  EXPECT_EQ(all[2].record.kind, static_cast<std::uint8_t>(EventKind::kSend));
}

TEST_F(RingWriterTest, SleepAfterALookIsPartOfWhatIsBlocked) {
  writer_.adjust(0, 20, 0);
  constexpr std::uint64_t kSleep = (std::uint64_t{7} << 32) + 0x89abcdef;
  for (int i = 0; i < 2; ++i) {
    writer_.adjust(0, kSleep, 0);
    writer_.note_look_sleep(kSleep);
  }
  call(10, 20);
  const auto all = drain();
  ASSERT_EQ(all.size(), 2u);
  const ring::Adjustment told = ring::adjustment_of(all[0].record);
  EXPECT_EQ(told.blocked, 20 + 2 * kSleep);
  EXPECT_EQ(told.look_sleep, 2 * kSleep);
  EXPECT_EQ(told.look_sleeps, 2u);
}

TEST_F(RingWriterTest, LooksStandBehindTheAdjustment) {
  writer_.note_look_cpu(300);
  for (const std::uint64_t between : {0U, 20U, 30U}) {
    writer_.note_look(between);
    writer_.adjust(0, 0, 500 + between);
  }
  call(10, 20);
  const auto all = drain();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(ring::adjustment_of(all[0].record).waiting, 1550u);
  EXPECT_EQ(all[0].values, (std::vector<std::uint64_t>{3, 50, 1, 300}));
}

TEST_F(RingWriterTest, EveryLengthSurvivesTheEndOfTheDataArea) {
  std::mt19937 random(1);
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  for (int round = 0; round < 5000; ++round) {
    if (random() % 5 == 0) writer_.adjust(random() % 3, 1, 0);
    if (random() % 5 == 0) look();
    call(sent * 10 + 1, sent * 10 + 2, sent, random() % 20);
    ++sent;
    if (round % 3 == 0) {
      for (const Read& read : drain()) {
        if (read.record.kind == ring::kRecordAdjust) continue;
        ASSERT_EQ(read.record.bytes, received);
        for (std::size_t i = 0; i < read.values.size(); ++i) ASSERT_EQ(read.values[i], received + i);
        ++received;
      }
    }
  }
  EXPECT_GT(received, 4990u);
  EXPECT_EQ(header_->lost_records.load(), 0u);
}

TEST_F(RingWriterTest, FullRingCountsWhatIsLostAndSaysSoWhenThereIsRoom) {
  std::uint64_t made = 0;
  for (; made < 200; ++made) call(made * 10, made * 10 + 5, made);
  const std::uint64_t lost = header_->lost_records;
  auto before = drain();
  EXPECT_EQ(before.size() + lost, made);
  EXPECT_GT(lost, 0u);
  const std::uint64_t last_kept = before.back().record.bytes;
  call(made * 10, made * 10 + 5, made);
  const auto after = drain();
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0].record.kind, static_cast<std::uint8_t>(EventKind::kGap));
  EXPECT_EQ(after[0].record.bytes, lost);
  // The gap covers the lost calls, so that their time is nobody's process time.
  EXPECT_EQ(after[0].record.enter, (last_kept + 1) * 10);
  EXPECT_EQ(after[0].record.leave, (made - 1) * 10 + 5);
  EXPECT_EQ(after[1].record.bytes, made);
  EXPECT_EQ(header_->lost_records.load(), lost);
}

TEST_F(RingWriterTest, ACallIsNotTakenUpAgainHalfWay) {
  writer_.begin_call(1, 7);
  int kept = 0;
  for (int i = 0; i < 300; ++i) {
    if (i == 200) header_->tail.store(0);
    kept += writer_.append(EventKind::kWait) != nullptr;
  }
  writer_.commit(1000);
  EXPECT_EQ(header_->lost_records.load(), static_cast<std::uint64_t>(300 - kept));
  const auto all = drain();
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kept));
  call(2000, 2001);
  const auto after = drain();
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0].record.enter, 1000u);  // the call's own time is in its first record
}

TEST_F(RingWriterTest, TheLastRecordsAlwaysFit) {
  for (int i = 0; i < 500; ++i) {
    writer_.adjust(1, 1, 1);
    look();
    call(static_cast<std::uint64_t>(i) * 10 + 1, static_cast<std::uint64_t>(i) * 10 + 2);
  }
  ASSERT_GT(header_->lost_records.load(), 0u);
  writer_.use_kept_back();
  writer_.begin_call(9000, 3);
  EXPECT_NE(writer_.append(EventKind::kExit), nullptr);
  writer_.commit(9000);
  const auto all = drain();
  EXPECT_EQ(all.back().record.kind, static_cast<std::uint8_t>(EventKind::kExit));
  EXPECT_EQ(all[all.size() - 2].record.kind, static_cast<std::uint8_t>(EventKind::kGap));
}

// A thread that ends with its ring full: no record comes that the gap could go before.
TEST_F(RingWriterTest, WhatWasLostLastIsToldWhenTheThreadEnds) {
  std::uint64_t made = 0;
  for (; made < 200; ++made) {
    writer_.adjust(1, 1, 1);
    look();
    call(made * 10 + 1, made * 10 + 2, made);
  }
  const std::uint64_t lost = header_->lost_records;
  ASSERT_GT(lost, 0u);
  writer_.end();
  const auto all = drain();
  ASSERT_EQ(
      std::count_if(all.begin(), all.end(),
                    [](const Read& read) { return read.record.kind == static_cast<std::uint8_t>(EventKind::kGap); }),
      1);
  const Record& gap = all.back().record;
  EXPECT_EQ(gap.kind, static_cast<std::uint8_t>(EventKind::kGap));
  EXPECT_EQ(gap.bytes, lost);
  EXPECT_EQ(gap.enter, (made - lost) * 10 + 1);
  EXPECT_EQ(gap.leave, (made - 1) * 10 + 2);
  EXPECT_EQ(all[all.size() - 2].record.kind, ring::kRecordAdjust) << "of the time before it";
  EXPECT_EQ(header_->lost_records.load(), lost) << "counted once";
}

TEST_F(RingWriterTest, AThreadThatLostNothingEndsWithoutAWord) {
  writer_.adjust(1, 1, 1);
  writer_.end();
  call(1, 2);
  writer_.end();
  EXPECT_EQ(drain().size(), 2u) << "the adjustment and the call";
}

TEST_F(RingWriterTest, WithoutAnyRoomTheEndIsCountedOnly) {
  writer_.use_kept_back();
  for (std::uint64_t i = 0; i < 200; ++i) call(i * 10 + 1, i * 10 + 2);
  const std::uint64_t head = header_->head;
  const std::uint64_t lost = header_->lost_records;
  ASSERT_GT(lost, 0u);
  writer_.end();
  EXPECT_EQ(header_->head.load(), head);
  EXPECT_EQ(header_->lost_records.load(), lost);
  EXPECT_LE(drain().size() * sizeof(Record), kCapacity);
}

TEST_F(RingWriterTest, AWindowCanAlwaysBeClosedAndTheEndFitsAfterIt) {
  for (int i = 0; i < 500; ++i) {
    writer_.adjust(1, 1, 1);
    look();
    call(static_cast<std::uint64_t>(i) * 10 + 1, static_cast<std::uint64_t>(i) * 10 + 2);
  }
  const std::uint64_t lost = header_->lost_records.load();
  ASSERT_GT(lost, 0u);
  const auto mark = [&](EventKind kind, std::uint64_t at) {
    writer_.begin_call(at, 3);
    EXPECT_NE(writer_.append(kind), nullptr);
    writer_.commit(at);
  };
  writer_.use_kept_back();
  mark(EventKind::kWindowClose, 9000);
  writer_.keep_back();
  // While closed: without room nothing is lost.
  writer_.begin_call(9000, 3);
  EXPECT_EQ(writer_.try_append(EventKind::kSkipped), nullptr);
  EXPECT_FALSE(writer_.recorded());
  EXPECT_EQ(header_->lost_records.load(), lost);
  writer_.use_kept_back();
  mark(EventKind::kWindowOpen, 9100);
  writer_.lose_calls(1, 9100);
  mark(EventKind::kExit, 9100);
  const auto all = drain();
  ASSERT_GE(all.size(), 5u);
  const EventKind expected[] = {EventKind::kGap, EventKind::kWindowClose, EventKind::kWindowOpen, EventKind::kGap,
                                EventKind::kExit};
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(all[all.size() - 5 + i].record.kind, static_cast<std::uint8_t>(expected[i])) << i;
}

TEST_F(RingWriterTest, AdjustmentsOfTimeThatIsNotRecordedAreDropped) {
  writer_.adjust(5, 6, 7);
  writer_.drop_adjustments();
  call(1, 2);
  EXPECT_EQ(drain().size(), 1u);
}

TEST_F(RingWriterTest, ARecordThatCanNeverFitIsLostAlone) {
  call(1, 2, 1, 400);  // 3,248 bytes of a ring of 4,096
  call(3, 4, 2);
  const auto all = drain();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].record.kind, static_cast<std::uint8_t>(EventKind::kGap));
  EXPECT_EQ(all[1].record.bytes, 2u);
}

// How a communicator's definition goes out before the call that needs it is over.
TEST_F(RingWriterTest, ARecordMayBePublishedAheadOfItsCall) {
  writer_.begin_call(100, 7);
  writer_.append(EventKind::kCommCreate, 3);
  writer_.commit(100);
  EXPECT_GT(header_->head.load(), 0u);
  writer_.append(EventKind::kSend);
  writer_.commit(140);
  const auto all = drain();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].record.enter, 100u);
  EXPECT_EQ(all[0].record.leave, 100u);
  EXPECT_EQ(all[1].record.enter, 100u);
  EXPECT_EQ(all[1].record.leave, 140u);
  EXPECT_EQ(all[1].record.flags, kFlagCallBegin);
}

TEST_F(RingWriterTest, CallsThatWereNotSeenAreAGap) {
  call(10, 20);
  writer_.lose_calls(0, 25);
  call(30, 40);
  writer_.lose_calls(3, 50);
  writer_.lose_calls(2, 55);
  call(60, 70);
  const auto all = drain();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[2].record.kind, static_cast<std::uint8_t>(EventKind::kGap));
  EXPECT_EQ(all[2].record.bytes, 5u);
  EXPECT_EQ(all[2].record.enter, 50u);
  EXPECT_EQ(all[2].record.leave, 55u);
  EXPECT_EQ(header_->lost_records.load(), 5u);
}

TEST_F(RingWriterTest, ATailThatLiesStopsTheWriterOnly) {
  header_->tail.store(std::uint64_t{1} << 60);  // from a broken relay: beyond the head
  for (int i = 0; i < 200; ++i) call(1, 2);
  EXPECT_GT(header_->lost_records.load(), 0u);
  EXPECT_LE(header_->head.load(), kCapacity);
}

TEST(ProcedureWords, AreARecordOfTheirOwnWithoutTime) {
  constexpr std::uint64_t kCapacity = 4096;
  auto header = std::make_unique<ring::Header>();
  alignas(8) static std::byte data[kCapacity];
  RingWriter writer;
  writer.attach(header.get(), data, kCapacity, kCapacity);
  const std::string name = "grid::step";
  const std::string text = "why";
  ASSERT_TRUE(
      writer.write_procedure(ring::ProcedureWord::kNote, 5, name.data(), name.size(), text.data(), text.size()));
  const auto* record = reinterpret_cast<const ring::Record*>(data);
  EXPECT_EQ(record->kind, ring::kRecordProcedure);
  EXPECT_EQ(record->tag, static_cast<std::int32_t>(ring::ProcedureWord::kNote));
  EXPECT_EQ(record->comm, 5u);
  EXPECT_EQ(record->request, name.size());
  EXPECT_EQ(record->bytes, name.size() + text.size());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(record + 1), record->bytes), name + text);
  EXPECT_EQ(header->head.load(), sizeof(ring::Record) + 16);
  // It leaves room for calls: half of the ring.
  const std::string longest(1000, 'x');
  int written = 0;
  while (writer.write_procedure(ring::ProcedureWord::kName, 1, longest.data(), longest.size(), "", 0)) ++written;
  EXPECT_LE(header->head.load(), kCapacity / 2);
  EXPECT_EQ(header->lost_records.load(), 0u);
  writer.begin_call(10, 1);
  EXPECT_NE(writer.append(EventKind::kSend), nullptr);
  writer.commit(11);
}

// A ring of 4 pieces in a file of FILE_BYTES; the first piece has its pages.
class RingPages : public testing::Test {
 protected:
  static constexpr std::uint64_t kCapacity = 4 * RingWriter::kPieceBytes;

  void SetUp() override {
    void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool can = madvise(page, 4096, RingWriter::kPopulateWrite) == 0;
    munmap(page, 4096);
    if (!can) GTEST_SKIP() << "this kernel has no MADV_POPULATE_WRITE: rings have all their pages at the start";
  }
  void make(std::uint64_t file_bytes) {
    file_ = memfd_create("ring", 0);
    ASSERT_EQ(ftruncate(file_, static_cast<off_t>(file_bytes)), 0);
    data_ = mmap(nullptr, kCapacity, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    ASSERT_NE(data_, MAP_FAILED);
    ASSERT_EQ(madvise(data_, RingWriter::kPieceBytes, RingWriter::kPopulateWrite), 0);
    writer_.attach(header_.get(), static_cast<std::byte*>(data_), kCapacity, RingWriter::kPieceBytes);
  }
  void TearDown() override {
    if (data_ != MAP_FAILED) munmap(data_, kCapacity);
    if (file_ >= 0) close(file_);
  }
  // Records that a relay reads at once.
  void write(std::uint64_t bytes) {
    for (std::uint64_t written = 0; written < bytes; written += sizeof(ring::Record)) {
      writer_.begin_call(1, 7);
      writer_.append(EventKind::kSend, {});
      writer_.commit(2);
      header_->tail.store(header_->head.load());
    }
  }
  std::uint64_t pieces() const {
    struct stat status {};
    fstat(file_, &status);
    return static_cast<std::uint64_t>(status.st_blocks) * 512 / RingWriter::kPieceBytes;
  }

  std::unique_ptr<ring::Header> header_ = std::make_unique<ring::Header>();
  RingWriter writer_;
  int file_ = -1;
  void* data_ = MAP_FAILED;
};

TEST_F(RingPages, ComeAsTheyAreNeeded) {
  make(kCapacity);
  write(RingWriter::kPieceBytes / 2);
  EXPECT_EQ(pieces(), 1u);
  write(RingWriter::kPieceBytes);
  EXPECT_EQ(pieces(), 2u);
  write(3 * kCapacity);
  EXPECT_EQ(pieces(), 4u);
  EXPECT_EQ(header_->lost_records.load(), 0u);
}

TEST_F(RingPages, AFullFileSystemIsAFullRingAndNoSignal) {
  make(RingWriter::kPieceBytes);  // a write behind it would be a SIGBUS
  write(2 * kCapacity);
  EXPECT_LE(header_->head.load(), RingWriter::kPieceBytes);
  EXPECT_GT(header_->head.load(), RingWriter::kPieceBytes / 2);
  EXPECT_GT(header_->lost_records.load(), 0u);
}

}  // namespace
}  // namespace lbf::capture::ring_writer_test