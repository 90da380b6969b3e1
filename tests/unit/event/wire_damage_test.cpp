// event/wire.h: nothing that is cut, flipped or made up gets through.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <random>

#include "event/wire.h"
#include "tests/unit/event/wire_decoding.h"

namespace lbf::wire_damage_test {
namespace {

using ::testing::HasSubstr;
using wire_samples::batch_around;
using wire_samples::bytes_of;
using wire_samples::decode;
using wire_samples::Decoded;
using wire_samples::encode;
using wire_samples::golden_items;
using wire_samples::item;
using wire_samples::Item;

TEST(WireHeader, BatchesMayFollowEachOther) {
  const std::string first = encode(golden_items(), 0, 1);
  const std::string both = first + encode({item(0, EventKind::kExit, 1)}, 0, 2);
  const auto header = read_batch_header(bytes_of(both));
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->sequence, 1u);
  EXPECT_EQ(kBatchHeaderBytes + header->compressed_bytes, first.size());
  const auto second = read_batch_header(bytes_of(both).subspan(first.size()));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->sequence, 2u);
  EXPECT_THAT(decode(bytes_of(both)).header.error().message, HasSubstr("bytes follow its end"));
}

TEST(WireHeader, AnotherVersionIsNamed) {
  std::string batch = encode(golden_items());
  wire::store_u16(batch.data() + wire::kVersionAt, 2);
  wire_samples::seal_header(batch);
  const auto header = read_batch_header(bytes_of(batch));
  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(header.error().message, HasSubstr("version 2; this program reads version 1"));
}

TEST(WireHeader, LengthsBeyondTheLimitsAreRefusedBeforeAnythingElse) {
  struct Case {
    std::size_t at;
    std::uint32_t value;
    const char* message;
  };
  for (const Case& bad :
       {Case{wire::kRawBytesAt, (16u << 20) + 1, "more than the limit"},
        Case{wire::kRawBytesAt, 0xFFFFFFFFu, "more than the limit"},
        Case{wire::kCompressedBytesAt, 16u << 20, "more than the limit"},
        Case{wire::kCompressedBytesAt, 0xFFFFFFFFu, "more than the limit"},
        Case{wire::kCompressedBytesAt, 1u << 20, "cut short"},
        Case{wire::kEventsAt, 0xFFFFFFFFu, "more events than bytes"}, Case{wire::kReserved2At, 1, "reserved"}}) {
    std::string batch = encode(golden_items());
    wire::store_u32(batch.data() + bad.at, bad.value);
    wire_samples::seal_header(batch);
    EXPECT_THAT(decode(bytes_of(batch)).header.error().message, HasSubstr(bad.message));
  }
}

TEST(WireHeader, DeclaredSizesMustBeTheRealOnes) {
  for (const auto& [at, change] : std::vector<std::pair<std::size_t, int>>{
           {wire::kRawBytesAt, 1}, {wire::kRawBytesAt, -1}, {wire::kEventsAt, 1}, {wire::kEventsAt, -1}}) {
    std::string batch = encode(golden_items());
    const std::uint32_t now = wire::load_u32(reinterpret_cast<const unsigned char*>(batch.data()) + at);
    wire::store_u32(batch.data() + at, now + static_cast<std::uint32_t>(change));
    wire_samples::seal_header(batch);
    EXPECT_FALSE(decode(bytes_of(batch)).header.ok()) << at << " " << change;
  }
}

TEST(WireDamage, EveryTruncationIsAnError) {
  const std::string batch = encode(golden_items());
  for (std::size_t length = 0; length < batch.size(); ++length) {
    // A copy of exactly that length, so that a sanitizer sees a read beyond it.
    const std::vector<char> cut(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(length));
    const Decoded decoded = decode(std::as_bytes(std::span(cut)));
    ASSERT_FALSE(decoded.header.ok()) << length;
    EXPECT_EQ(decoded.header.error().code, ErrorCode::kInvalidInput);
    EXPECT_TRUE(decoded.items.empty());
  }
}

TEST(WireDamage, EveryFlippedBitIsAnError) {
  const std::string batch = encode(golden_items());
  for (std::size_t bit = 0; bit < batch.size() * 8; ++bit) {
    std::string flipped = batch;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const Decoded decoded = decode(bytes_of(flipped));
    ASSERT_FALSE(decoded.header.ok()) << bit;
    EXPECT_EQ(decoded.header.error().code, ErrorCode::kInvalidInput);
    EXPECT_TRUE(decoded.items.empty()) << "handed on before the checksum was found wrong";
  }
}

