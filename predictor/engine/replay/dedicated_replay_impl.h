// What DedicatedReplayOf does, for the files that instantiate it.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "predictor/engine/replay/dedicated_replay.h"
#include "predictor/engine/replay/region_time.h"
#include "predictor/engine/replay/rendezvous.h"

namespace lbf::engine {

inline constexpr Seconds kSettled = -1;

template <typename Clock>
DedicatedReplayOf<Clock>::DedicatedReplayOf(std::vector<const Target*> targets, OpStore& store)
    : targets_(std::move(targets)),
      store_(store),
      count_(targets_.size()),
      eager_up_to_(0),
      costs_(targets_),
      messages_(targets_.size()) {
  const std::size_t ranks = static_cast<std::size_t>(store.ranks());
  for (const Target* target : targets_)
    beside_others_.push_back(target->other_programs == OtherPrograms::kAsTheyRan ? 1.0 : 0.0);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (const Target* target : targets_) {
      node_.push_back(target->node_of_rank[rank]);
      inverse_speed_.push_back(1.0 / target->speed_of(target->node_of_rank[rank]));
    }
  }
  count_ranks_on_nodes();
  calls_.start(ranks, beside_others_);
  for (std::size_t locality = 0; locality < costs_.localities(); ++locality) {
    for (std::size_t k = 0; k < count_; ++k) {
      eager_limit_.push_back(costs_.path(k, locality).eager_limit_bytes);
      empty_flight_s_.push_back(costs_.row(0)[3 * locality * count_ + k]);
      first_message_s_.push_back(costs_.path(k, locality).first_message_s);
      first_peer_s_.push_back(costs_.path(k, locality).first_peer_s);
    }
  }
  eager_up_to_ = *std::min_element(eager_limit_.begin(), eager_limit_.end());
  add_processes();
  prepare_settling();
}

template <typename Clock>
void DedicatedReplayOf<Clock>::count_ranks_on_nodes() {
  for (const Target* target : targets_) {
    std::vector<std::uint32_t>& ranks = ranks_on_node_.emplace_back(target->nodes, 0);
    for (const std::uint32_t node : target->node_of_rank) ++ranks[node];
  }
}

template <typename Clock>
Bytes DedicatedReplayOf<Clock>::memory_bytes() const {
  const auto of = [](const auto& list) { return list.capacity() * sizeof(list[0]); };
  const Bytes of_process = sizeof(Process) + count_ * sizeof(Clock);
  const Bytes ranks = of(inverse_speed_) + of(node_) + of(connected_s_);
  Bytes nodes = 0;
  for (const std::vector<std::uint32_t>& ranks_of_target : ranks_on_node_) nodes += of(ranks_of_target);
  return std::max<Bytes>(processes_.capacity(), store_.processes()) * of_process + ranks + nodes + of(ready_) +
         messages_.bytes_of(store_.message_slots()) + costs_.memory_bytes() + window_clocks_.memory_bytes() +
         calls_.memory_bytes() +
         (followed_ ? followed_->notes.memory_bytes() + of(followed_->places) + of(followed_->worked_s) : 0);
}

template <typename Clock>
void DedicatedReplayOf<Clock>::add_processes() {
  processes_.resize(store_.processes());
  clock_s_.resize(processes_.size() * count_);
  if (!follows_paths()) return;
  std::vector<PathPlace>& places = followed_->places;
  while (places.size() < processes_.size())
    places.push_back({store_.rank_of(static_cast<ProcessIndex>(places.size())), 0, PathPlace::kNone, PathPlace::kNone});
}

// --- paths

template <typename Clock>
void DedicatedReplayOf<Clock>::note_place(ProcessIndex index) {
  if constexpr (kIsComposed) {
    for (std::size_t k = 0; k < count_; ++k)
      followed_->notes.note(clock_s_[index * count_ + k], followed_->places[index]);
  }
}

template <typename Clock>
void DedicatedReplayOf<Clock>::enter_place(ProcessIndex index, const Op& op) {
  const std::uint32_t comm = op.names_message() ? store_.message(op.message()).comm : PathPlace::kNone;
  const PathPlace place{store_.rank_of(index), op.function, comm, PathPlace::kNone};
  if (place == followed_->places[index] && (op.flags & kOpVaries) == 0) return;
  note_place(index);
  followed_->places[index] = place;
}

