// RingReader: records come out whole and in order, and no content of a ring file can make it crash or read
// beyond.
#include "spank_plugin/relay/ring_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/scoped_fd.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/relay/ring_file.h"

namespace lbf::relay::ring_reader_test {
namespace {

constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 40;

class RingReaderTest : public testing::Test {
 protected:
  RingReaderTest() : dir_fd_(::open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  Result<RingReader> open(const RingFile& file) { return RingReader::open(dir_fd_.get(), file.name); }

  test::TemporaryDirectory dir_;
  ScopedFd dir_fd_;
  volatile std::uint64_t touched_ = 0;  // so that every value is really read
};

TEST_F(RingReaderTest, RecordsComeOutInOrderAcrossManyWraps) {
  RingFile file(dir_.path(), 100, 100);
  auto reader = open(file);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    for (;;) {
      std::vector<std::uint64_t> values(random() % 9);
      for (auto& value : values) value = written;
      if (!file.append(RingFile::record(EventKind::kWait, written, written + 1), values)) break;
      ++written;
    }
    auto drained = reader->drain(kNoLimit, [&](const ring::Record& r, std::span<const std::uint64_t> values) {
      ASSERT_EQ(r.enter, read);
      for (const std::uint64_t value : values) ASSERT_EQ(value, read);
      ++read;
    });
    ASSERT_TRUE(drained.ok()) << drained.error().message;
    ASSERT_EQ(reader->consumed_bytes(), file.head());
    // The room is given back to the producer.
    ASSERT_EQ(file.get<std::uint64_t>(offsetof(ring::Header, tail)), file.head());
  }
  EXPECT_EQ(read, written);
  EXPECT_GT(written, 20000U);
}

TEST_F(RingReaderTest, ItSaysHowItsProcessWasStarted) {
  RingFile file(dir_.path(), 100, 100);
  file.put(offsetof(ring::Header, wanted_bytes), std::uint64_t{8192});
  auto reader = open(file);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader->identity().launch, "");
  EXPECT_EQ(reader->identity().wanted_bytes, 8192U);
  file.put(offsetof(ring::Header, launch), *"A=B");
  reader = open(file);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader->identity().launch.substr(0, 2), std::string("A\0", 2));
}