TEST(WireDamage, EveryTruncatedPayloadWithARightChecksumIsAnError) {
  const std::string raw = wire_samples::payload_of(encode(golden_items()));
  for (std::size_t length = 1; length < raw.size(); ++length) {  // without anything it is an empty batch
    const std::string batch =
        batch_around(raw.substr(0, length), static_cast<std::uint32_t>(std::min(length, golden_items().size() - 2)));
    EXPECT_FALSE(decode(bytes_of(batch)).header.ok()) << length;
  }
}

TEST(WireDamage, EveryFlippedPayloadBitWithARightChecksumIsSurvived) {
  const std::string good = encode(golden_items());
  const std::string raw = wire_samples::payload_of(good);
  const std::uint32_t events = read_batch_header(bytes_of(good))->events;
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < raw.size() * 8; ++bit) {
    std::string flipped = raw;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const Decoded decoded = decode(bytes_of(batch_around(flipped, events)));
    refused += decoded.header.ok() ? 0 : 1;
    for (const Item& made : decoded.items) {
      EXPECT_GE(made.rank, 0);
      EXPECT_LT(made.rank, 16);
      EXPECT_GE(made.event.peer, kAnyRank);
      EXPECT_LT(made.event.peer, 16);
      EXPECT_LT(static_cast<int>(made.event.kind), kEventKindCount);
      EXPECT_TRUE(made.event.process_s.ns() >= 0);
    }
  }
  EXPECT_GT(refused, raw.size());
}

// --- payloads that no encoder makes, with right checksums

TEST(WireHostile, AProcedureWithWrongNumbers) {
  for (const std::vector<std::uint64_t>& values :
       {std::vector<std::uint64_t>{2}, {2, 10, 11, 1}, {2, std::uint64_t{1} << 56, 1, 1}, {2, 10, 9, 1, 1}}) {
    Item bad = wire_samples::item(0, EventKind::kProcedure, 0);
    bad.values = values;
    EXPECT_FALSE(decode(bytes_of(encode({bad}))).header.ok()) << values.size() << " " << values.back();
  }
}

