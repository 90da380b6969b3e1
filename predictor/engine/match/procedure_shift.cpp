#include "predictor/engine/match/procedure_shift.h"

#include <algorithm>
#include <utility>

namespace lbf::engine {
namespace {

// Ops of an interval that wait for its end. In a longer one, what ran before stays where it ran.
constexpr std::uint64_t kMaxIntervalEvents = 65536;

// Procedures that a rank is in, of each of which an event's time is asked for.
constexpr std::size_t kDepthPerUnit = 16;

// Process time passes; the event itself has nothing that a replay would do.
bool is_plain(EventKind kind) {
  return kind == EventKind::kCompute || kind == EventKind::kEnter || kind == EventKind::kLeave ||
         kind == EventKind::kProcedure || kind == EventKind::kRegions || kind == EventKind::kPhase ||
         kind == EventKind::kKeepAlive;
}

bool is_send(EventKind kind) {
  return kind == EventKind::kSend || kind == EventKind::kIsend;
}

bool ends_interval(EventKind kind) {
  switch (kind) {
    case EventKind::kSend:
    case EventKind::kIsend:
    case EventKind::kEndRecv:
    case EventKind::kRecv:
    case EventKind::kCollective:
    case EventKind::kIcollective:
    case EventKind::kOneSided:
    case EventKind::kOneSidedSync:
    case EventKind::kGap:
    case EventKind::kWindowOpen:
    case EventKind::kWindowClose:
    case EventKind::kSkipped:
    case EventKind::kExit:
      return true;
    default:
      return false;
  }
}

std::uint32_t procedure_of(const Event& event) {
  return event.values.empty() ? ~std::uint32_t{0} : static_cast<std::uint32_t>(event.values[0]);
}

bool any_of(const std::vector<Seconds>& seconds) {
  return std::any_of(seconds.begin(), seconds.end(), [](Seconds s) { return s > 0; });
}

}  // namespace

ProcedureShift::ProcedureShift(Rank ranks, OpStore& store, ProcedurePlan plan)
    : store_(store),
      plan_(std::move(plan)),
      scenarios_(plan_.scenarios.size()),
      changes_(scenarios_),
      ranks_(store.account()),
      carried_s_(scenarios_, 0.0),
      scenario_stats_(scenarios_),
      profiled_stats_(plan_.profiled.size()),
      pass_of_(plan_.profiled.size(), 0) {
  const auto know = [&](std::uint32_t procedure) {
    if (known_.size() <= procedure) known_.resize(procedure + 1, false);
    known_[procedure] = true;
  };
  for (std::size_t v = 0; v < scenarios_; ++v) {
    for (const ProcedureChange& change : plan_.scenarios[v].changes) {
      know(change.procedure);
      changes_[v].emplace(change.procedure, change);
      any_forward_ = any_forward_ || change.to == MoveTo::kReceiver || change.to == MoveTo::kRank;
      any_backward_ = any_backward_ || change.to == MoveTo::kSender || change.to == MoveTo::kRank;
    }
  }
  for (std::uint32_t p = 0; p < plan_.profiled.size(); ++p) {
    know(plan_.profiled[p]);
    if (profiled_of_.size() < known_.size()) profiled_of_.resize(known_.size(), kNotProfiled);
    profiled_of_[plan_.profiled[p]] = p;
  }
  ranks_.reserve(static_cast<std::size_t>(ranks));
  for (Rank rank = 0; rank < ranks; ++rank) {
    RankState& state = ranks_.emplace_back(store.account());
    state.parts.resize(scenarios_);
    state.self_s.resize(plan_.profiled.size(), 0.0);
  }
}

Bytes ProcedureShift::memory_bytes() const {
  const Bytes of_rank = scenarios_ * sizeof(Parts) + plan_.profiled.size() * sizeof(Seconds);
  const Bytes of_piece = scenarios_ * sizeof(Parts);
  const Bytes of_message = sizeof(InFlight) + 4 * sizeof(void*) + 2 * scenarios_ * sizeof(Seconds);
  return ranks_.size() * of_rank + pieces_ * of_piece + in_flight_.size() * of_message;
}

const ProcedureChange* ProcedureShift::change_of(std::size_t scenario, std::uint32_t procedure) const {
  const auto found = changes_[scenario].find(procedure);
  return found == changes_[scenario].end() ? nullptr : &found->second;
}

std::uint32_t ProcedureShift::profiled_index(std::uint32_t procedure) const {
  return procedure < profiled_of_.size() ? profiled_of_[procedure] : kNotProfiled;
}

// --- which procedures time passes in

void ProcedureShift::add_part(RankState& state, std::size_t scenario, const ProcedureChange& change, Seconds seconds) {
  Parts& parts = state.parts[scenario];
  Seconds& part_s = change.to == MoveTo::kNowhere    ? parts.gone_s
                    : change.to == MoveTo::kReceiver ? parts.to_receiver_s
                    : change.to == MoveTo::kSender   ? parts.to_sender_s
                                                     : parts.to_rank_s;
  part_s += seconds * change.share;
  state.any_part = true;
}

void ProcedureShift::pass(RankState& state, Seconds seconds) {
  state.work_s += seconds;
  if (state.stack.empty() || seconds <= 0) return;
  for (std::size_t v = 0; v < scenarios_; ++v) {
    for (auto entered = state.stack.rbegin(); entered != state.stack.rend(); ++entered) {
      const ProcedureChange* const change = change_of(v, *entered);
      if (change == nullptr) continue;
      add_part(state, v, *change, seconds);
      break;
    }
  }
  const auto innermost = std::find_if(state.stack.rbegin(), state.stack.rend(), [this](std::uint32_t procedure) {
    return profiled_index(procedure) != kNotProfiled;
  });
  if (innermost == state.stack.rend()) return;
  const std::uint32_t own = profiled_index(*innermost);
  state.self_s[own] += seconds;
  state.any_part = true;
  profiled_stats_[own].exclusive_s += seconds;
  // Once, however deep it calls itself.
  ++passes_;
  for (const std::uint32_t procedure : state.stack) {
    const std::uint32_t p = profiled_index(procedure);
    if (p == kNotProfiled || std::exchange(pass_of_[p], passes_) == passes_) continue;
    profiled_stats_[p].inclusive_s += seconds;
  }
}

void ProcedureShift::enter(RankState& state, const Event& event) {
  const std::uint32_t procedure = procedure_of(event);
  // Those that the plan does not name, too: what they leave says what else was left.
  state.stack.push_back(procedure);
  const std::uint32_t p = profiled_index(procedure);
  if (p != kNotProfiled) ++profiled_stats_[p].calls;
}

// Also leaves what was entered later and was not left: longjmp, exceptions.
void ProcedureShift::leave(RankState& state, const Event& event) {
  const auto entered = std::find(state.stack.rbegin(), state.stack.rend(), procedure_of(event));
  if (entered == state.stack.rend()) return;
  state.stack.erase(std::prev(entered.base()), state.stack.end());
}

void ProcedureShift::note_spent(RankState& state, const Event& event) {
  if (event.values.size() < kProcedureValues) return;
  const std::uint32_t procedure = procedure_of(event);
  if (!is_known(procedure)) return;
  const Spent spent{procedure, static_cast<Seconds>(event.values[1]) * 1e-9,
                    static_cast<Seconds>(event.values[2]) * 1e-9};
  state.spent.push_back(spent);
  const std::uint32_t p = profiled_index(procedure);
  if (p == kNotProfiled) return;
  profiled_stats_[p].calls += event.values[3];
  profiled_stats_[p].inclusive_s += spent.inclusive_s;
  profiled_stats_[p].exclusive_s += spent.exclusive_s;
}

// Which of a scenario's procedures ran inside which others is not recorded. One alone has its inclusive time. Of
// several, each has its exclusive time, and the longest one what it has in others, as far as these are not
// the scenario's.
void ProcedureShift::settle_spent(RankState& state) {
  if (state.spent.empty()) return;
  for (std::size_t v = 0; v < scenarios_; ++v) {
    const Spent* longest = nullptr;
    Seconds exclusive_s = 0;
    for (const Spent& spent : state.spent) {
      if (change_of(v, spent.procedure) == nullptr) continue;
      exclusive_s += spent.exclusive_s;
      if (longest == nullptr || spent.inclusive_s > longest->inclusive_s) longest = &spent;
    }
    if (longest == nullptr) continue;
    for (const Spent& spent : state.spent) {
      const ProcedureChange* const change = change_of(v, spent.procedure);
      if (change != nullptr) add_part(state, v, *change, spent.exclusive_s);
    }
    const Seconds in_others_s = std::max(longest->inclusive_s - exclusive_s, 0.0);
    add_part(state, v, *change_of(v, longest->procedure), in_others_s);
  }
  for (const Spent& spent : state.spent) {
    const std::uint32_t p = profiled_index(spent.procedure);
    if (p == kNotProfiled) continue;
    state.self_s[p] += spent.exclusive_s;
    state.any_part = true;
  }
  state.spent.clear();
}

// --- ops

void ProcedureShift::fill(Op& op, const std::vector<Seconds>& work_s) {
  std::copy(work_s.begin(), work_s.end(), store_.row(op.row()));
}

Op* ProcedureShift::push_row(Rank rank, const std::vector<Seconds>& work_s, RowState state) {
  const RowIndex row = store_.new_row();
  std::copy(work_s.begin(), work_s.end(), store_.row(row));
  const auto flags = static_cast<std::uint8_t>(state == RowState::kHeld ? kOpHeld : 0);
  return &store_.push(static_cast<ProcessIndex>(rank), Op::varying(row, flags));
}

void ProcedureShift::flush(Rank rank, Event* event) {
  RankState& state = state_of(rank);
  const Seconds work_s = std::exchange(state.work_s, 0);
  if (!state.any_part || work_s <= 0) {
    if (event != nullptr) {
      event->process_s = work_s;
    } else if (work_s > 0) {
      store_.push(static_cast<ProcessIndex>(rank), Op::plain(OpKind::kCompute, work_s, 0));
    }
    if (std::exchange(state.any_part, false)) {
      state.parts.assign(scenarios_, {});
      std::fill(state.self_s.begin(), state.self_s.end(), 0.0);
    }
    return;
  }
  if (event != nullptr) event->process_s = 0;
  // Times of procedures were rounded, and clocks read one after the other: never more than there was.
  for (Parts& parts : state.parts) {
    if (const Seconds sum_s = parts.sum_s(); sum_s > work_s) {
      const double less = work_s / sum_s;
      for (Seconds* part_s : {&parts.gone_s, &parts.to_receiver_s, &parts.to_sender_s, &parts.to_rank_s}) {
        *part_s *= less;
      }
    }
  }
  scratch_s_.assign(scenarios_, work_s);
  scratch_s_.insert(scratch_s_.end(), state.self_s.begin(), state.self_s.end());
  Op* const op = push_row(rank, scratch_s_, RowState::kHeld);
  op->work_s = work_s;
  ++pieces_;
  state.pieces.push_back({op, std::exchange(state.parts, std::vector<Parts>(scenarios_))});
  std::fill(state.self_s.begin(), state.self_s.end(), 0.0);
  state.any_part = false;
}

// `sends_to`: the rank that the message of the event goes to; kAnyRank: the interval does not end with a send.
void ProcedureShift::end_interval(Rank rank, Rank sends_to) {
  RankState& state = state_of(rank);
  const MessageIndex began_with = std::exchange(state.began_with, kNoMessage);
  state.events = 0;
  const Rank from = std::exchange(state.began_from, kAnyRank);
  const bool forward = sends_to != kAnyRank && sends_to != rank;
  const bool backward = from != kAnyRank && from != rank;
  std::fill(carried_s_.begin(), carried_s_.end(), 0.0);
  scratch_s_.assign(scenarios_, 0.0);  // what goes back
  for (const Piece& piece : state.pieces) {
    Seconds* const row = store_.row(piece.op->row());
    for (std::size_t v = 0; v < scenarios_; ++v) {
      const Parts& parts = piece.parts[v];
      ScenarioStats& stats = scenario_stats_[v];
      Seconds carried_s = 0;
      Seconds back_s = 0;
      (forward ? carried_s : stats.stayed_s) += parts.to_receiver_s;
      (backward ? back_s : stats.stayed_s) += parts.to_sender_s;
      const Rank wanted = plan_.scenarios[v].rank;
      const bool to_it = forward && sends_to == wanted;
      const bool from_it = backward && from == wanted && !to_it;
      // Its own procedures are there already.
      if (rank != wanted) (to_it ? carried_s : from_it ? back_s : stats.stayed_s) += parts.to_rank_s;
      row[v] = std::max(piece.op->work_s - parts.gone_s - carried_s - back_s, 0.0);
      carried_s_[v] += carried_s;
      scratch_s_[v] += back_s;
      stats.moved_s += carried_s + back_s;
      stats.removed_s += parts.gone_s;
    }
    store_.release(static_cast<ProcessIndex>(rank), *piece.op);
  }
  pieces_ -= state.pieces.size();
  state.pieces.clear();
  any_carried_ = any_of(carried_s_);
  if (began_with == kNoMessage || !any_backward_) return;
  if (store_.message(began_with).generation != state.began_generation) return;
  InFlight& flight = in_flight(began_with);
  flight.back_known = true;
  if (flight.held_send != nullptr) {
    fill(*flight.held_send, scratch_s_);
    store_.release(flight.sender, *std::exchange(flight.held_send, nullptr));
  } else if (!flight.sent && any_of(scratch_s_)) {
    flight.back_s = scratch_s_;
  }
  forget_if_done(began_with);
}

// --- events

void ProcedureShift::take(Rank rank, Event& event) {
  RankState& state = state_of(rank);
  if (!store_.budget().spend(state.stack.size() / kDepthPerUnit)) return;
  if (event.kind == EventKind::kDevice) return flush(rank, nullptr);  // its time is no procedure's
  pass(state, event.process_s);
  if (event.kind == EventKind::kProcedure) {
    note_spent(state, event);
  } else {
    settle_spent(state);
    if (event.kind == EventKind::kEnter) enter(state, event);
    if (event.kind == EventKind::kLeave) leave(state, event);
  }
  event.process_s = 0;
  if (is_plain(event.kind)) return;
  flush(rank, &event);
  if (ends_interval(event.kind)) {
    end_interval(rank, is_send(event.kind) ? event.peer : kAnyRank);
    // What was entered before lost events may have been left in them.
    if (event.kind == EventKind::kGap || event.kind == EventKind::kWindowClose) state.stack.clear();
  } else if (++state.events > kMaxIntervalEvents) {
    end_interval(rank, kAnyRank);
  }
  state.exited = state.exited || event.kind == EventKind::kExit;
}

ProcedureShift::InFlight& ProcedureShift::in_flight(MessageIndex message) {
  InFlight& flight = in_flight_[message];
  const std::uint32_t generation = store_.message(message).generation;
  if (flight.generation != generation) {  // of a message that was cancelled
    flight = InFlight{};
    flight.generation = generation;
  }
  return flight;
}

void ProcedureShift::forget_if_done(MessageIndex message) {
  const auto found = in_flight_.find(message);
  if (found == in_flight_.end()) return;
  const InFlight& flight = found->second;
  if (flight.sent && flight.received && (flight.back_known || !any_backward_)) in_flight_.erase(found);
}

void ProcedureShift::note_sent(Rank rank, MessageIndex message) {
  if (!any_forward_ && !any_backward_) return;
  InFlight& flight = in_flight(message);
  flight.sent = true;
  if (any_backward_ && !flight.back_known) {
    scratch_s_.assign(scenarios_, 0.0);
    flight.held_send = push_row(rank, scratch_s_, RowState::kHeld);
    flight.sender = static_cast<ProcessIndex>(rank);
  } else if (!flight.back_s.empty()) {
    push_row(rank, flight.back_s, RowState::kFilled);
  }
  if (flight.held_receive != nullptr) {
    if (any_carried_) fill(*flight.held_receive, carried_s_);
    store_.release(flight.receiver, *std::exchange(flight.held_receive, nullptr));
  } else if (any_carried_) {
    flight.carried_s = carried_s_;
  }
  any_carried_ = false;
  forget_if_done(message);
}

void ProcedureShift::note_received(Rank rank, MessageIndex message) {
  state_of(rank).began_with = message;
  state_of(rank).began_generation = store_.message(message).generation;
  state_of(rank).began_from = store_.message(message).src;
  if (!any_forward_ && !any_backward_) return;
  InFlight& flight = in_flight(message);
  flight.received = true;
  if (any_forward_ && !flight.sent) {
    scratch_s_.assign(scenarios_, 0.0);
    flight.held_receive = push_row(rank, scratch_s_, RowState::kHeld);
    flight.receiver = static_cast<ProcessIndex>(rank);
  } else if (!flight.carried_s.empty()) {
    push_row(rank, flight.carried_s, RowState::kFilled);
  }
  forget_if_done(message);
}

void ProcedureShift::close(Rank rank) {
  RankState& state = state_of(rank);
  if (state.exited) return;
  settle_spent(state);
  flush(rank, nullptr);
  end_interval(rank, kAnyRank);
}

void ProcedureShift::finish() {
  for (auto& [message, flight] : in_flight_) {
    if (flight.held_receive != nullptr) store_.release(flight.receiver, *flight.held_receive);
    if (flight.held_send != nullptr) store_.release(flight.sender, *flight.held_send);
  }
  in_flight_.clear();
}

}  // namespace lbf::engine
