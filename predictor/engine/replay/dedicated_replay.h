// DedicatedReplay: all targets on which every process has a processor of its own, in one pass.
//
// There the predicted time is the longest path through the Program Activity Graph with the target's costs
// (TSE Sec. 2, "Critical Path"): a max-plus recurrence that needs no event queue. An op's clocks on all K
// targets lie side by side; which op can run next does not depend on the target, only on which sends were
// executed and which receives were posted, so one walk over the ops serves all. A process runs until it needs
// a message that was not sent yet, or a receive of its rendezvous message that was not posted yet.
//
// Where a message is a rendezvous on some of the targets only, a program that relies on buffering can be
// stuck on those and run on the others: split_stuck() then parts them.
//
// `Clock` is what a time is: Seconds, or Composed, which also knows what it is made of (composed.h). The code is in
// dedicated_replay_impl.h, for whoever has another kind of clock.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "predictor/engine/replay/call_begins.h"
#include "predictor/engine/replay/cost_table.h"
#include "predictor/engine/replay/message_times.h"
#include "predictor/engine/replay/path_notes.h"
#include "predictor/engine/replay/replay.h"
#include "predictor/engine/replay/timeline.h"

namespace lbf::engine {

template <typename Clock>
class DedicatedReplayOf final : public Replay {
 public:
  // REQUIRES: is_dedicated() for every target; `targets` not empty; targets and `store` outlive the replay.
  DedicatedReplayOf(std::vector<const Target*> targets, OpStore& store);

  void advance() override;
  Seconds finish_s(std::size_t k, Rank rank) const override { return value_of(clock_of(k, rank)); }
  const Composed* composition(std::size_t k, Rank rank) const override {
    if constexpr (std::is_same_v<Clock, Composed>) return &clock_of(k, rank);
    return nullptr;
  }
  const Clock& clock_of(std::size_t k, Rank rank) const {
    return clock_s_[static_cast<std::size_t>(rank) * count_ + k];
  }
  // Notes where times pass. PROFILED_AT: where in a row the PROFILED procedures begin. REQUIRES: Composed clocks;
  // before the first op.
  void follow_paths(std::size_t profiled_at, std::size_t profiled,
                    PathNotes::Limits limits = {}) requires std::is_same_v<Clock, Composed> {
    followed_.emplace(Followed{PathNotes(limits), {}, {}, profiled_at, profiled});
    followed_->worked_s.resize(static_cast<std::size_t>(store_.ranks()) * count_);
    add_processes();
  }
  std::vector<PathPart> path_parts(std::size_t k, Rank rank) const override {
    if constexpr (kIsComposed) {
      if (followed_)
        return followed_->notes.parts(clock_of(k, rank), followed_->places[static_cast<std::size_t>(rank)]);
    }
    return {};
  }
  Seconds worked_s(std::size_t k, Rank rank) const override {
    return followed_ ? followed_->worked_s[static_cast<std::size_t>(rank) * count_ + k] : 0;
  }
  Seconds measured_s(Rank rank) const override { return processes_[static_cast<std::size_t>(rank)].measured_s; }
  bool exited(Rank rank) const override { return processes_[static_cast<std::size_t>(rank)].exited; }
  Bytes memory_bytes() const override;
  ProcessStatus status(ProcessIndex process) const override;

  void record(TimelineRecorder* timeline) override { timeline_ = timeline; }
  // A process waits for a receive to be posted whose message is eager on some targets: those move.
  std::unique_ptr<Replay> split_stuck(std::vector<std::size_t>& moved) override;

 private:
  struct Process {
    OpStore::Cursor cursor;
    Seconds measured_s = 0;
    std::uint64_t events_done = 0;
    MessageIndex waits_for = kNoMessage;
    bool for_post = false;  // ... to be posted, not to be sent
    bool in_send = false;   // the op in hand is a kSend that is done up to its wait
    bool exited = false;
    bool unsettled = false;  // a rank for which first_peer_s is still to come on one of the targets
  };
  using Slot = typename MessageTimesOf<Clock>::Slot;
  static constexpr bool kIsComposed = std::is_same_v<Clock, Composed>;
  struct Followed {
    PathNotes notes;
    std::vector<PathPlace> places;  // by process: where its time passes now
    std::vector<Seconds> worked_s;  // [rank][K]
    std::size_t profiled_at;
    std::size_t profiled;
  };