// On a slower processor all of it takes longer alike.
template <typename Clock>
void DedicatedReplayOf<Clock>::note_procedures(ProcessIndex index, const Op& op) {
  if constexpr (kIsComposed) {
    if ((op.flags & kOpVaries) == 0) return;
    const Seconds* const self_s = store_.row(op.row()) + followed_->profiled_at;
    const Seconds sum_s = std::accumulate(self_s, self_s + followed_->profiled, 0.0);
    if (!(sum_s > 0)) return;
    for (std::size_t k = 0; k < count_; ++k) {
      Clock& clock = clock_s_[index * count_ + k];
      Clock until = followed_->notes.last(clock);
      const double share = (value_of(clock) - value_of(until)) / std::max(op.work_s, sum_s);
      for (std::size_t p = 0; p < followed_->profiled; ++p) {
        PathPlace place = followed_->places[index];
        place.procedure = static_cast<std::uint32_t>(p);
        add(until, Term::kWork, share * self_s[p]);
        followed_->notes.note(until, place);
      }
      clock.note = until.note;
    }
  }
}

template <typename Clock>
void DedicatedReplayOf<Clock>::collect_notes() {
  if constexpr (kIsComposed) {
    followed_->notes.collect([this](auto&& visit) {
      for (Clock& clock : clock_s_) visit(clock);
      calls_.for_each_clock(visit);
      const std::size_t slots = std::min(messages_.size(), store_.message_slots());
      for (MessageIndex index = 0; index < static_cast<MessageIndex>(slots); ++index) {
        if (messages_.slot(index).generation != store_.message(index).generation) continue;
        for (std::size_t k = 0; k < count_; ++k) {
          visit(messages_.arrival_s(index)[k]);
          visit(messages_.free_s(index)[k]);
        }
      }
    });
  }
}

// Settled from the start: ranks on targets where no path that they can use has a first_peer_s.
template <typename Clock>
void DedicatedReplayOf<Clock>::prepare_settling() {
  const auto any = [](Seconds seconds) { return seconds > 0; };
  if (std::none_of(first_peer_s_.begin(), first_peer_s_.end(), any)) return;
  const std::size_t ranks = static_cast<std::size_t>(store_.ranks());
  connected_s_.resize(ranks * count_, kSettled);
  for (std::size_t k = 0; k < count_; ++k) {
    bool is_settled = true;
    for (std::size_t locality = 0; locality < costs_.localities(); ++locality) {
      const bool is_used = locality == Localities::kSelfNode || targets_[k]->nodes > 1;
      is_settled = is_settled && !(is_used && any(first_peer_s_[locality * count_ + k]));
    }
    if (is_settled) continue;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      connected_s_[rank * count_ + k] = kNeverS;
      processes_[rank].unsettled = true;
    }
  }
}

template <typename Clock>
void DedicatedReplayOf<Clock>::connect(ProcessIndex index, const Message& message, const Slot& slot) {
  const Clock* const clock = &clock_s_[index * count_];
  Seconds* const connected = &connected_s_[index * count_];
  for_targets(message, [&](std::size_t k, std::size_t where) {
    if (connected[k] == kSettled || first_peer_s_[where * count_ + k] <= 0) return;
    connected[k] = std::min(connected[k], value_of(clock[k]) + first_delay_s(slot, k, where));
  });
}

template <typename Clock>
void DedicatedReplayOf<Clock>::settle(ProcessIndex index, MessageIndex message_index) {
  const Message& message = store_.message(message_index);
  if (message.internal) return;
  const Slot& slot = messages_.slot(message_index);
  const Clock* const arrival = messages_.arrival_s(message_index);
  const Clock* const row = costs_of(message);
  Clock* const clock = &clock_s_[index * count_];
  Seconds* const connected = &connected_s_[index * count_];
  bool all = true;
  for_targets(message, [&](std::size_t k, std::size_t where) {
    const Seconds first_peer_s = first_peer_s_[where * count_ + k];
    if (connected[k] != kSettled && first_peer_s > 0) {
      const Seconds ready_s =
          value_of(arrival[k]) - value_of(row[3 * where * count_ + k]) - first_delay_s(slot, k, where);
      if (is_before(ready_s, connected[k])) {
        Clock connected_at = arrival[k];
        add(connected_at, Term::kFirstContact, first_peer_s);
        wait_until(clock[k], connected_at);
      }
      connected[k] = kSettled;
    }
    all = all && connected[k] == kSettled;
  });
  processes_[index].unsettled = !all;
}

