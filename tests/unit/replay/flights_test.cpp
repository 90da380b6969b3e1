// What a shared replay keeps of each message.
#include "predictor/engine/replay/flights.h"

#include <gtest/gtest.h>

namespace lbf::flights_test {
namespace {

constexpr std::size_t kSlots = 1000;

engine::Message message(std::uint32_t generation, std::uint32_t expected) {
  engine::Message made;
  made.generation = generation;
  made.expected = expected;
  return made;
}

TEST(Flights, LastFromTheFirstOpToTheLast) {
  engine::Flights flights;
  flights.grow_to(kSlots);
  const engine::Message sent = message(5, 3);
  flights.of(7, sent).arrival_s = 2;
  flights.use(7, sent);
  flights.use(7, sent);
  EXPECT_EQ(flights.of(7, sent).arrival_s, 2);
  EXPECT_EQ(flights[7].uses, 2U);
  flights.use(7, sent);
  EXPECT_EQ(flights.of(7, message(6, 2)).arrival_s, kNeverS);
  EXPECT_EQ(flights.most(), 1U);
}

TEST(Flights, AreAsManyAsAreUnderWay) {
  engine::Flights flights;
  flights.grow_to(kSlots);
  const engine::Message each = message(0, 1);
  for (engine::MessageIndex index = 0; index < kSlots; ++index) {
    flights.of(index, each).sent = true;
    if (index < 2) continue;
    flights.use(index - 2, each);
  }
  EXPECT_EQ(flights.most(), 3U);
  EXPECT_TRUE(flights.of(kSlots - 1, each).sent);
  EXPECT_TRUE(flights.of(kSlots - 2, each).sent);
  EXPECT_FALSE(flights.of(kSlots - 3, each).sent);  // a new one
}

// A slot whose message was withdrawn goes to another message without a last op.
TEST(Flights, OfAnEarlierMessageAreForgotten) {
  engine::Flights flights;
  flights.grow_to(kSlots);
  flights.of(1, message(0, 2)).arrival_s = 3;
  flights.use(1, message(0, 2));
  EXPECT_EQ(flights.of(1, message(1, 2)).arrival_s, kNeverS);
  EXPECT_EQ(flights[1].uses, 0U);
  EXPECT_EQ(flights.most(), 1U);
}

TEST(Flights, GrowWithTheirMessages) {
  engine::Flights flights;
  flights.grow_to(1);
  flights.of(0, message(0, 2)).sent_s = 1;
  flights.grow_to(kSlots);
  for (engine::MessageIndex index = 1; index < kSlots; ++index) flights.of(index, message(0, 2)).sent_s = index + 1;
  for (engine::MessageIndex index = 0; index < kSlots; ++index)
    EXPECT_EQ(flights.of(index, message(0, 2)).sent_s, index + 1);
}

}  // namespace
}  // namespace lbf::flights_test