  DedicatedReplayOf(const DedicatedReplayOf&) = default;
  void drop_targets_except(const std::vector<std::size_t>& kept);
  void go_on();
  void add_processes();
  void prepare_settling();
  void grow_slots();
  // Executes what the process can. What it calls is compiled for one target, which then costs no loops, and
  // for any number (kTargets = 0).
  template <std::size_t kTargets>
  void run(ProcessIndex index);
  template <std::size_t kTargets>
  std::size_t count() const {
    return kTargets != 0 ? kTargets : count_;
  }
  template <std::size_t kTargets>
  bool is_timed() const {
    return kTargets == 0 && timeline_ != nullptr;
  }
  template <std::size_t kTargets>
  Slot& slot_of(MessageIndex index);
  // May it be a rendezvous on one of the targets? If not it is eager on all.
  bool may_wait(const Message& message, const Op& op) const {
    return (message.bytes > eager_up_to_ || message.sync) && (op.flags & kOpInternal) == 0;
  }
  // [locality][flight, send_cpu, recv_cpu][K] for a message of that size.
  const Clock* costs_of(const Message& message) { return costs_.row(message.bytes); }
  const Seconds* inverse_speeds_of(ProcessIndex process) const {
    return &inverse_speed_[static_cast<std::size_t>(store_.rank_of(process)) * count_];
  }
  // Calls body(k, locality) for every target. Where nodes are equally far apart on all of them, which one
  // test for all says, no topology is asked.
  template <std::size_t kTargets = 0, typename Body>
  void for_targets(const Message& message, Body&& body) const {
    const std::size_t targets = count<kTargets>();
    const std::uint32_t* const src = &node_[static_cast<std::size_t>(message.src) * targets];
    const std::uint32_t* const dst = &node_[static_cast<std::size_t>(message.dst) * targets];
    if (costs_.localities() == 2) {
      for (std::size_t k = 0; k < targets; ++k) body(k, src[k] == dst[k] ? Localities::kSelfNode : 0);
    } else {
      for (std::size_t k = 0; k < targets; ++k) body(k, costs_.localities_of(k).of(src[k], dst[k]));
    }
  }
  bool is_rendezvous(const Message& message, std::size_t k, std::size_t locality) const {
    return message.sync || message.bytes > eager_limit_[locality * count_ + k];
  }
  bool any_rendezvous(const Message& message) const {
    bool any = false;
    for_targets(message, [&](std::size_t k, std::size_t where) { any = any || is_rendezvous(message, k, where); });
    return any;
  }
  // False: the process has to wait before this op is done.
  template <std::size_t kTargets>
  bool execute_send(ProcessIndex index, const Op& op);
  void end_blocking_send(ProcessIndex index, const Op& op, const Message& message, const Slot& slot);
  bool execute_wait_send(ProcessIndex index, const Op& op);
  template <std::size_t kTargets>
  void execute_post(ProcessIndex index, MessageIndex message);
  template <std::size_t kTargets>
  bool execute_recv(ProcessIndex index, const Op& op);
  bool execute_peek(ProcessIndex index, const Op& op);
  void execute_local(ProcessIndex index, const Op& op);
  void note_window(ProcessIndex index, const Op& op);
  // --- paths
  bool follows_paths() const {
    if constexpr (kIsComposed) return followed_.has_value();
    return false;
  }
  // The process goes on with OP.
  void enter_place(ProcessIndex index, const Op& op);
  // Others get its clocks, or it goes to another place.
  void note_place(ProcessIndex index);
  // The last work of the process was OP's.
  void note_procedures(ProcessIndex index, const Op& op);
  void collect_notes();
  void work(ProcessIndex index, std::size_t k, Clock& clock, Seconds seconds) {
    add(clock, Term::kWork, seconds);
    if (follows_paths()) followed_->worked_s[static_cast<std::size_t>(store_.rank_of(index)) * count_ + k] += seconds;
  }
  void count_ranks_on_nodes();
  // Work of an op with a row, in seconds at speed 1.
  Seconds row_work_s(const Op& op, ProcessIndex index, std::size_t k) const;
  double processors_of(std::uint32_t node, std::size_t k) const;
  void match(MessageIndex index, Slot& slot);
  // How much later than ready a message leaves. REQUIRES: `slot` is the message's, its send was executed.
  Seconds first_delay_s(const Slot& slot, std::size_t k, std::size_t locality) const {
    return slot.first ? first_message_s_[locality * count_ + k] : 0;
  }
  // When a message leaves that is ready then.
  Clock after_first_delay(Clock ready, const Slot& slot, std::size_t k, std::size_t locality) const {
    add(ready, Term::kFirstContact, first_delay_s(slot, k, locality));
    return ready;
  }
  // First contact (docs/engine.md). REQUIRES: the process is unsettled. It sends a message that is ready now.
  void connect(ProcessIndex index, const Message& message, const Slot& slot);
  // It has received a message: first_peer_s may pass before it has it.
  void settle(ProcessIndex index, MessageIndex message);
  // Waits until then.
  static void wait_until(Clock& clock, const Clock& there) {
    using std::max;
    clock = max(clock, there);
  }
  void wake(ProcessIndex& waiter) {
    if (waiter != kNobody) ready_.push_back(waiter);
    waiter = kNobody;
  }
  bool wait(ProcessIndex index, MessageIndex message, Awaited what);
  void use(MessageIndex index, Slot& slot) {
    ++slot.uses;
    store_.note_use(index);
  }

  std::vector<const Target*> targets_;
  OpStore& store_;
  std::size_t count_;                   // K
  std::vector<Seconds> inverse_speed_;  // [rank][K]
  std::vector<Seconds> beside_others_;  // [K] 1: other programs have the processors as they had them; 0: not
  CallBeginsOf<Clock> calls_;
  std::vector<std::uint32_t> node_;                        // [rank][K]
  std::vector<std::vector<std::uint32_t>> ranks_on_node_;  // [K][node]
  std::vector<Bytes> eager_limit_;                         // [locality][K]
  Bytes eager_up_to_;                                      // the smallest of them
  std::vector<Clock> empty_flight_s_;                      // [locality][K] of a message with 0 bytes
  std::vector<Seconds> first_message_s_;                   // [locality][K]
  std::vector<Seconds> first_peer_s_;                      // [locality][K]
  // [rank][K], empty where no target has a first_peer_s: since when a send of the rank over such a path has
  // left, kNeverS: none has yet; a negative time: its first receive is over.
  std::vector<Seconds> connected_s_;
  CostTableOf<Clock> costs_;
  std::vector<Clock> clock_s_;  // [process][K]
  MessageTimesOf<Clock> messages_;
  std::vector<Process> processes_;
  std::vector<ProcessIndex> ready_;
  TimelineRecorder* timeline_ = nullptr;
  std::optional<Followed> followed_;  // of Composed clocks, where it was asked for
};

using DedicatedReplay = DedicatedReplayOf<Seconds>;
extern template class DedicatedReplayOf<Seconds>;
extern template class DedicatedReplayOf<Composed>;

}  // namespace lbf::engine