template <typename Clock>
void DedicatedReplayOf<Clock>::grow_slots() {
  messages_.grow_to(store_.message_slots());
}

template <typename Clock>
template <std::size_t kTargets>
[[gnu::always_inline]] inline typename DedicatedReplayOf<Clock>::Slot& DedicatedReplayOf<Clock>::slot_of(
    MessageIndex index) {
  return current(messages_.template slot<kTargets>(index), store_.message(index));
}

template <typename Clock>
bool DedicatedReplayOf<Clock>::wait(ProcessIndex index, MessageIndex message, Awaited what) {
  Process& process = processes_[index];
  process.waits_for = message;
  process.for_post = what == Awaited::kReceive;
  Slot& slot = messages_.slot(message);
  (process.for_post ? slot.sender : slot.receiver) = index;
  // Many others may run before it goes on, with an op that it then has not seen yet.
  const MessageIndex behind = store_.prefetch_behind(index, process.cursor);
  if (behind != kNoMessage) messages_.prefetch(behind);
  return false;
}

template <typename Clock>
template <std::size_t kTargets>
[[gnu::always_inline]] inline bool DedicatedReplayOf<Clock>::execute_send(ProcessIndex index, const Op& op) {
  const std::size_t targets = count<kTargets>();
  const Message& message = store_.message(op.message());
  Process& process = processes_[index];
  Slot& slot = slot_of<kTargets>(op.message());
  Clock* const clock = &clock_s_[index * targets];
  Clock* const arrival = messages_.template arrival_s<kTargets>(op.message());
  const bool internal = (op.flags & kOpInternal) != 0;
  if (!process.in_send) {
    const bool costs_time = !internal && (costs_.has_flight() || costs_.has_cpu());
    const Clock* row = costs_time ? costs_of(message) : nullptr;
    if (costs_time && costs_.has_send_cpu()) {
      const Seconds* const inverse_speed = inverse_speeds_of(index);
      for_targets<kTargets>(message, [&](std::size_t k, std::size_t where) {
        add(clock[k], Term::kOverhead, value_of(row[(3 * where + 1) * targets + k]) * inverse_speed[k]);
      });
    }
    if (is_timed<kTargets>()) {
      timeline_->note_action(index, value_of(clock[0]));
      timeline_->note_message(index, op.message());
    }
    if (follows_paths()) note_place(index);
    if (calls_.notes(index) && op.work_s != 0) [[unlikely]]
      calls_.note(index, clock);
    const bool waits = may_wait(message, op) && any_rendezvous(message);
    slot.sent = true;
    slot.first = (op.flags & kOpFirst) != 0;
    if (process.unsettled && !internal) connect(index, message, slot);
    if (!waits) {
      if (costs_time) {
        for_targets<kTargets>(message, [&](std::size_t k, std::size_t where) {
          arrival[k] = after_first_delay(clock[k], slot, k, where) + row[3 * where * targets + k];
        });
      } else {
        std::copy_n(clock, targets, arrival);
      }
      slot.matched = true;
      if (may_wait(message, op)) std::copy_n(clock, targets, messages_.template free_s<kTargets>(op.message()));
      wake(slot.receiver);
    } else {
      std::copy_n(clock, targets, arrival);
      if (slot.posted) {
        match(op.message(), slot);
      } else if ((op.flags & kOpNonblocking) == 0) {
        process.in_send = true;
        // A probe waits for the announcement only, which is known now.
        wake(slot.receiver);
        return wait(index, op.message(), Awaited::kReceive);
      } else {
        wake(slot.receiver);
      }
    }
  }
  process.in_send = false;
  if ((op.flags & kOpNonblocking) == 0) end_blocking_send(index, op, message, slot);
  use(op.message(), slot);
  return true;
}

