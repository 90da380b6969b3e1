// What checking a batch costs: as much as its bytes, whatever its numbers say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event/wire.h"
#include "tests/unit/event/wire_samples.h"

namespace lbf::wire_work_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string varint(std::uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}

// A wait of rank 0 for REQUESTS requests, the same shape TIMES times.
std::string repeated_waits(std::uint64_t requests, std::uint32_t times) {
  std::string control(times, '\0');
  control[0] = control[1] = static_cast<char>(wire::kExplicitShape);
  std::string data = varint(wire::kDefineShapeCode);
  data += static_cast<char>(EventKind::kWait);
  data += '\0';
  data += static_cast<char>(wire::kHasValues);
  data += varint(requests) + std::string(requests - 1, '\2');  // each is the next number
  data += varint(wire::kFirstShapeCode);
  const std::string section = varint(0) + varint(times) + varint(data.size()) + control + data;
  return wire_samples::batch_around(static_cast<char>(wire::kSectionBlock) + section, times);
}

Result<BatchHeader> decode(const std::string& batch, const BatchSink& sink) {
  CommunicatorTable communicators;
  return BatchDecoder(communicators, 4).decode(wire_samples::bytes_of(batch), sink);
}

// A batch of a few hundred bytes waits for very many requests, again and again.
TEST(WireWork, WaitsAreBounded) {
  constexpr std::uint32_t kTimes = (wire::kMaxWaitedRequests >> 16) + 1;
  const auto checked = decode(repeated_waits(1 << 16, kTimes), {});
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().message, HasSubstr("event 1025 of its section: the batch waits for too many requests"));
  EXPECT_TRUE(decode(repeated_waits(1 << 16, kTimes - 1), {}).ok());
}

TEST(WireWork, WhoOnlyChecksGoesOnWhereOthersDo) {
  std::vector<std::uint64_t> requests;
  BatchSink sink;
  sink.on_events = one_by_one([&](Rank, const Event& event) -> Result<void> {
    requests.insert(requests.end(), event.values.begin(), event.values.end());
    return {};
  });
  const std::string batch = repeated_waits(3, 2);
  ASSERT_TRUE(decode(batch, sink).ok());
  EXPECT_THAT(requests, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_TRUE(decode(batch, {}).ok());
}

// 60 communicators of 2^20 ranks took 2 GB.
TEST(WireWork, RegularGroupsTakeNoMemory) {
  CommunicatorTable communicators;
  for (std::uint64_t uid = 1; uid <= 60; ++uid) {
    std::vector<std::uint64_t> values{uid, 0};
    for (std::uint64_t member = 0; member < 1 << 14; ++member) values.push_back(uid % 5 + member * (1 + uid % 3));
    const auto defined = communicators.define(static_cast<Rank>(values[2]), static_cast<std::uint32_t>(uid), values);
    ASSERT_TRUE(defined.ok()) << defined.error().message;
    values.back() = 1U << 20;
    const auto other = communicators.define(static_cast<Rank>(values[3]), static_cast<std::uint32_t>(uid), values);
    EXPECT_THAT(other.error().message, HasSubstr("with other members"));
  }
  EXPECT_LT(communicators.memory_bytes(), 20000u);
}

TEST(WireWork, OtherGroupsAreListed) {
  CommunicatorTable communicators;
  const std::vector<std::uint64_t> values{7, 0, 5, 1, 9, 3};
  ASSERT_TRUE(communicators.define(5, 1, values).ok());
  ASSERT_TRUE(communicators.define(9, 1, values).ok());
  EXPECT_GE(communicators.memory_bytes(), 4 * sizeof(Rank));
  const std::vector<std::uint64_t> twice{8, 0, 5, 1, 9, 1};
  EXPECT_THAT(communicators.define(5, 2, twice).error().message, HasSubstr("rank 1 is a member twice"));
}

}  // namespace
}  // namespace lbf::wire_work_test