TEST_F(RingReaderTest, RecordLongerThanAChunk) {
  RingFile file(dir_.path(), 100, 100, 4 << 20);
  ASSERT_TRUE(file.append(RingFile::record(EventKind::kSend, 1, 2)));
  std::vector<std::uint64_t> values(100000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i;
  ASSERT_TRUE(file.append(RingFile::record(EventKind::kCommCreate, 3, 4), values));
  ASSERT_TRUE(file.append(RingFile::record(EventKind::kSend, 5, 6)));
  auto reader = open(file);
  ASSERT_TRUE(reader.ok());
  std::vector<std::size_t> lengths;
  auto drained = reader->drain(kNoLimit, [&](const ring::Record&, std::span<const std::uint64_t> got) {
    lengths.push_back(got.size());
    if (!got.empty()) {
      EXPECT_TRUE(std::equal(got.begin(), got.end(), values.begin(), values.end()));
    }
  });
  ASSERT_TRUE(drained.ok()) << drained.error().message;
  EXPECT_THAT(lengths, testing::ElementsAre(0, 100000, 0));
}

// Eight rings, each with one record of 128 MiB in holes of its file: the relay took 1 GiB for them.
TEST_F(RingReaderTest, ARecordThatIsLongerThanTheLongestBreaksItsRing) {
  RingFile file(dir_.path(), 100, 100, 4 << 20);
  ASSERT_TRUE(file.append(RingFile::record(EventKind::kCommCreate, 3, 4), std::vector<std::uint64_t>(100'000)));
  ASSERT_TRUE(file.append(RingFile::record(EventKind::kCommCreate, 3, 4), std::vector<std::uint64_t>(200'000)));
  auto reader = RingReader::open(dir_fd_.get(), file.name, std::uint64_t{1} << 20);
  ASSERT_TRUE(reader.ok());
  std::size_t records = 0;
  const auto drained = reader->drain(kNoLimit, [&](const ring::Record&, std::span<const std::uint64_t>) { ++records; });
  ASSERT_FALSE(drained.ok());
  EXPECT_THAT(drained.error().message, testing::HasSubstr("a record of 1600048 bytes, the relay reads 1048576"));
  EXPECT_EQ(records, 1U);
}

TEST_F(RingReaderTest, ALongPadIsNotCopied) {
  RingFile file(dir_.path(), 100, 100, 4 << 20);
  ASSERT_TRUE(file.append(RingFile::record(EventKind::kCommCreate, 3, 4), std::vector<std::uint64_t>(200'000)));
  const auto ignore = [](const ring::Record&, std::span<const std::uint64_t>) {};
  auto reader = RingReader::open(dir_fd_.get(), file.name, std::uint64_t{2} << 20);
  ASSERT_TRUE(reader.ok() && reader->drain(kNoLimit, ignore).ok());
  ASSERT_TRUE(file.append(RingFile::record(EventKind::kSend, 5, 6)));
  ASSERT_TRUE(file.append(RingFile::record(EventKind::kCommCreate, 7, 8), std::vector<std::uint64_t>(200'000)));
  ASSERT_TRUE(reader->drain(kNoLimit, ignore).ok());
  // From here to the ring's end there is no room for it.
  ASSERT_TRUE(file.append(RingFile::record(EventKind::kCommCreate, 9, 10), std::vector<std::uint64_t>(200'000)));
  std::vector<std::uint64_t> enters;
  const auto drained = reader->drain(
      kNoLimit, [&](const ring::Record& record, std::span<const std::uint64_t>) { enters.push_back(record.enter); });
  ASSERT_TRUE(drained.ok()) << drained.error().message;
  EXPECT_THAT(enters, testing::ElementsAre(9));
  EXPECT_EQ(reader->consumed_bytes(), file.head());
}

// Another process may have the ring of one that is gone mapped, and write faster than the relay reads.
TEST_F(RingReaderTest, WhatIsWrittenIntoASealedRingIsNotRead) {
  RingFile file(dir_.path(), 100, 100);
  ASSERT_TRUE(file.append(RingFile::record(EventKind::kSend, 1, 2)));
  auto reader = open(file);
  ASSERT_TRUE(reader.ok());
  reader->seal();
  ASSERT_TRUE(file.append(RingFile::record(EventKind::kSend, 3, 4)));
  std::vector<std::uint64_t> enters;
  const auto drain = [&] {
    return reader->drain(kNoLimit, [&](const ring::Record& record, std::span<const std::uint64_t>) {
      enters.push_back(record.enter);
      file.append(RingFile::record(EventKind::kSend, 5, 6));
    });
  };
  ASSERT_TRUE(drain().ok());
  const auto again = drain();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, 0U);
  EXPECT_THAT(enters, testing::ElementsAre(1));
}

TEST_F(RingReaderTest, DrainStopsNearItsLimit) {
  RingFile file(dir_.path(), 100, 100, 4 << 20);
  for (int i = 0; i < 20000; ++i) ASSERT_TRUE(file.append(RingFile::record(EventKind::kSend, 1, 2)));
  auto reader = open(file);
  ASSERT_TRUE(reader.ok());
  auto drained = reader->drain(1, [](const ring::Record&, std::span<const std::uint64_t>) {});
  ASSERT_TRUE(drained.ok());
  EXPECT_GT(*drained, 0U);
  EXPECT_LT(*drained, file.head());
}

TEST_F(RingReaderTest, ASecondReaderGoesOnWhereTheFirstEnded) {
  RingFile file(dir_.path(), 100, 100);
  ASSERT_TRUE(file.append(RingFile::record(EventKind::kSend, 1, 2)));
  const auto ignore = [](const ring::Record&, std::span<const std::uint64_t>) {};
  {
    auto reader = open(file);
    ASSERT_TRUE(reader.ok() && reader->drain(kNoLimit, ignore).ok());
  }
  ASSERT_TRUE(file.append(RingFile::record(EventKind::kSend, 7, 8)));
  auto reader = open(file);
  ASSERT_TRUE(reader.ok());
  std::vector<std::uint64_t> enters;
  ASSERT_TRUE(
      reader->drain(kNoLimit, [&](const ring::Record& r, std::span<const std::uint64_t>) { enters.push_back(r.enter); })
          .ok());
  EXPECT_THAT(enters, testing::ElementsAre(7));
}

TEST_F(RingReaderTest, WrongHeadersAreRefused) {
  struct Case {
    std::size_t offset;
    std::uint64_t value;
    std::size_t bytes;
    ErrorCode code;
  };
  const Case cases[] = {
      {offsetof(ring::Header, magic), 0, 8, ErrorCode::kNotFound},  // not ready yet: tried again
      {offsetof(ring::Header, magic), 1, 8, ErrorCode::kInvalidInput},
      {offsetof(ring::Header, version), ring::kVersion + 1, 4, ErrorCode::kInvalidInput},
      {offsetof(ring::Header, header_bytes), 0, 4, ErrorCode::kInvalidInput},
      {offsetof(ring::Header, header_bytes), 0xffffffff, 4, ErrorCode::kInvalidInput},
      {offsetof(ring::Header, capacity_bytes), 0, 8, ErrorCode::kInvalidInput},
      {offsetof(ring::Header, capacity_bytes), 4095, 8, ErrorCode::kInvalidInput},
      {offsetof(ring::Header, capacity_bytes), 8192, 8, ErrorCode::kInvalidInput},  // longer than the file
      {offsetof(ring::Header, capacity_bytes), ~std::uint64_t{0}, 8, ErrorCode::kInvalidInput},
      {offsetof(ring::Header, capacity_bytes), std::uint64_t{1} << 63, 8, ErrorCode::kInvalidInput},
      {offsetof(ring::Header, pid), 0, 4, ErrorCode::kInvalidInput},
      {offsetof(ring::Header, clock_source), 2, 4, ErrorCode::kInvalidInput},
      {offsetof(ring::Header, head), 4, 8, ErrorCode::kInvalidInput},
      {offsetof(ring::Header, head), 8192, 8, ErrorCode::kInvalidInput},
      {offsetof(ring::Header, tail), 8, 8, ErrorCode::kInvalidInput},  // beyond head
  };
  for (const Case& c : cases) {
    RingFile file(dir_.path(), 100, 100);
    if (c.bytes == 8) {
      file.put(c.offset, c.value);
    } else {
      file.put(c.offset, static_cast<std::uint32_t>(c.value));
    }
    auto reader = open(file);
    ASSERT_FALSE(reader.ok()) << "offset " << c.offset << " value " << c.value;
    EXPECT_EQ(reader.error().code, c.code) << reader.error().message;
  }
}

TEST_F(RingReaderTest, HostileRecordLengthsEndTheRing) {
  for (const std::uint32_t words : {0U, 1U, 5U, 7U, 512U, 513U, 0xffffffU}) {
    RingFile file(dir_.path(), 100, 100);
    ASSERT_TRUE(file.append(RingFile::record(EventKind::kSend, 1, 2)));
    ASSERT_TRUE(file.append(RingFile::record(EventKind::kSend, 3, 4)));
    file.put(sizeof(ring::Header) + 48, words);
    auto reader = open(file);
    ASSERT_TRUE(reader.ok());
    int records = 0;
    auto drained = reader->drain(kNoLimit, [&](const ring::Record&, std::span<const std::uint64_t>) { ++records; });
    EXPECT_FALSE(drained.ok()) << words;
    EXPECT_EQ(records, 1) << words;  // the one before it stands
  }
}

TEST_F(RingReaderTest, UnknownKindOpOrFunctionEndsTheRing) {
  const auto refuse = [&](auto change) {
    RingFile file(dir_.path(), 100, 100);
    ring::Record r = RingFile::record(EventKind::kSend, 1, 2);
    change(r);
    ASSERT_TRUE(file.append(r));
    auto reader = open(file);
    ASSERT_TRUE(reader.ok());
    int records = 0;
    EXPECT_FALSE(reader->drain(kNoLimit, [&](const ring::Record&, std::span<const std::uint64_t>) { ++records; }).ok());
    EXPECT_EQ(records, 0);
  };
  refuse([](ring::Record& r) { r.kind = kEventKindCount; });
  refuse([](ring::Record& r) { r.kind = 252; });
  refuse([](ring::Record& r) { ring::set_op_code(r, kCollectiveOpCount); });
  refuse([](ring::Record& r) { r.function = ring::kMaxFunctions; });
}

TEST_F(RingReaderTest, AFileThatIsCutWhileItIsReadIsAnErrorNotASignal) {
  RingFile file(dir_.path(), 100, 100);
  ASSERT_TRUE(file.append(RingFile::record(EventKind::kSend, 1, 2)));
  auto reader = open(file);
  ASSERT_TRUE(reader.ok());
  for (const off_t bytes : {static_cast<off_t>(sizeof(ring::Header)), off_t{100}, off_t{0}}) {
    ASSERT_EQ(::truncate(file.path.c_str(), bytes), 0);
    EXPECT_FALSE(reader->drain(kNoLimit, [](const ring::Record&, std::span<const std::uint64_t>) {}).ok());
  }
  EXPECT_FALSE(reader->read_status().ok());
  EXPECT_FALSE(reader->read_calls().ok());
}

TEST_F(RingReaderTest, LinksAndOtherFilesAreRefused) {
  RingFile file(dir_.path(), 100, 100);
  const std::string link = dir_.path() + "/7.7.ring";
  ASSERT_EQ(::symlink(file.path.c_str(), link.c_str()), 0);
  EXPECT_FALSE(RingReader::open(dir_fd_.get(), "7.7.ring").ok());
  ASSERT_EQ(::mkfifo((dir_.path() + "/8.8.ring").c_str(), 0600), 0);
  EXPECT_FALSE(RingReader::open(dir_fd_.get(), "8.8.ring").ok());
  ASSERT_EQ(::mkdir((dir_.path() + "/9.9.ring").c_str(), 0700), 0);
  EXPECT_FALSE(RingReader::open(dir_fd_.get(), "9.9.ring").ok());
}

// Every byte of the fixed header and of the data area in turn set to hostile values: no crash, and never more
// records than fit.
TEST_F(RingReaderTest, NoByteOfTheFileCanHarm) {
  for (const int value : {0x00, 0x7f, 0x80, 0xff}) {
    RingFile file(dir_.path(), 100, 100);
    std::vector<std::uint64_t> values{1, 0, 0};
    while (file.append(RingFile::record(EventKind::kCommCreate, 3, 4), values)) {
    }
    std::vector<std::size_t> offsets;
    for (std::size_t i = 0; i < offsetof(ring::Header, calls); ++i) offsets.push_back(i);
    for (std::size_t i = 0; i < 4096; ++i) offsets.push_back(sizeof(ring::Header) + i);
    for (std::size_t i = 0; i < 8; ++i) offsets.push_back(offsetof(ring::Header, head) + i);
    for (const std::size_t offset : offsets) {
      const auto old = file.get<std::uint8_t>(offset);
      file.put(offset, static_cast<std::uint8_t>(value));
      file.put(offsetof(ring::Header, tail), std::uint64_t{0});
      std::size_t records = 0;
      if (auto reader = open(file); reader.ok()) {
        (void)reader->read_status();
        (void)reader->drain(kNoLimit, [&](const ring::Record&, std::span<const std::uint64_t> got) {
          ++records;
          for (const std::uint64_t word : got) touched_ = touched_ + word;
        });
      }
      ASSERT_LE(records, 4096U / 48);
      file.put(offset, old);
    }
  }
}

TEST_F(RingReaderTest, StatusAndCallsAreReadByField) {
  RingFile file(dir_.path(), 100, 100);
  file.put(offsetof(ring::Header, lost_records), std::uint64_t{9});
  file.put(offsetof(ring::Header, calls) + 16 * 5, std::uint64_t{3});
  file.put(offsetof(ring::Header, calls) + 16 * 5 + 8, std::uint64_t{77});
  file.put(offsetof(ring::Header, library), std::uint64_t{0x0a22414141});  // AAA, a quote, a line feed
  auto reader = open(file);
  ASSERT_TRUE(reader.ok());
  auto status = reader->read_status();
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->world_size, 2);
  EXPECT_EQ(status->state, ring::ProcessState::kRunning);
  EXPECT_EQ(status->lost_records, 9U);
  EXPECT_EQ(status->library, "AAA\"?");
  auto calls = reader->read_calls();
  ASSERT_TRUE(calls.ok());
  ASSERT_EQ(calls->size(), 1U);
  EXPECT_EQ(calls->front().function, 5);
  EXPECT_EQ(calls->front().count, 3U);
  EXPECT_EQ(calls->front().ticks, 77U);
}

}  // namespace
}  // namespace lbf::relay::ring_reader_test