template <typename Clock>
void DedicatedReplayOf<Clock>::end_blocking_send(ProcessIndex index, const Op& op, const Message& message,
                                                 const Slot& slot) {
  Clock* const clock = &clock_s_[index * count_];
  const bool own = (op.flags & kOpInternal) == 0 && !message.collective;
  if (own && slot.first) {  // it returns when the message has left
    for_targets(message,
                [&](std::size_t k, std::size_t where) { clock[k] = after_first_delay(clock[k], slot, k, where); });
  }
  if (may_wait(message, op)) {
    const Clock* const free = messages_.free_s(op.message());
    for (std::size_t k = 0; k < count_; ++k) wait_until(clock[k], free[k]);
  }
}

template <typename Clock>
bool DedicatedReplayOf<Clock>::execute_wait_send(ProcessIndex index, const Op& op) {
  Slot& slot = slot_of<0>(op.message());
  if (may_wait(store_.message(op.message()), op)) {
    if (!slot.matched) return wait(index, op.message(), Awaited::kReceive);
    Clock* const clock = &clock_s_[index * count_];
    const Clock* const free = messages_.free_s(op.message());
    for (std::size_t k = 0; k < count_; ++k) wait_until(clock[k], free[k]);
  }
  use(op.message(), slot);
  return true;
}

template <typename Clock>
template <std::size_t kTargets>
[[gnu::always_inline]] inline void DedicatedReplayOf<Clock>::execute_post(ProcessIndex index, MessageIndex message) {
  const std::size_t targets = count<kTargets>();
  Slot& slot = slot_of<kTargets>(message);
  if (slot.posted || slot.matched) return;
  slot.posted = true;
  if (follows_paths()) note_place(index);
  std::copy_n(&clock_s_[index * targets], targets, messages_.template free_s<kTargets>(message));
  if (slot.sent) match(message, slot);
}

template <typename Clock>
void DedicatedReplayOf<Clock>::match(MessageIndex index, Slot& slot) {
  const Message& message = store_.message(index);
  Clock* const arrival = messages_.arrival_s(index);
  Clock* const free = messages_.free_s(index);
  const Clock* const row = costs_of(message);
  for_targets(message, [&](std::size_t k, std::size_t where) {
    const Clock flight_s = row[3 * where * count_ + k];
    const Clock ready_s = arrival[k];
    const Clock sent_s = after_first_delay(ready_s, slot, k, where);
    if (!is_rendezvous(message, k, where)) {
      arrival[k] = sent_s + flight_s;
      free[k] = ready_s;
      return;
    }
    const RendezvousOf<Clock> rendezvous(flight_s, empty_flight_s_[where * count_ + k]);
    const Clock start_s = rendezvous.start_s(sent_s, free[k]);
    arrival[k] = start_s + rendezvous.rest_s;
    free[k] = rendezvous.sender_free_s(start_s, arrival[k]);
  });
  slot.matched = true;
  wake(slot.receiver);
  wake(slot.sender);
}

template <typename Clock>
template <std::size_t kTargets>
[[gnu::always_inline]] inline bool DedicatedReplayOf<Clock>::execute_recv(ProcessIndex index, const Op& op) {
  const std::size_t targets = count<kTargets>();
  Slot& slot = slot_of<kTargets>(op.message());
  if (!slot.matched && !slot.posted) execute_post<kTargets>(index, op.message());
  if (!slot.matched) return wait(index, op.message(), Awaited::kMessage);
  Clock* const clock = &clock_s_[index * targets];
  const Clock* const arrival = messages_.template arrival_s<kTargets>(op.message());
  for (std::size_t k = 0; k < targets; ++k) wait_until(clock[k], arrival[k]);
  if (processes_[index].unsettled && (op.flags & kOpInternal) == 0) settle(index, op.message());
  if (is_timed<kTargets>()) {
    timeline_->note_wait_end(index, value_of(clock[0]));
    timeline_->note_message(index, op.message());
  }
  if (costs_.has_recv_cpu() && (op.flags & kOpInternal) == 0) {
    const Message& message = store_.message(op.message());
    const Clock* const row = costs_of(message);
    const Seconds* const inverse_speed = inverse_speeds_of(index);
    const Seconds share = message.internal ? 0 : 1;  // a ghost's message costs nothing
    for_targets<kTargets>(message, [&](std::size_t k, std::size_t where) {
      add(clock[k], Term::kOverhead, share * value_of(row[(3 * where + 2) * targets + k]) * inverse_speed[k]);
    });
  }
  use(op.message(), slot);
  return true;
}

