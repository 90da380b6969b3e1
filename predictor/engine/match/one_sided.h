// OneSided: one-sided communication as messages, for all targets at once.
//
// Place in the event's way: a part of *match*. Each operation is a message from the origin to an actor on the
// node of the target, which uses no processor, and one back: so bytes, latency, links and contention count,
// and the target itself need not know anything (docs/engine.md, "One-sided communication").
//   put, accumulate                       the bytes there, an empty message back
//   get                                   an empty message there, the bytes back
//   get_accumulate, fetch, compare        the bytes there and back
//   lock                                  empty there and back, and the origin waits for it
// A sync waits for what has not come back. What one rank's events become depends on that rank's events alone.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "event/event.h"
#include "predictor/engine/match/op_store.h"

namespace lbf::engine {

class OneSided {
 public:
  // Actors of each pair of origin and target: operations above the eager limit take them in turn, so that one
  // does not wait for the receive of the one before it; the others all take the first.
  static constexpr std::uint32_t kActorsPerPair = 4;
  // Operations of one rank that are not complete; the next one waits for the oldest.
  static constexpr std::size_t kMaxUnderWay = 65536;

  // REQUIRES: `store` outlives this. `eager_up_to`: see Matcher.
  OneSided(Rank ranks, OpStore& store, Bytes eager_up_to);

  // An operation, for its request. Stays valid: after a sync it means that there is nothing to wait for.
  struct Ticket {
    std::uint32_t record = 0;
    std::uint64_t serial = 0;
  };

  // The ops of a kOneSided event. REQUIRES: event.peer is a rank.
  Ticket operate(Rank origin, const Event& event);
  // The ops of a kOneSidedSync event.
  void sync(Rank origin, const Event& event);
  // The operation's own request is complete (MPI_Wait): takes its answer, unless a sync did, after `work_s`
  // of process time. Returns what is left of that for the ops that follow.
  Seconds complete(const Ticket& ticket, Seconds work_s);

  // Of the calls from here on (Op::function).
  void set_function(std::uint16_t function) { function_ = function; }
  std::uint64_t operations() const { return operations_; }
  std::size_t under_way(Rank origin) const {
    const std::unique_ptr<RankState>& state = ranks_[static_cast<std::size_t>(origin)];
    return state != nullptr ? state->under_way : 0;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  // An operation under way is in three lists of its rank, each in the order of issue: all, those on its
  // window, those on its window to its target.
  static constexpr std::size_t kLists = 3;
  struct Links {
    std::uint32_t previous = kNone;
    std::uint32_t next = kNone;
  };
  struct Operation {
    std::array<Links, kLists> links;
    std::uint64_t serial = 0;  // 0: not under way
    MessageIndex answer = kNoMessage;
    Rank origin = 0;
    Rank target = 0;
    std::uint32_t window = 0;
  };
  struct Ends {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };
  struct Actors {
    std::array<ProcessIndex, kActorsPerPair> process{};
    std::uint32_t made = 0;
    std::uint32_t large = 0;  // operations above the eager limit so far
  };
  struct RankState {
    explicit RankState(MemoryAccount* account) : lists(account), actors(account) {}
    CountedMap<std::uint64_t, Ends> lists;  // those that are not empty
    CountedMap<Rank, Actors> actors;        // by target
    std::size_t under_way = 0;
  };

  RankState& state_of(Rank origin);
  static std::uint64_t list_key(std::size_t list, std::uint32_t window, Rank target);
  Ends* find_list(Rank origin, std::uint64_t key);
  ProcessIndex actor_of(Rank origin, Rank target, bool large);
  MessageIndex new_message(Rank from, Rank to, ProcessIndex sender, ProcessIndex receiver, std::int32_t tag,
                           std::uint32_t window, Bytes bytes);
  std::uint32_t add(Rank origin, const Event& event, MessageIndex answer);
  void push(ProcessIndex process, Op op) {
    op.function = function_;
    store_.push(process, op);
  }
  // The origin receives the operation's answer.
  void receive(std::uint32_t record, Seconds work_s);

  OpStore& store_;
  Bytes eager_up_to_;
  CountedVector<std::unique_ptr<RankState>> ranks_;  // those that had an operation
  CountedVector<Operation> records_;
  CountedVector<std::uint32_t> free_;
  std::uint64_t operations_ = 0;
  std::uint16_t function_ = 0;
};

}  // namespace lbf::engine
