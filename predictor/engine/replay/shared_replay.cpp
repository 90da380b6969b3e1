#include "predictor/engine/replay/shared_replay.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "predictor/engine/replay/region_time.h"

namespace lbf::engine {

void SharedReplay::add_processes() {
  for (ProcessIndex index = static_cast<ProcessIndex>(processes_.size()); index < store_.processes(); ++index) {
    Process process;
    process.node = groups_.of(store_.rank_of(index));
    process.actor = store_.is_actor(index);
    process.settled = process.actor || !any_first_peer_;
    process.takes_turns = !process.actor && nodes_[process.node].takes_turns;
    processes_.push_back(process);
  }
  timer_queue_.add_sources(processes_.size());
}

void SharedReplay::grow_messages() {
  flights_.grow_to(store_.message_slots());
}

// --- processors

// All are always runnable, so the kernel leaves them on their processors, of which some have one more: those set the
// pace.
double SharedReplay::looking_rate(const Node& node) const {
  const double sharers =
      static_cast<double>(node.runnable.size() + node.awake + node.further_threads + node.at_devices);
  const double on_a_processor = sharers <= node.cores ? 1 : std::ceil(sharers / node.cores);
  const double speed = node.speed / on_a_processor;
  return memory_ == nullptr ? speed : speed * memory_share(node, 1 / on_a_processor);
}

double SharedReplay::crowded_rate(const Node& node, double sharers) const {
  if (memory_ == nullptr) return node.speed * node.cores / sharers;
  const double processors = std::min(1.0, node.cores / sharers);
  return node.speed * processors * memory_share(node, processors);
}

double SharedReplay::memory_share(const Node& node, double processors) const {
  const std::size_t computing = node.runnable.size() - node.looking + node.further_threads;
  if (computing == 0) return 1;
  const SharingGroup& group = groups_[static_cast<std::size_t>(&node - nodes_.data())];
  return memory_speed(*memory_, group.computing(static_cast<double>(computing) * processors),
                      node.speed * target_.memory.bytes_per_s);
}

[[gnu::always_inline]] inline void SharedReplay::bring_to(Node& node, Seconds time_s) {
  if (!node.runnable.empty() && time_s > node.time_s) {
    // Never past the first end: that end is an event of its own, which comes at this time at the latest.
    node.virtual_s = std::min(node.virtual_s + rate(node) * (time_s - node.time_s), node.runnable.front().end);
  }
  node.time_s = std::max(node.time_s, time_s);
}

void SharedReplay::schedule(std::uint32_t index) {
  Node& node = nodes_[index];
  if (node.runnable.empty()) {
    node.virtual_s = 0;  // idle: the virtual clock starts anew, so it never loses precision over a long run
  }
  if (index == busy_node_) return;
  work_queue_.set(
      index, node.runnable.empty() ? kNeverS : node.time_s + (node.runnable.front().end - node.virtual_s) / rate(node));
}

[[gnu::always_inline]] inline bool SharedReplay::start_work(ProcessIndex index, Seconds work_s, Seconds now_s) {
  if (work_s <= 0) return false;
  Process& process = processes_[index];
  Node& node = nodes_[process.node];
  if (process.actor) return start_wait(index, now_s + work_s / node.speed, now_s);
  bring_to(node, now_s);
  process.state = State::kWorking;
  node.runnable.push_back({node.virtual_s + work_s, index});
  std::push_heap(node.runnable.begin(), node.runnable.end(), EndsLater{});
  schedule(process.node);
  return true;
}

Seconds SharedReplay::undisturbed_s(ProcessIndex index, Seconds work_s, std::uint32_t threads) const {
  return scales_work_ == 0 ? work_s : work_s * undisturbed(target_.memory, store_.rank_of(index), threads);
}

Seconds SharedReplay::changed_work_s(ProcessIndex index, const Op& op) const {
  const Seconds work_s = (op.flags & kOpRegions) == 0 ? store_.work_of(op, target_.scenario)
                                                      : demand_of(store_.regions().at(op.region()), target_).alone_s;
  return undisturbed_s(index, work_s, 1);
}

bool SharedReplay::start_threads(ProcessIndex index, const Op& op, Seconds now_s) {
  Process& process = processes_[index];
  const RegionWork& ran = store_.regions().at(op.region());
  const RegionDemand demand = demand_of(ran, target_);
  Node& node = nodes_[process.node];
  bring_to(node, now_s);  // at the old rate
  process.further_threads = demand.together_s > 0 ? demand.threads - 1 : 0;
  node.further_threads += process.further_threads;
  node.beside += process.further_threads;
  return start_work(index, undisturbed_s(index, demand.together_s, ran.threads), now_s);
}

// The node is at this time.
void SharedReplay::finish_row(Process& process, const Op& op) {
  nodes_[process.node].further_threads -= process.further_threads;
  nodes_[process.node].beside -= process.further_threads;
  process.further_threads = 0;
  store_.note_row_use(op);
}

// --- waiting

void SharedReplay::set_timer(ProcessIndex index, Seconds time_s) {
  processes_[index].state = State::kTimed;
  processes_[index].timed_until_s = time_s;
  timer_queue_.set(index, time_s, store_.order_of(index));
}

bool SharedReplay::start_wait(ProcessIndex index, Seconds time_s, Seconds now_s) {
  if (time_s <= now_s) return false;
  set_timer(index, time_s);
  return true;
}

bool SharedReplay::hold_up(ProcessIndex index, const Op& op, Seconds now_s) {
  if (!calls_.notes(index)) return false;
  Seconds until_s = now_s;
  calls_.hold_up(index, op, &until_s);
  return start_wait(index, until_s, now_s);
}

template <SharedReplay::Waits kHow>
[[gnu::always_inline]] inline bool SharedReplay::await(ProcessIndex index, MessageIndex message, Awaited what,
                                                       Seconds time_s, Seconds now_s) {
  Process& process = processes_[index];
  const bool waited = process.waits_for != kNoMessage;
  const bool takes_turns = kHow == Waits::kAwake && process.takes_turns;
  if (!waited) process.wait_since_s = now_s;
  if (time_s <= now_s) {
    process.waits_for = kNoMessage;
    if (process.awake) count_awake(index, -1, now_s);
    if (waited && takes_turns) count_waiting(nodes_[process.node], -1, now_s);
    return false;
  }
  if (!waited && takes_turns) count_waiting(nodes_[process.node], 1, now_s);
  process.waits_for = message;
  process.for_post = what == Awaited::kReceive;
  if (kHow == Waits::kAwake && counts_awake_ && !process.actor && !process.awake) count_awake(index, 1, now_s);
  if (time_s == kNeverS) {
    Flight& flight = flights_[message];
    (process.for_post ? flight.sender : flight.receiver) = index;
    process.state = State::kWaiting;
  } else {
    set_timer(index, time_s);
  }
  return true;
}

void SharedReplay::count_at_device(ProcessIndex index, int change, Seconds now_s) {
  Process& process = processes_[index];
  Node& node = nodes_[process.node];
  process.at_device = change > 0;
  bring_to(node, now_s);
  node.at_devices += static_cast<std::size_t>(change);
  node.beside += static_cast<std::size_t>(change);
  schedule(process.node);
}

void SharedReplay::count_awake(ProcessIndex index, int change, Seconds now_s) {
  Process& process = processes_[index];
  Node& node = nodes_[process.node];
  process.awake = change > 0;
  bring_to(node, now_s);
  node.awake += static_cast<std::size_t>(change);
  if (node.spins) node.beside += static_cast<std::size_t>(change);
  schedule(process.node);
}

void SharedReplay::begin_counting_awake() {
  counts_awake_ = true;
  for (ProcessIndex index = 0; index < static_cast<ProcessIndex>(processes_.size()); ++index) {
    Process& process = processes_[index];
    const Op* const op =
        process.actor || process.waits_for == kNoMessage ? nullptr : store_.front(index, process.cursor);
    process.awake = op != nullptr && op->kind != OpKind::kLook;
    nodes_[process.node].awake += process.awake ? 1 : 0;
    if (process.awake && nodes_[process.node].spins) ++nodes_[process.node].beside;
  }
}

bool SharedReplay::start_looks(ProcessIndex index, const Op& op, Seconds now_s) {
  Node& node = nodes_[processes_[index].node];
  const Seconds work_s = std::max(op.call_s, op.looks() * node.turn_s * node.cores);
  if (!node.yields || work_s <= 0) return false;
  if (!counts_awake_) begin_counting_awake();
  bring_to(node, now_s);
  ++node.looking;
  return start_work(index, work_s, now_s);
}

void SharedReplay::end_looks(ProcessIndex index, Seconds now_s) {
  Node& node = nodes_[processes_[index].node];
  bring_to(node, now_s);
  --node.looking;
  schedule(processes_[index].node);
}

void SharedReplay::count_waiting(Node& node, int change, Seconds now_s) {
  if (is_before(node.waiting_since_s, now_s)) {
    node.waiting_before = node.waiting;
    node.waiting_since_s = now_s;
  }
  node.waiting += static_cast<std::size_t>(change);
}

Seconds SharedReplay::turns_s(const Process& process, const Op& op, Seconds since_s, Seconds now_s) const {
  const Node& node = nodes_[process.node];
  const Message& message = store_.message(op.message());
  const bool in_node = !message.internal && node_of(message.src) == node_of(message.dst);
  if (!is_before(process.wait_since_s, now_s)) {
    return in_node && is_before(now_s, since_s + node.switch_s) ? node.switch_s / 2 : 0;
  }
  // Just before now, so that it does not matter who comes first of those whose waits begin or end now; this
  // process was one of them.
  const std::size_t waiting = is_before(node.waiting_since_s, now_s) ? node.waiting : node.waiting_before;
  return static_cast<double>(waiting - 1) * node.turn_s + (in_node ? node.switch_s : 0);
}

// --- messages

[[gnu::always_inline]] inline SharedReplay::Cost SharedReplay::cost(const Message& message) {
  if (message.internal) return {0, 0, 0};
  const Seconds* const row = costs_.row(message.bytes) + 3 * locality(message);
  return {row[0], row[1], row[2]};
}

Seconds SharedReplay::local_work_s(const Op& op) {
  if (!costs_.has_local()) return 0;
  return op.kind == OpKind::kCopy ? *costs_.copy_row(op.local_bytes()) : *costs_.reduce_row(op.local_bytes());
}

Rendezvous SharedReplay::rendezvous(const Message& message) {
  const Seconds empty_flight_s = costs_.row(0)[3 * locality(message)];
  return {cost(message).flight_s, empty_flight_s};
}

[[gnu::always_inline]] inline Flight& SharedReplay::flight_of(MessageIndex index) {
  return flights_.of(index, store_.message(index));
}

[[gnu::always_inline]] inline void SharedReplay::use(MessageIndex index) {
  flights_.use(index, store_.message(index));
  store_.note_use(index);
}

// Does the rank still have to look for connections over the message's path?
bool SharedReplay::is_unsettled(const Process& process, const Op& op) const {
  if (process.settled || (op.flags & kOpInternal) != 0) return false;
  const Message& message = store_.message(op.message());
  return !message.internal && localities_.path(locality(message)).first_peer_s > 0;
}

void SharedReplay::connect(Process& process, const Op& op, Seconds leaves_s) {
  if (is_unsettled(process, op)) process.connected_s = std::min(process.connected_s, leaves_s);
}

Seconds SharedReplay::first_peer_s(const Process& process, const Op& op) {
  if (!is_unsettled(process, op)) return 0;
  const Message& message = store_.message(op.message());
  const Flight& flight = flights_[op.message()];
  const Seconds ready_s = flight.arrival_s - cost(message).flight_s - flight.first_delay_s;
  return is_before(ready_s, process.connected_s) ? localities_.path(locality(message)).first_peer_s : 0;
}

Seconds SharedReplay::announced_s(MessageIndex index) {
  const Flight& flight = flight_of(index);
  const Message& message = store_.message(index);
  if (!flight.sent || flight.posted || !is_rendezvous(message)) return flight.arrival_s;
  return flight.sent_s + rendezvous(message).handshake_s;
}

[[gnu::always_inline]] inline void SharedReplay::execute_send(MessageIndex index, Seconds delay_s, Seconds now_s) {
  const Message& message = store_.message(index);
  Flight& flight = flight_of(index);
  flight.sent = true;
  flight.first_delay_s = delay_s;
  flight.sent_s = now_s + delay_s;
  if (!is_rendezvous(message)) {
    flight.sender_free_s = now_s;
    fly(index, flight.sent_s, cost(message).flight_s, now_s);
  } else if (flight.posted) {
    start_transfer(index, flight, now_s);
  } else if (flight.receiver != kNobody) {
    // Only a probe waits for what is not posted: for the announcement.
    const ProcessIndex prober = flight.receiver;
    flight.receiver = kNobody;
    set_timer(prober, flight.sent_s + rendezvous(message).handshake_s);
  }
}

[[gnu::always_inline]] inline void SharedReplay::execute_post(MessageIndex index, Seconds now_s) {
  Flight& flight = flight_of(index);
  if (flight.posted) return;
  flight.posted = true;
  if (flight.sent && is_rendezvous(store_.message(index))) start_transfer(index, flight, now_s);
}

void SharedReplay::start_transfer(MessageIndex index, Flight& flight, Seconds now_s) {
  const Rendezvous costs = rendezvous(store_.message(index));
  flight.start_s = costs.start_s(flight.sent_s, now_s);
  fly(index, flight.start_s, costs.rest_s, now_s);
}

[[gnu::always_inline]] inline void SharedReplay::fly(MessageIndex index, Seconds start_s, Seconds rest_s,
                                                     Seconds now_s) {
  const Message& message = store_.message(index);
  if (!links_.shared() || message.internal || node_of(message.src) == node_of(message.dst)) {
    arrives(index, start_s + rest_s, now_s);
    return;
  }
  links_.add(index, message, is_rendezvous(message), node_of(message.src), node_of(message.dst), start_s, rest_s,
             now_s);
}

void SharedReplay::arrives(MessageIndex index, Seconds arrival_s, Seconds now_s) {
  const Message& message = store_.message(index);
  Flight& flight = flights_[index];
  flight.arrival_s = arrival_s;
  if (is_rendezvous(message)) {
    flight.sender_free_s = std::max(now_s, rendezvous(message).sender_free_s(flight.start_s, arrival_s));
  }
  for (auto [waiter, time_s] :
       {std::pair{&flight.receiver, flight.arrival_s}, std::pair{&flight.sender, flight.sender_free_s}}) {
    if (*waiter != kNobody) set_timer(*waiter, time_s);
    *waiter = kNobody;
  }
}

// --- ops

[[gnu::always_inline]] inline bool SharedReplay::step(ProcessIndex index, const Op& op, Seconds now_s) {
  Process& process = processes_[index];
  const bool has_cost = costs_.has_cpu() && (op.flags & kOpInternal) == 0;
  if (process.stage == Stage::kStart) {
    process.stage = Stage::kAction;
    if (timeline_ != nullptr) timeline_->take(index, op, process.events_done, now_s);
    if (op.names_message()) {  // is needed when the work is done, after that of many others
      store_.prefetch(op.message());
      flights_.prefetch(op.message());
    }
    Seconds work_s = op.work_s;
    if (((op.flags & kOpHasRow) | scales_work_) != 0) [[unlikely]]
      work_s = changed_work_s(index, op);
    if (has_cost && op.kind == OpKind::kSend) work_s += cost(store_.message(op.message())).send_cpu_s;
    if (start_work(index, work_s, now_s)) return false;
  }
  if (process.stage == Stage::kAction) {
    if (timeline_ != nullptr) timeline_->note_action(index, now_s);
    if (calls_.notes(index) && may_begin_call(op) && process.waits_for == kNoMessage) [[unlikely]]
      calls_.note(index, &now_s);
    switch (op.kind) {
      case OpKind::kBlocked:
      case OpKind::kWindowOpen:  // ranks stay as far apart as they were, however long each one's windows are
        process.stage = Stage::kAfter;
        if (start_wait(index, now_s + op.call_s, now_s)) return false;
        break;
      case OpKind::kDevice:
        if (process.at_device) {
          count_at_device(index, -1, now_s);
          break;
        }
        if (start_wait(index, now_s + op.call_s, now_s)) {
          count_at_device(index, 1, now_s);
          return false;
        }
        break;
      case OpKind::kPreempted:
        if (target_.other_programs == OtherPrograms::kLeftOut) break;
        process.stage = Stage::kAfter;
        if (start_work(index, undisturbed_s(index, op.call_s, 1), now_s)) return false;
        break;
      case OpKind::kDelayed:
        process.stage = Stage::kAfter;
        if (hold_up(index, op, now_s)) return false;
        break;
      case OpKind::kSend:
        process.stage = Stage::kAfter;
        if (timeline_ != nullptr) timeline_->note_message(index, op.message());
        execute_send(op.message(), first_message_s(store_.message(op.message()), op), now_s);
        if (!process.settled) connect(process, op, flights_[op.message()].sent_s);
        break;
      case OpKind::kWaitSend:
        process.stage = Stage::kAfter;
        break;
      case OpKind::kPost:
        if (!op.names_message()) break;
        execute_post(op.message(), now_s);
        use(op.message());
        break;
      case OpKind::kRecv: {
        execute_post(op.message(), now_s);
        Seconds there_s = flights_[op.message()].arrival_s;
        if (!process.settled) there_s += first_peer_s(process, op);
        if (await(index, op.message(), Awaited::kMessage, there_s, now_s)) return false;
        process.stage = Stage::kAfter;
        process.settled = process.settled || is_unsettled(process, op);
        if (timeline_ != nullptr) {
          timeline_->note_wait_end(index, now_s);
          timeline_->note_message(index, op.message());
        }
        Seconds work_s = process.takes_turns ? turns_s(process, op, there_s, now_s) : 0;
        if (has_cost) work_s += cost(store_.message(op.message())).recv_cpu_s;
        use(op.message());
        if (start_work(index, work_s, now_s)) return false;
        break;
      }
      case OpKind::kLook: {
        const Seconds until_s = announced_s(op.message());
        if (await<Waits::kAsleep>(index, op.message(), Awaited::kMessage, until_s, now_s)) return false;
        process.stage = Stage::kAfter;
        use(op.message());
        if (start_wait(index, first_look_s(process.wait_since_s, until_s, op.call_s), now_s)) return false;
        break;
      }
      case OpKind::kPeek: {
        const Seconds until_s = announced_s(op.message());
        if (await(index, op.message(), Awaited::kMessage, until_s, now_s)) return false;
        use(op.message());
        break;
      }
      case OpKind::kExit:
        process.exited = true;
        break;
      case OpKind::kBlockEnd:  // not here, run() has it
        break;
      case OpKind::kWindowClose:
        window_clocks_.close(index, op.window(), process.measured_s + op.work_s + op.call_s, {&now_s, 1},
                             closing_of(op));
        break;
      case OpKind::kCopy:
      case OpKind::kReduce:
        process.stage = Stage::kAfter;
        if (timeline_ != nullptr) timeline_->note_wait_end(index, now_s);
        if (start_work(index, local_work_s(op), now_s)) return false;
        break;
      case OpKind::kVainLooks:
        if (timeline_ != nullptr) timeline_->note_wait_end(index, now_s);
        if (start_looks(index, op, now_s)) {
          process.stage = Stage::kAfter;
          return false;
        }
        break;
      case OpKind::kCompute:
        if ((op.flags & kOpRegions) != 0) [[unlikely]] {
          process.stage = Stage::kAfter;
          if (start_threads(index, op, now_s)) return false;
        }
        break;
    }
  }
  if (op.kind == OpKind::kWaitSend || op.kind == OpKind::kSend) {
    const bool blocks = op.kind == OpKind::kWaitSend || (op.flags & kOpNonblocking) == 0;
    const Flight& flight = flight_of(op.message());
    Seconds until_s = flight.sender_free_s;
    const bool own =
        op.kind == OpKind::kSend && blocks && !store_.message(op.message()).collective && (op.flags & kOpInternal) == 0;
    if (own) until_s = std::max(until_s, flight.sent_s);  // it returns when the message has left
    if (blocks && await(index, op.message(), Awaited::kReceive, until_s, now_s)) return false;
    use(op.message());
  }
  if (op.kind >= OpKind::kWindowOpen) [[unlikely]] {
    if (op.kind == OpKind::kWindowOpen)
      window_clocks_.open(index, process.measured_s + op.work_s + op.call_s, {&now_s, 1}, op.call_s);
    if (op.kind == OpKind::kVainLooks && process.stage == Stage::kAfter) end_looks(index, now_s);
  }
  return true;
}

[[gnu::always_inline]] inline void SharedReplay::finish_op(ProcessIndex index, const Op& op, Seconds now_s) {
  Process& process = processes_[index];
  if (timeline_ != nullptr) timeline_->finish(index, now_s);
  process.finish_s = now_s;
  process.measured_s += op.work_s + op.call_s;
  process.events_done += (op.flags & kOpEndsEvent) != 0 ? 1 : 0;
  process.stage = Stage::kStart;
  if ((op.flags & kOpHasRow) != 0) [[unlikely]]
    finish_row(process, op);
  OpStore::pop(process.cursor);
}

void SharedReplay::run(ProcessIndex index, Seconds now_s) {
  Process& process = processes_[index];
  process.state = State::kRunning;
  bool reported = false;
  for (;;) {
    const Op* op = process.exited ? nullptr : store_.front(index, process.cursor);
    if (op != nullptr && op->kind == OpKind::kBlockEnd) [[unlikely]] {  // no step: nobody sees it but the clocks
      window_clocks_.end_block(index, op->block(), process.measured_s, {&now_s, 1});
      OpStore::pop(process.cursor);
      continue;
    }
    bool goes_on = false;
    if (op == nullptr) {
      const bool ends = process.exited || store_.ended(index, process.cursor);
      process.state = ends ? State::kDone : State::kNeedsEvents;
      if (!ends && !process.actor) needs_events_.push_back(index);
    } else {
      goes_on = step(index, *op, now_s);
    }
    if (observer_ != nullptr) observe_arrival_row();  // before anything is reported because of it
    if (reported && observer_ != nullptr) {
      // A group's time is that of its last event (TSE Sec. 2), also where no work was done.
      observe_row(ObservedRow::Cause::kReport, store_.rank_of(index), process.events_done);
    }
    if (!goes_on) return;
    if (!process.actor) bring_to(nodes_[process.node], now_s);
    reported = !process.actor && (op->flags & kOpEndsEvent) != 0;
    finish_op(index, *op, now_s);
  }
}

void SharedReplay::start_processes() {
  for (ProcessIndex index : store_.touched()) {
    Process& process = processes_[index];
    if (process.actor && process.state == State::kNeedsEvents) run(index, now_s_);
  }
  // At time 0 every rank is in the list, later at most one: which of them starts first changes nothing, no
  // node's clock has moved since it ran out of events.
  starting_.clear();
  starting_.swap(needs_events_);
  for (ProcessIndex index : starting_) {
    const OpStore::Cursor& cursor = processes_[index].cursor;
    if (store_.front(index, processes_[index].cursor) == nullptr && !store_.ended(index, cursor)) {
      needs_events_.push_back(index);
    } else {
      run(index, now_s_);
    }
  }
  if (observer_ != nullptr) observe_arrival_row();
}

void SharedReplay::advance() {
  add_processes();
  grow_messages();
  start_processes();
  while (needs_events_.empty() && next_event()) {
    if (!store_.budget().spend(1)) return;
  }
}

// At equal times links come first, then messages arrive, then work ends, as in TSE Fig. 2 (line 27: an
// endRecv goes first).
bool SharedReplay::next_event() {
  const Seconds link_s = links_.shared() ? links_.next_s() : kNeverS;
  const Seconds timer_s = timer_queue_.empty() ? kNeverS : timer_queue_.top().time_s;
  const Seconds work_s = work_queue_.top().time_s;
  const Seconds next_s = std::min({link_s, timer_s, work_s});
  if (next_s == kNeverS) return false;
  now_s_ = std::max(now_s_, next_s);
  if (link_s == next_s) {
    Seconds latency_s = 0;
    std::uint32_t generation = 0;
    const MessageIndex message = links_.advance(latency_s, generation);
    if (message != kNoMessage && store_.message(message).generation == generation)
      arrives(message, now_s_ + latency_s, now_s_);
    return true;
  }
  if (timer_s == next_s) {
    const ProcessIndex index = timer_queue_.top().source;
    timer_queue_.remove(index);
    run(index, now_s_);
    return true;
  }
  const std::uint32_t source = work_queue_.top().source;
  Node& node = nodes_[source];
  node.virtual_s = node.runnable.front().end;
  node.time_s = now_s_;
  const ProcessIndex index = node.runnable.front().process;
  std::pop_heap(node.runnable.begin(), node.runnable.end(), EndsLater{});
  node.runnable.pop_back();
  // Most processes go on to further work at once: the node's next end is only known after that.
  busy_node_ = source;
  schedule(source);
  run(index, now_s_);
  busy_node_ = kNoNode;
  schedule(source);
  return true;
}

}  // namespace lbf::engine