template <typename Clock>
bool DedicatedReplayOf<Clock>::execute_peek(ProcessIndex index, const Op& op) {
  Slot& slot = slot_of<0>(op.message());
  if (!slot.sent) return wait(index, op.message(), Awaited::kMessage);
  Clock* const clock = &clock_s_[index * count_];
  const Clock* const arrival = messages_.arrival_s(op.message());
  const auto go_on = [&](std::size_t k, const Clock& there_s) {
    wait_until(clock[k], op.kind == OpKind::kLook ? first_look_s(clock[k], there_s, op.call_s) : there_s);
  };
  if (slot.matched) {
    for (std::size_t k = 0; k < count_; ++k) go_on(k, arrival[k]);
  } else {
    const Message& message = store_.message(op.message());
    const Clock* const row = costs_of(message);
    for_targets(message, [&](std::size_t k, std::size_t where) {
      const Clock& flight_s = row[3 * where * count_ + k];
      const bool announced = is_rendezvous(message, k, where);
      go_on(k, after_first_delay(arrival[k], slot, k, where) +
                   (announced ? std::min(flight_s, empty_flight_s_[where * count_ + k]) : flight_s));
    });
  }
  use(op.message(), slot);
  return true;
}

template <typename Clock>
void DedicatedReplayOf<Clock>::execute_local(ProcessIndex index, const Op& op) {
  if (!costs_.has_local()) return;
  const Clock* const row =
      op.kind == OpKind::kCopy ? costs_.copy_row(op.local_bytes()) : costs_.reduce_row(op.local_bytes());
  const Seconds* const inverse_speed = inverse_speeds_of(index);
  Clock* const clock = &clock_s_[index * count_];
  for (std::size_t k = 0; k < count_; ++k) add(clock[k], Term::kLocal, value_of(row[k]) * inverse_speed[k]);
}

template <typename Clock>
Seconds DedicatedReplayOf<Clock>::row_work_s(const Op& op, ProcessIndex index, std::size_t k) const {
  const Target& target = *targets_[k];
  if ((op.flags & kOpRegions) == 0) return store_.work_of(op, target.scenario);
  const RegionDemand demand = demand_of(store_.regions().at(op.region()), target);
  return region_time_s(demand, processors_of(node_[static_cast<std::size_t>(store_.rank_of(index)) * count_ + k], k));
}

// Of the node's processors those of each of its ranks. How many threads they have was not known when the targets were
// chosen.
template <typename Clock>
double DedicatedReplayOf<Clock>::processors_of(std::uint32_t node, std::size_t k) const {
  const auto ranks = static_cast<double>(ranks_on_node_[k][node]);
  return static_cast<double>(targets_[k]->cores_of(node)) / ranks;
}