// `op` is bounded by the kind: 7 is an alltoall, but no one-sided operation; 3 no direction of MPI-IO.
TEST(WireHostile, AnOperationThatTheKindDoesNotHave) {
  for (const auto& [kind, op] :
       {std::pair{EventKind::kOneSided, kOneSidedOpCount}, std::pair{EventKind::kIo, kIoDirectionCount},
        std::pair{EventKind::kCollective, kCollectiveOpCount}}) {
    Item bad;
    bad.event.kind = kind;
    bad.event.peer = 0;
    bad.event.op_code = static_cast<std::uint8_t>(op - 1);
    EXPECT_TRUE(decode(bytes_of(encode({bad}))).header.ok()) << static_cast<int>(kind);
    bad.event.op_code = op;
    EXPECT_FALSE(decode(bytes_of(encode({bad}))).header.ok()) << static_cast<int>(kind);
  }
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

std::string section(std::uint64_t rank, const std::string& control, const std::string& data) {
  return std::string(1, wire::kSectionBlock) + varint(rank) + varint(control.size()) + varint(data.size()) + control +
         data;
}

// One event with a definition and no times.
std::string one_event(const std::string& definition, std::uint64_t code = wire::kDefineShapeCode) {
  return section(0, std::string(1, static_cast<char>(wire::kExplicitShape)), varint(code) + definition);
}

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

struct Hostile {
  const char* name;
  std::string raw;
  std::uint32_t events;
  const char* message;
};

TEST(WireHostile, IsRefusedWithAReason) {
  const std::string too_long_varint(10, '\xff');
  const int wait = static_cast<int>(EventKind::kWait);
  const int create = static_cast<int>(EventKind::kCommCreate);
  const int explicit_shape = wire::kExplicitShape;
  const int explicit_request = wire::kExplicitRequest;
  const std::vector<Hostile> cases = {
      {"block type", bytes({9}), 0, "unknown block type 9"},
      {"block type 0", bytes({0}), 0, "unknown block type 0"},
      {"section without lengths", bytes({1}), 0, "longer than the batch"},
      {"count beyond the end", bytes({1, 0}) + varint(1u << 30) + varint(0), 0, "longer than the batch"},
      {"count near 2^64", bytes({1, 0}) + varint(~std::uint64_t{0}) + varint(1), 0, "longer than the batch"},
      {"data near 2^64", bytes({1, 0, 1}) + varint(~std::uint64_t{0} - 1) + "x", 0, "longer than the batch"},
      {"varint of 11 bytes", bytes({1}) + too_long_varint + "\1\1", 0, "longer than the batch"},
      {"empty section", section(0, "", ""), 0, "without events"},
      {"rank", section(16, "\1", "x"), 1, "rank 16 is out of range: the step has 16 ranks"},
      {"rank 2^40", section(std::uint64_t{1} << 40, "\1", "x"), 1, "out of range"},
      {"times cut short", section(0, bytes({7}), "abc"), 1, "times are cut short"},
      {"call time cut short", section(0, bytes({3 | 2 << 3}), "abcd"), 1, "times are cut short"},
      {"nothing to repeat", section(0, bytes({0}), ""), 1, "no shape is known to follow"},
      {"shape that is not there", section(0, bytes({explicit_shape}), bytes({2})), 1, "not there"},
      {"shape number 2^63", section(0, bytes({explicit_shape}), varint(std::uint64_t{1} << 63)), 1, "not there"},
      {"no shape number", section(0, bytes({explicit_shape}), ""), 1, "cut short"},
      {"no definition", one_event(""), 1, "cut short"},
      {"no fields", one_event(bytes({0, 0})), 1, "cut short"},
      {"kind", one_event(bytes({kEventKindCount, 0, 0})), 1, "kind is not one"},
      {"op", one_event(bytes({8, 0, wire::kHasOp, kCollectiveOpCount})), 1, "operation is not one"},
      {"function", one_event(bytes({0, 0, wire::kHasFunction}) + varint(65536)), 1, "too large"},
      {"peer is no rank", one_event(bytes({1, 0, wire::kHasPeer}) + varint(wire::zigzag(16))), 1, "peer is not"},
      {"peer below any", one_event(bytes({1, 0, wire::kHasPeer}) + varint(3)), 1, "peer is not"},  // -2
      {"peer 2^40", one_event(bytes({1, 0, wire::kHasPeer}) + varint(std::uint64_t{1} << 40)), 1, "too large"},
      {"tag 2^40", one_event(bytes({1, 0, wire::kHasTag}) + varint(std::uint64_t{1} << 40)), 1, "too large"},
      {"comm 2^32", one_event(bytes({1, 0, wire::kHasComm}) + varint(std::uint64_t{1} << 32)), 1, "too large"},
      {"comm undefined", one_event(bytes({1, 0, wire::kHasComm, 3})), 1, "communicator 3 of rank 0 is not defined"},
      {"bytes cut", one_event(bytes({1, 0, wire::kHasBytes, 0x80})), 1, "cut short"},
      {"values beyond the end", one_event(bytes({8, 0, wire::kHasValues}) + varint(1u << 28)), 1, "too many values"},
      {"values near 2^64", one_event(bytes({8, 0, wire::kHasValues}) + varint(~std::uint64_t{0})), 1,
       "too many values"},
      {"no values", one_event(bytes({8, 0, wire::kHasValues, 0})), 1, "too many values"},
      {"wait for nothing", one_event(bytes({wait, 0, wire::kHasValues, 0})), 1, "too many values"},
      {"wait for 2^64 - 1", one_event(bytes({wait, 0, wire::kHasValues}) + varint(~std::uint64_t{0})), 1,
       "too many values"},
      {"values cut", one_event(bytes({8, 0, wire::kHasValues, 2, 1, 0x80})), 1, "cut short"},
      {"communicator without members", one_event(bytes({create, 0, wire::kHasComm, 1})), 1, "without members"},
      {"communicator 0", one_event(bytes({create, 0, wire::kHasValues, 3, 0, 0, 0})), 1, "MPI_COMM_WORLD"},
      {"member is no rank", one_event(bytes({create, 0, wire::kHasComm | wire::kHasValues, 1, 4, 0, 0, 0, 32})), 1,
       "a member is not a rank"},
      {"member twice", one_event(bytes({create, 0, wire::kHasComm | wire::kHasValues, 1, 4, 0, 0, 0, 0})), 1, "twice"},
      {"request of an event without", section(0, bytes({explicit_shape | explicit_request}), bytes({0, 0, 0, 0, 2})), 1,
       "request where none"},
      {"request cut", section(0, bytes({explicit_shape | explicit_request}), bytes({0, 2, kFlagHasRequest, 0, 0x80})),
       1, "request where none"},
      {"off cut", one_event(bytes({10, 0, 0})), 1, "off the processor"},
      {"off too large", one_event(bytes({10, 0, 0}) + varint(std::uint64_t{1} << 60)), 1, "off the processor"},
      {"left over", section(0, bytes({explicit_shape}), bytes({0, 0, 0, 0, 7})), 1, "left over"},
      {"used once, then repeated", section(0, bytes({explicit_shape, explicit_shape}), bytes({1, 0, 0, 0, 2})), 2,
       "not there"},
      {"control beyond the end", bytes({2, 100}) + "{}", 0, "longer than it may be"},
      {"control of 2^40 bytes", bytes({2}) + varint(std::uint64_t{1} << 40), 0, "longer than it may be"},
      {"more events than said", one_event(bytes({0, 0, 0})) + one_event(bytes({0, 0, 0})), 1, "has 2 events"},
      {"fewer events than said", one_event(bytes({0, 0, 0})), 2, "has 1 events"},
  };
  for (const Hostile& hostile : cases) {
    SCOPED_TRACE(hostile.name);
    const Decoded decoded = decode(bytes_of(batch_around(hostile.raw, hostile.events)));
    ASSERT_FALSE(decoded.header.ok());
    EXPECT_EQ(decoded.header.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(decoded.header.error().message, HasSubstr(hostile.message));
    EXPECT_THAT(decoded.header.error().message, HasSubstr("batch 1 of stream 0"));
  }
}

TEST(WireHostile, MoreShapesThanAllowed) {
  std::string control;
  std::string data;
  for (std::uint32_t i = 0; i <= wire::kMaxShapes; ++i) {
    control += static_cast<char>(wire::kExplicitShape);
    data += bytes({0, 0, 0, 0});
  }
  const Decoded decoded = decode(bytes_of(batch_around(section(0, control, data), wire::kMaxShapes + 1)));
  ASSERT_FALSE(decoded.header.ok());
  EXPECT_THAT(decoded.header.error().message, HasSubstr("too many shapes"));
}

TEST(WireHostile, ACompressionBombStopsAtTheDeclaredSize) {
  std::string batch = batch_around(std::string(std::size_t{64} << 20, '\0'), 0);
  EXPECT_THAT(decode(bytes_of(batch)).header.error().message, HasSubstr("more than the limit"));
  wire::store_u32(batch.data() + wire::kRawBytesAt, 1000);
  wire_samples::seal_header(batch);
  EXPECT_THAT(decode(bytes_of(batch)).header.error().message, HasSubstr("zstd"));
}

TEST(WireHostile, NotZstd) {
  std::string batch = batch_around("", 0);
  batch.resize(kBatchHeaderBytes);
  batch += "this is not a zstd frame";
  wire::store_u32(batch.data() + wire::kCompressedBytesAt, 24);
  wire::store_u32(batch.data() + wire::kPayloadCrcAt, crc32c(batch.data() + kBatchHeaderBytes, 24));
  wire_samples::seal_header(batch);
  EXPECT_THAT(decode(bytes_of(batch)).header.error().message, HasSubstr("zstd"));
}

TEST(WireHostile, RandomPayloadsAreSurvived) {
  std::mt19937 random(7);
  const std::string raw = wire_samples::payload_of(encode(golden_items()));
  for (int i = 0; i < 3000; ++i) {
    std::string changed = raw;
    for (std::uint32_t change = 0; change < 1 + random() % 8; ++change) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    const Decoded decoded = decode(bytes_of(batch_around(changed, 30)));
    if (!decoded.header.ok()) {
      EXPECT_FALSE(decoded.header.error().message.empty());
    }
  }
}

TEST(WireDecoder, ANegativeNumberOfRanksRefusesAll) {
  EXPECT_FALSE(decode(bytes_of(encode({item(0, EventKind::kExit, 0)})), 0).header.ok());
  EXPECT_FALSE(decode(bytes_of(encode({item(0, EventKind::kExit, 0)})), -5).header.ok());
}

}  // namespace
}  // namespace lbf::wire_damage_test