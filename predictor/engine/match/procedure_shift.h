// ProcedureShift: procedure times between the matcher's events and its ops.
//
// Place in the event's way: Event -> match + *procedure shift* -> Op -> replay. Takes a procedure's time out of
// the ops where it ran and puts it before the op of the other process that is to do it, for every scenario of a
// plan, as numbers beside the ops (OpStore's rows): so one matching and one pass of each replay serve all
// scenarios, and placements, networks and the sharing of processors count as for any other work.
//
// An op whose work is not known yet is held, as a wildcard's kPost is, and nobody passes it: process time with a
// procedure in it until the rank's next inter-process event was fed, a receive until the send of its message was,
// a send until the receiver's next inter-process event after the receive was (moves to the sender). What is known
// when depends on the events alone: so predictions do not depend on their order of arrival.
//
// Inter-process events are sends and the ends of receives; collective and one-sided operations, gaps and capture
// windows end an interval, too, but carry nothing.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "event/event.h"
#include "predictor/engine/match/op_store.h"
#include "predictor/engine/match/procedure_plan.h"

namespace lbf::engine {

class ProcedureShift {
 public:
  // REQUIRES: `store` has the plan's rows and outlives it.
  ProcedureShift(Rank ranks, OpStore& store, ProcedurePlan plan);

  // Takes the event's process time over: what is left in `event.process_s` is the matcher's to emit with the
  // event's op, the rest has ops of its own. REQUIRES: its times are durations.
  void take(Rank rank, Event& event);
  // The rank's event sends this message; before its kSend is pushed.
  void note_sent(Rank rank, MessageIndex message);
  // The rank's event has received this message; before its kRecv is pushed.
  void note_received(Rank rank, MessageIndex message);
  // No more events of the rank.
  void close(Rank rank);
  // No more events at all: nothing is held any more.
  void finish();

  // Without what is on the store's account.
  Bytes memory_bytes() const;
  const std::vector<ScenarioStats>& scenario_stats() const { return scenario_stats_; }
  const std::vector<ProcedureStats>& profiled_stats() const { return profiled_stats_; }

 private:
  static constexpr std::uint32_t kNotProfiled = ~std::uint32_t{0};
  // Of one scenario, in a stretch of process time.
  struct Parts {
    Seconds gone_s = 0;
    Seconds to_receiver_s = 0;
    Seconds to_sender_s = 0;
    Seconds to_rank_s = 0;
    Seconds sum_s() const { return gone_s + to_receiver_s + to_sender_s + to_rank_s; }
  };
  // The op of a stretch of process time that has procedures in it.
  struct Piece {
    Op* op = nullptr;
    std::vector<Parts> parts;  // by scenario
  };
  struct Spent {
    std::uint32_t procedure;
    Seconds inclusive_s, exclusive_s;
  };
  struct RankState {
    explicit RankState(MemoryAccount* account) : stack(account), spent(account), pieces(account) {}
    CountedVector<std::uint32_t> stack;    // procedures entered, innermost last
    Seconds work_s = 0;                    // process time that has no op yet
    bool any_part = false;                 // ... and its procedures
    std::vector<Parts> parts;              // by scenario
    std::vector<Seconds> self_s;           // by profiled procedure
    CountedVector<Spent> spent;            // kProcedure events since the last other event
    CountedVector<Piece> pieces;           // of the interval
    std::uint64_t events = 0;              // in the interval
    MessageIndex began_with = kNoMessage;  // the message whose receive began the interval
    std::uint32_t began_generation = 0;    // ... its; where a ghost sent it its slot may be another's by now
    Rank began_from = kAnyRank;            // ... its sender
    bool exited = false;
  };
  // A message of which one side is not known yet.
  struct InFlight {
    std::uint32_t generation = 0;
    bool sent = false;
    bool received = false;
    bool back_known = false;     // what goes to the sender
    Op* held_receive = nullptr;  // before the kRecv ...
    ProcessIndex receiver = 0;
    Op* held_send = nullptr;  // before the kSend
    ProcessIndex sender = 0;
    std::vector<Seconds> carried_s;  // by scenario; empty: nothing
    std::vector<Seconds> back_s;
  };

  RankState& state_of(Rank rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const ProcedureChange* change_of(std::size_t scenario, std::uint32_t procedure) const;
  std::uint32_t profiled_index(std::uint32_t procedure) const;
  bool is_known(std::uint32_t procedure) const { return procedure < known_.size() && known_[procedure]; }
  void add_part(RankState& state, std::size_t scenario, const ProcedureChange& change, Seconds seconds);
  // `seconds` passed in the procedures that are entered now.
  void pass(RankState& state, Seconds seconds);
  void enter(RankState& state, const Event& event);
  void leave(RankState& state, const Event& event);
  void note_spent(RankState& state, const Event& event);
  void settle_spent(RankState& state);
  // Gives the process time so far an op if there are procedures in it.
  void flush(Rank rank, Event* event);
  void end_interval(Rank rank, Rank sends_to);
  InFlight& in_flight(MessageIndex message);
  void forget_if_done(MessageIndex message);
  // Held: the row is filled later.
  enum class RowState { kFilled, kHeld };
  Op* push_row(Rank rank, const std::vector<Seconds>& work_s, RowState state);
  void fill(Op& op, const std::vector<Seconds>& work_s);

  OpStore& store_;
  ProcedurePlan plan_;
  std::size_t scenarios_;
  bool any_forward_ = false;   // some scenario moves time along messages ...
  bool any_backward_ = false;  // ... and some against them
  std::vector<bool> known_;    // by procedure: the plan names it
  std::vector<std::unordered_map<std::uint32_t, ProcedureChange>> changes_;  // by scenario
  std::vector<std::uint32_t> profiled_of_;                                   // by procedure
  CountedVector<RankState> ranks_;
  std::uint64_t pieces_ = 0;  // of all ranks
  std::unordered_map<MessageIndex, InFlight> in_flight_;
  std::vector<Seconds> carried_s_;  // by scenario: of the interval that the send in hand ended
  bool any_carried_ = false;
  std::vector<Seconds> scratch_s_;
  std::vector<ScenarioStats> scenario_stats_;
  std::vector<ProcedureStats> profiled_stats_;
  std::uint64_t passes_ = 0;
  std::vector<std::uint64_t> pass_of_;  // by profiled procedure: the last stretch of time in it
};

}  // namespace lbf::engine