template <typename Clock>
template <std::size_t kTargets>
void DedicatedReplayOf<Clock>::run(ProcessIndex index) {
  const std::size_t targets = count<kTargets>();
  Process& process = processes_[index];
  Clock* const clock = &clock_s_[index * targets];
  const Seconds* const inverse_speed = inverse_speeds_of(index);
  const bool notes_calls = calls_.notes(index);
  bool resumed = process.waits_for != kNoMessage;  // the op's work is done
  process.waits_for = kNoMessage;
  while (const Op* op = store_.front(index, process.cursor)) {
    if (is_timed<kTargets>() && op->kind == OpKind::kBlockEnd) {  // nothing to be shown
      note_window(index, *op);
      OpStore::pop(process.cursor);
      continue;
    }
    if (is_timed<kTargets>() && !resumed) timeline_->take(index, *op, process.events_done, value_of(clock[0]));
    if (follows_paths()) enter_place(index, *op);
    if ((op->flags & kOpHasRow) != 0) [[unlikely]] {
      for (std::size_t k = 0; k < targets; ++k) work(index, k, clock[k], row_work_s(*op, index, k) * inverse_speed[k]);
      if (follows_paths()) note_procedures(index, *op);
    } else if (!resumed && op->work_s != 0) {
      for (std::size_t k = 0; k < targets; ++k) work(index, k, clock[k], op->work_s * inverse_speed[k]);
      if (notes_calls && may_begin_call(*op) && op->kind != OpKind::kSend) [[unlikely]] {
        if (follows_paths()) note_place(index);
        calls_.note(index, clock);
      }
    }
    resumed = false;
    if (is_timed<kTargets>() && op->kind != OpKind::kSend) timeline_->note_action(index, value_of(clock[0]));
    switch (op->kind) {
      case OpKind::kCompute:
      case OpKind::kVainLooks:  // each rank has a processor, and keeps it
        break;
      case OpKind::kBlocked:
      case OpKind::kDevice:
        for (std::size_t k = 0; k < targets; ++k) add(clock[k], Term::kBlocked, op->call_s);
        break;
      case OpKind::kPreempted:
        for (std::size_t k = 0; k < targets; ++k)
          add(clock[k], Term::kOtherPrograms, op->call_s * inverse_speed[k] * beside_others_[k]);
        break;
      case OpKind::kDelayed:
        if (notes_calls) calls_.hold_up(index, *op, clock);
        break;
      case OpKind::kSend:
        if (!execute_send<kTargets>(index, *op)) return;
        break;
      case OpKind::kWaitSend:
        if (!execute_wait_send(index, *op)) return;
        break;
      case OpKind::kPost:
        if (op->names_message()) {
          execute_post<kTargets>(index, op->message());
          use(op->message(), messages_.template slot<kTargets>(op->message()));
        }
        break;
      case OpKind::kRecv:
        if (!execute_recv<kTargets>(index, *op)) return;
        break;
      case OpKind::kLook:
      case OpKind::kPeek:
        if (!execute_peek(index, *op)) return;
        break;
      case OpKind::kCopy:
      case OpKind::kReduce:
        if (is_timed<kTargets>()) timeline_->note_wait_end(index, value_of(clock[0]));
        execute_local(index, *op);
        break;
      case OpKind::kExit:
        process.exited = true;
        break;
      case OpKind::kWindowOpen:
        // Ranks stay as far apart as they were, however long each one's windows are.
        for (std::size_t k = 0; k < targets; ++k) add(clock[k], Term::kNotCaptured, op->call_s);
        note_window(index, *op);
        break;
      case OpKind::kWindowClose:
      case OpKind::kBlockEnd:
        note_window(index, *op);
        break;
    }
    if (is_timed<kTargets>()) timeline_->finish(index, value_of(clock[0]));
    if ((op->flags & kOpHasRow) != 0) [[unlikely]]
      store_.note_row_use(*op);
    process.measured_s += op->work_s + op->call_s;
    process.events_done += (op->flags & kOpEndsEvent) != 0 ? 1 : 0;
    OpStore::pop(process.cursor);
  }
}

template <typename Clock>
void DedicatedReplayOf<Clock>::note_window(ProcessIndex index, const Op& op) {
  const Seconds measured_s = processes_[index].measured_s + op.work_s + op.call_s;
  std::vector<Seconds> values;
  std::span<const Seconds> clock;
  if constexpr (std::is_same_v<Clock, Seconds>) {
    clock = {&clock_s_[index * count_], count_};
  } else {
    for (std::size_t k = 0; k < count_; ++k) values.push_back(value_of(clock_s_[index * count_ + k]));
    clock = values;
  }
  if (op.kind == OpKind::kWindowOpen) {
    window_clocks_.open(index, measured_s, clock, op.call_s);
  } else if (op.kind == OpKind::kWindowClose) {
    window_clocks_.close(index, op.window(), measured_s, clock, closing_of(op));
  } else {
    window_clocks_.end_block(index, op.block(), measured_s, clock);
  }
}

template <typename Clock>
void DedicatedReplayOf<Clock>::advance() {
  add_processes();
  grow_slots();
  for (ProcessIndex index : store_.touched()) {
    if (processes_[index].waits_for == kNoMessage) ready_.push_back(index);
  }
  while (!ready_.empty()) {
    const ProcessIndex index = ready_.back();
    ready_.pop_back();
    const std::uint32_t passed = processes_[index].cursor.passed;
    if (count_ == 1 && timeline_ == nullptr) {
      run<1>(index);
    } else {
      run<0>(index);
    }
    if (follows_paths() && followed_->notes.is_full()) collect_notes();
    if (!store_.budget().spend(processes_[index].cursor.passed - passed + 1)) return;
  }
}

