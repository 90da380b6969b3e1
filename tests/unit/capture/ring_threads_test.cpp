// The ring with its producer and its consumer at work: what is published is whole, and nothing is written over that was
// not read. The relay reads with pread, where no sanitizer looks; here both sides are threads of one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <stop_token>
#include <thread>

#include "spank_plugin/capture/ring_writer.h"

namespace lbf::capture::ring_threads_test {
namespace {

using ring::Record;

TEST(RingThreads, WhatIsPublishedIsWholeAndStaysUntilItIsRead) {
  constexpr std::uint64_t kCapacity = 4096;  // some 500 times round
  constexpr std::uint64_t kCalls = 30'000;
  const auto header = std::make_unique<ring::Header>();
  alignas(64) std::array<std::byte, kCapacity> data{};
  const std::jthread program([&](const std::stop_token& stop) {
    RingWriter writer;
    writer.attach(header.get(), data.data(), kCapacity, kCapacity);
    for (std::uint64_t call = 0; call < kCalls && !stop.stop_requested();) {
      writer.begin_call(call, 7);
      const auto values = static_cast<std::uint32_t>(call % 5);
      Record* const record = writer.try_append(EventKind::kSend, values);
      if (record == nullptr) {
        std::this_thread::yield();
        continue;
      }
      record->bytes = call;
      for (std::uint32_t i = 0; i < values; ++i) RingWriter::values_of(record)[i] = call + i;
      writer.commit(call + 1);
      ++call;
    }
  });
  std::uint64_t expected = 0;
  std::uint64_t at = 0;
  while (expected < kCalls) {
    const std::uint64_t head = header->head.load(std::memory_order_acquire);
    if (at == head) std::this_thread::yield();
    while (at < head) {
      const std::uint64_t offset = at & (kCapacity - 1);
      Record record{};
      std::memcpy(&record, data.data() + offset, std::min<std::uint64_t>(sizeof record, kCapacity - offset));
      const std::uint64_t words = record.words_and_op & 0xffffff;
      ASSERT_GT(words, 0u) << offset;
      ASSERT_LE(offset + words * 8, kCapacity);
      at += words * 8;
      if (record.kind == ring::kRecordPad) continue;
      ASSERT_EQ(words, ring::kRecordWords + expected % 5);
      ASSERT_EQ(record.bytes, expected);
      ASSERT_EQ(record.enter, expected);
      ASSERT_EQ(record.leave, expected + 1);
      for (std::uint64_t i = 0; i < expected % 5; ++i) {
        std::uint64_t value = 0;
        std::memcpy(&value, data.data() + offset + sizeof record + i * 8, sizeof value);
        ASSERT_EQ(value, expected + i);
      }
      ++expected;
    }
    header->tail.store(at, std::memory_order_release);
  }
  EXPECT_EQ(header->lost_records.load(), 0u);
}

}  // namespace
}  // namespace lbf::capture::ring_threads_test