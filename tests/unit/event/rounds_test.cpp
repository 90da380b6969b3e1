// event/rounds.h: what a sink gets as rounds are the same events as without, whatever interrupts them.
#include "event/rounds.h"

#include <gtest/gtest.h>

#include <random>

#include "event/synth.h"
#include "tests/unit/event/rounds_as_events.h"
#include "tests/unit/event/wire_samples.h"

namespace lbf::rounds_test {
namespace {

using wire_samples::bytes_of;
using wire_samples::encode;
using wire_samples::item;
using wire_samples::Item;

constexpr Rank kRanks = 16;

struct Read {
  std::vector<std::string> events;  // in words, and their order by rank
  std::uint64_t in_rounds = 0;
  std::string error;
};

std::string in_words(Rank rank, const Event& event) {
  std::string words;
  for (const std::uint64_t number :
       {static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(event.kind),
        static_cast<std::uint64_t>(event.flags), static_cast<std::uint64_t>(event.function),
        static_cast<std::uint64_t>(event.op_code), static_cast<std::uint64_t>(event.peer),
        static_cast<std::uint64_t>(event.tag), static_cast<std::uint64_t>(event.comm),
        static_cast<std::uint64_t>(event.request), static_cast<std::uint64_t>(event.root), event.bytes,
        static_cast<std::uint64_t>(event.process_s.ns()), static_cast<std::uint64_t>(event.call_s.ns()),
        static_cast<std::uint64_t>(event.off_s.ns())}) {
    words += std::to_string(number) + ' ';
  }
  for (const std::uint64_t value : event.values) words += '|' + std::to_string(value);
  return words;
}

enum class Wanted { kNoRounds, kRounds, kSomeRounds };

// MOST events of a rank at a time.
Read decode(std::span<const std::string> batches, Wanted wanted, std::uint64_t most) {
  Read got;
  CommunicatorTable communicators;
  BatchDecoder decoder(communicators, kRanks);
  BatchSink sink;
  sink.on_events = [&](Rank rank, std::span<const Event> events) -> Result<void> {
    for (const Event& event : events) got.events.push_back(in_words(rank, event));
    return {};
  };
  std::uint64_t asked = 0;
  if (wanted != Wanted::kNoRounds) {
    sink.on_rounds = [&](Rank rank, const Rounds& rounds) -> Result<bool> {
      if (wanted == Wanted::kSomeRounds && ++asked % 3 == 0) return false;
      got.in_rounds += rounds.times.size();
      EXPECT_GE(rounds.times.size(), 2 * rounds.events.size());
      if (Result<void> taken = hand_on_as_events(rank, rounds, sink.on_events); !taken) return taken.error();
      return true;
    };
  }
  for (const std::string& batch : batches) {
    if (const auto opened = decoder.open(bytes_of(batch)); !opened) {
      got.error = opened.error().message;
      return got;
    }
    for (;;) {
      const auto ranks = decoder.ranks(sink);
      if (!ranks) got.error = ranks.error().message;
      if (!ranks || ranks->empty()) break;
      for (std::size_t which = 0; which < ranks->size(); ++which) {
        for (bool more = true; more;) {
          const auto taken = decoder.next(which, most, sink);
          if (!taken) {
            got.error = taken.error().message;
            return got;
          }
          more = taken->more;
        }
      }
    }
  }
  return got;
}

// Rounds of a few calls, between which something else comes now and then.
std::vector<Item> random_items(std::mt19937_64& random) {
  const auto pick = [&](std::uint64_t most) { return std::uniform_int_distribution<std::uint64_t>(0, most)(random); };
  std::vector<Item> calls;
  for (std::uint64_t i = pick(11) + 1; i > 0; --i) {
    static constexpr EventKind kKinds[] = {
        EventKind::kSend, EventKind::kIsend,   EventKind::kStartRecv,  EventKind::kEndRecv, EventKind::kRecv,
        EventKind::kWait, EventKind::kCompute, EventKind::kCollective, EventKind::kProbe,   EventKind::kBlocked};
    // Each call by itself; blocked time, which is in no rounds, seldom.
    Item& call = calls.emplace_back(item(0, kKinds[pick(pick(5) == 0 ? 9 : 8)], 0));
    call.event.tag = pick(9) == 0 ? 1 : static_cast<std::int32_t>(calls.size());
    call.event.comm = static_cast<std::uint32_t>(pick(1));
    if (is_point_to_point(call.event.kind)) call.event.peer = static_cast<Rank>(pick(kRanks - 1));
    if (call.event.kind == EventKind::kWait) {
      if (pick(1) == 0) call.values.resize(pick(3) + 1);
      if (call.values.empty()) call.event.flags |= kFlagHasRequest;
    } else if (call.event.kind != EventKind::kSend && is_point_to_point(call.event.kind)) {
      call.event.flags |= kFlagHasRequest;
    }
  }
  std::vector<Item> items;
  for (Rank rank = 0; rank < 2; ++rank) {
    Item& created = items.emplace_back(item(rank, EventKind::kCommCreate, 0));
    created.event.comm = 1;
    created.values = {77, 0, 0, 1};
  }
  std::uint32_t request = static_cast<std::uint32_t>(pick(1) * 4294967000u);
  for (std::uint64_t round = pick(80); round > 0; --round) {
    for (const Item& call : calls) {
      Item made = call;
      made.rank = static_cast<Rank>(pick(1));
      made.event.process_s = Duration::of_ns(static_cast<Nanoseconds>(pick((std::uint64_t{1} << pick(55)) - 1)));
      made.event.call_s = Duration::of_ns(static_cast<Nanoseconds>(pick(1000)));
      if ((call.event.flags & kFlagHasRequest) != 0) made.event.request = ++request;
      for (std::uint64_t& value : made.values) value = ++request;
      if (call.event.kind == EventKind::kBlocked) made.event.off_s = made.event.call_s;
      if (pick(300) == 0) made.event.bytes = pick(9);
      if (pick(300) == 0) request += 7;
      for (Rank rank = 0; rank < 2; ++rank) {
        made.rank = rank;
        if (pick(400) != 0) items.push_back(made);
      }
    }
  }
  return items;
}

TEST(Rounds, AreTheSameEventsAsWithoutThem) {
  std::uint64_t in_rounds = 0;
  std::uint64_t all = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::string batches[] = {encode(random_items(random)), encode(random_items(random))};
    for (const std::uint64_t most : {std::uint64_t{7}, std::uint64_t{64}, std::uint64_t{1} << 40}) {
      const Read expected = decode(batches, Wanted::kNoRounds, most);
      for (const Wanted wanted : {Wanted::kRounds, Wanted::kSomeRounds}) {
        const Read actual = decode(batches, wanted, most);
        ASSERT_EQ(actual.events, expected.events);
        ASSERT_EQ(actual.error, expected.error);
        in_rounds += actual.in_rounds;
        all += actual.events.size();
      }
    }
  }
  EXPECT_GT(in_rounds * 4, all);  // else nothing was tried
}

TEST(Rounds, AreMostOfARegularProgram) {
  for (const char* const pattern : {"ring", "stencil2d", "allreduce"}) {
    SCOPED_TRACE(pattern);
    BatchEncoder encoder;
    const auto add = [&](Rank rank, const Event& event) -> Result<void> {
      encoder.add(rank, event);
      return {};
    };
    ASSERT_TRUE(synthesize(pattern, kRanks, 1000, add).ok());
    const std::string batches[] = {encoder.finish(0, 1)};
    for (const std::uint64_t most : {64, 128, 256}) {
      const Read as_rounds = decode(batches, Wanted::kRounds, most);
      EXPECT_EQ(as_rounds.events, decode(batches, Wanted::kNoRounds, most).events);
      EXPECT_GT(as_rounds.in_rounds, as_rounds.events.size() * 97 / 100);
    }
  }
}

}  // namespace
}  // namespace lbf::rounds_test
