// RepeatedCollectives: what collectives became when they came before (docs/adr/0017-repeated-collectives.md).
//
// Place in the event's way: a part of *match*. A program makes the same collectives again and again. The first time
// each member's call is spelled out, and its messages meet in the channels. A plan notes the member's ops, and for each
// message a number that both ends have alike. A member that makes the same call again takes its ops from the plan, and
// its messages meet at their numbers. Where a member does something else, what has no other end yet goes into the
// channels, as if there had been no plan. So a plan changes how ends are found, and never which.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "event/event.h"
#include "predictor/engine/match/channel_table.h"
#include "predictor/engine/match/flat_map.h"
#include "predictor/engine/match/memory_account.h"
#include "predictor/engine/match/op_store.h"

namespace lbf::engine {

class RepeatedCollectives {
 public:
  // All that a member's ops depend on, beside the communicator and its place there.
  struct Call {
    Bytes bytes = 0;
    Rank root = 0;
    std::uint16_t function = 0;
    EventKind kind = EventKind::kCollective;
    std::uint8_t op_code = 0;
    std::uint8_t flags = 0;
    bool operator==(const Call&) const = default;
  };
  static Call call_of(const Event& event) {
    return {event.bytes, event.root,    event.function,
            event.kind,  event.op_code, static_cast<std::uint8_t>(event.flags & (kFlagInPlace | kFlagBlockingCall))};
  }
  // One op of a member.
  struct Step {
    std::uint32_t bytes = 0;   // kSend: of the message; kCopy, kReduce
    std::uint32_t number = 0;  // of the message; of one that an earlier op of the member took: so many ops before
    std::uint32_t peer : 24 = 0;
    std::uint32_t op_kind : 6 = 0;
    std::uint32_t takes : 1 = 0;  // the member's first op that names the message
    std::uint32_t nonblocking : 1 = 0;
    OpKind kind() const { return static_cast<OpKind>(op_kind); }
  };
  static_assert(sizeof(Step) == 12 && kMaxRanks <= 1 << 24);
  struct Part {
    Call call;
    CountedVector<Step> steps;
    bool called = false;  // `call` is its call ...
    bool known = false;   // ... and `steps` its ops
    bool approximated = false;
  };
  struct Plan {
    std::uint32_t comm = 0;
    std::uint32_t numbers = 0;    // of messages, so far
    std::uint32_t under_way = 0;  // collectives that have it
    bool too_large = false;
    CountedVector<Part> parts;  // by place in the communicator
  };
  // A collective that not all members have called yet.
  struct Collective {
    Plan* plan = nullptr;
    std::uint64_t key = 0;
    std::uint32_t came = 0;
    std::uint32_t open = 0;                // messages that have one end
    bool is_first = false;                 // it is what the plan is made of: its messages meet in the channels
    CountedVector<MessageIndex> messages;  // by number; kNoMessage: no end is there yet, kPaired: both are
  };
  static constexpr MessageIndex kPaired = kNoMessage - 1;

  // REQUIRES: both outlive it.
  RepeatedCollectives(OpStore& store, ChannelTable& channels)
      : store_(store), channels_(channels), next_number_(store.account()), under_way_(&account_) {}
  // Plans hold no more than a sixteenth of `bytes`.
  void bound(Bytes bytes) { most_bytes_ = std::min(kMostBytes, bytes / 16); }

  // The member's collective, until leave(). `part`: its ops; nullptr: they are to be spelled out, and given to note()
  // if `notes`.
  struct Joined {
    Collective* collective = nullptr;
    const Part* part = nullptr;
    std::uint32_t place = 0;
    bool notes = false;
  };
  // The member at `place` of `size` members calls collective `number` of the communicator. `can_be_planned`: `call`
  // tells all of it. REQUIRES: each member comes to each number once, in ascending order.
  Joined join(std::uint32_t comm, std::uint32_t number, std::uint32_t place, std::uint32_t size, const Call& call,
              bool can_be_planned);
  // The number of a message that the member took from a channel. REQUIRES: joined.notes.
  void give_number(const Joined& joined, Message& message) {
    if (message.plan_number == Message::kNoNumber) message.plan_number = joined.collective->plan->numbers++;
  }
  // What the member's call became; `taken_by`: for each op, the first one that names its message. REQUIRES:
  // joined.notes; all messages have numbers.
  void note(const Joined& joined, std::span<const Op> ops, std::span<const std::uint32_t> taken_by, bool approximated);
  // The end that `joined` has of the message with this number. `is_first_end`: the message is new.
  MessageIndex take(Collective& collective, std::uint32_t number, bool& is_first_end) {
    MessageIndex& there = collective.messages[number];
    is_first_end = there == kNoMessage;
    if (is_first_end) {
      ++collective.open;
      return there = store_.new_message();
    }
    assert(there != kPaired);
    --collective.open;
    return std::exchange(there, kPaired);
  }
  void leave(const Joined& joined) {
    if (joined.collective != nullptr && ++joined.collective->came == joined.collective->plan->parts.size())
      end(*joined.collective);
  }
  // No plans any more; what is under way goes on in the channels.
  void forget();
  // The same of one communicator.
  void forget(std::uint32_t comm);

  Bytes memory_bytes() const { return account_.bytes; }
  // Calls whose ops were taken from a plan.
  std::uint64_t repeated() const { return repeated_; }

 private:
  static constexpr Bytes kMostBytes = Bytes{32} << 20;
  static constexpr std::size_t kMostPlans = 256;

  Collective* begin(std::uint64_t key, std::uint32_t comm, std::uint32_t place, std::uint32_t size, const Call& call);
  Plan* find(std::uint32_t comm, std::uint32_t place, std::uint32_t size, const Call& call);
  // False: there is no room for so much more, also without the plans that nobody has under way.
  bool make_room(Bytes bytes);
  // Of the plans that nobody has under way, the one that was not used for longest. False: there is none.
  bool drop_oldest();
  void end(Collective& collective);
  // What has one end goes into the channels.
  void put_back(Collective& collective);

  OpStore& store_;
  ChannelTable& channels_;
  MemoryAccount account_;
  Bytes most_bytes_ = kMostBytes;
  FlatMap next_number_;                       // of each communicator: of the first collective that no member called
  std::vector<std::unique_ptr<Plan>> plans_;  // the last used one first
  CountedMap<std::uint64_t, std::unique_ptr<Collective>> under_way_;
  std::vector<std::unique_ptr<Collective>> idle_;  // for what comes
  std::uint64_t repeated_ = 0;
};

}  // namespace lbf::engine