template <typename Clock>
ProcessStatus DedicatedReplayOf<Clock>::status(ProcessIndex index) const {
  ProcessStatus status;
  if (index >= processes_.size()) return status;
  const Process& process = processes_[index];
  status.events_done = process.events_done;
  if (process.exited) {
    status.state = ProcessStatus::State::kDone;
  } else if (process.waits_for != kNoMessage) {
    status.state = process.for_post ? ProcessStatus::State::kWaitingForReceive : ProcessStatus::State::kWaiting;
    status.message = process.waits_for;
  } else if (store_.closed(index) || store_.is_actor(index)) {
    status.state = ProcessStatus::State::kDone;
  }
  return status;
}

// --- parting targets

// [row][K] -> [row][kept]
template <typename Value>
void drop_columns_except(std::vector<Value>& table, std::size_t count, const std::vector<std::size_t>& kept) {
  std::size_t at = 0;
  for (std::size_t row = 0; row + count <= table.size(); row += count) {
    for (const std::size_t k : kept) table[at++] = table[row + k];  // never behind what is still to be read
  }
  table.resize(at);
}

template <typename Clock>
void DedicatedReplayOf<Clock>::drop_targets_except(const std::vector<std::size_t>& kept) {
  drop_columns_except(targets_, count_, kept);
  drop_columns_except(inverse_speed_, count_, kept);
  drop_columns_except(beside_others_, count_, kept);
  drop_columns_except(node_, count_, kept);
  drop_columns_except(ranks_on_node_, count_, kept);
  drop_columns_except(eager_limit_, count_, kept);
  drop_columns_except(empty_flight_s_, count_, kept);
  drop_columns_except(first_message_s_, count_, kept);
  drop_columns_except(first_peer_s_, count_, kept);
  drop_columns_except(connected_s_, count_, kept);
  drop_columns_except(clock_s_, count_, kept);
  if (followed_) drop_columns_except(followed_->worked_s, count_, kept);
  window_clocks_.drop_targets_except(kept);
  calls_.drop_targets_except(kept);
  messages_.drop_targets_except(kept);
  count_ = kept.size();
  eager_up_to_ = *std::min_element(eager_limit_.begin(), eager_limit_.end());
  costs_ = CostTableOf<Clock>(targets_);
}

template <typename Clock>
std::unique_ptr<Replay> DedicatedReplayOf<Clock>::split_stuck(std::vector<std::size_t>& moved) {
  moved.clear();
  std::vector<std::size_t> kept;
  for (const Process& process : processes_) {
    if (process.waits_for == kNoMessage || !process.for_post) continue;
    const Message& message = store_.message(process.waits_for);
    moved.clear();
    kept.clear();
    for_targets(message, [&](std::size_t k, std::size_t where) {
      (is_rendezvous(message, k, where) ? kept : moved).push_back(k);
    });
    if (!moved.empty()) break;
  }
  if (moved.empty() || kept.empty()) return nullptr;
  std::unique_ptr<DedicatedReplayOf> other(new DedicatedReplayOf(*this));
  store_.add_reader();
  for (ProcessIndex index = 0; index < static_cast<ProcessIndex>(processes_.size()); ++index) {
    store_.add_reader_of(index, processes_[index].cursor);
  }
  for (MessageIndex index = 0; index < static_cast<MessageIndex>(messages_.size()); ++index) {
    if (index < store_.message_slots() && messages_.slot(index).generation == store_.message(index).generation) {
      store_.add_uses(index, messages_.slot(index).uses);
    }
  }
  drop_targets_except(kept);
  other->drop_targets_except(moved);
  other->go_on();
  go_on();
  return other;
}

// What is eager on all targets that are left needs no receive.
template <typename Clock>
void DedicatedReplayOf<Clock>::go_on() {
  for (MessageIndex index = 0; index < static_cast<MessageIndex>(messages_.size()); ++index) {
    if (index >= store_.message_slots()) break;
    const Message& message = store_.message(index);
    Slot& slot = messages_.slot(index);
    if (slot.generation != message.generation || !slot.sent || slot.matched) continue;
    if (!any_rendezvous(message)) match(index, slot);
  }
  advance();
}

}  // namespace lbf::engine
