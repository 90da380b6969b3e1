#include "predictor/replay/shared_replay.h"

#include <algorithm>
#include <cassert>

namespace lbf {
namespace {

constexpr ProcessIndex kNobody = ~ProcessIndex{0};
// At equal times messages arrive before work ends, as in TSE Fig. 2 (line 27: an endRecv goes first).
constexpr std::uint64_t kNodeOrder = std::uint64_t{1} << 60;

}  // namespace

SharedReplay::SharedReplay(const Target& target, OpStore& store)
    : store_(store), target_(target), costs_({&target}, {1.0}), nodes_(target.nodes) {
  add_processes();
  for (ProcessIndex index = 0; index < static_cast<ProcessIndex>(store.ranks()); ++index) {
    needs_events_.push_back(index);
  }
}

void SharedReplay::add_processes() {
  for (ProcessIndex index = static_cast<ProcessIndex>(processes_.size()); index < store_.processes();
       ++index) {
    Process process;
    process.node = target_.node_of_rank[static_cast<std::size_t>(store_.rank_of(index))];
    process.actor = store_.is_actor(index);
    processes_.push_back(process);
  }
  queue_.add_sources(nodes_.size() + processes_.size());
}

void SharedReplay::grow_messages() {
  if (flights_.size() >= store_.message_slots()) return;
  flights_.resize(std::max(store_.message_slots(), flights_.size() * 2));
}

double SharedReplay::rate(const Node& node) const {
  const std::size_t runnable = node.runnable.size();
  if (runnable <= target_.cores_per_node) return target_.speed;
  return target_.speed * static_cast<double>(target_.cores_per_node) / static_cast<double>(runnable);
}

void SharedReplay::bring_to(Node& node, Seconds time_s) {
  if (!node.runnable.empty() && time_s > node.time_s) {
    // Never past the first end: that end is an event of its own, which comes at this time at the latest.
    node.virtual_s =
        std::min(node.virtual_s + rate(node) * (time_s - node.time_s), node.runnable.front().end);
  }
  node.time_s = std::max(node.time_s, time_s);
}

void SharedReplay::schedule(std::uint32_t index) {
  Node& node = nodes_[index];
  if (node.runnable.empty()) {
    node.virtual_s = 0;  // idle: the virtual clock starts anew, so it never loses precision over a long run
    queue_.remove(index);
    return;
  }
  queue_.set(index, node.time_s + (node.runnable.front().end - node.virtual_s) / rate(node),
             kNodeOrder + index);
}

bool SharedReplay::start_work(ProcessIndex index, Seconds work_s, Seconds now_s) {
  if (work_s <= 0) return false;
  Process& process = processes_[index];
  if (process.actor) return start_wait(index, now_s + work_s / target_.speed, now_s);
  Node& node = nodes_[process.node];
  bring_to(node, now_s);
  process.state = State::kWorking;
  node.runnable.push_back({node.virtual_s + work_s, index});
  std::push_heap(node.runnable.begin(), node.runnable.end(), [](const Work& a, const Work& b) {
    return a.end != b.end ? a.end > b.end : a.process > b.process;
  });
  schedule(process.node);
  return true;
}

bool SharedReplay::start_wait(ProcessIndex index, Seconds time_s, Seconds now_s) {
  if (time_s <= now_s) return false;
  processes_[index].state = State::kTimed;
  processes_[index].timed_until_s = time_s;
  queue_.set(static_cast<EventQueue::Source>(nodes_.size() + index), time_s, store_.order_of(index));
  return true;
}

const Seconds* SharedReplay::path(const Message& message) {
  const bool same_node = target_.node_of_rank[static_cast<std::size_t>(message.src)] ==
                         target_.node_of_rank[static_cast<std::size_t>(message.dst)];
  return costs_.row(message.bytes) + (same_node ? 3 : 0);
}

void SharedReplay::execute_send(const Op& op, Seconds now_s) {
  const Message& message = store_.message(op.message);
  if (!message.discarded) {
    Flight& flight = flights_[op.message];
    const bool flies = costs_.has_flight() && (op.flags & kOpInternal) == 0;
    flight.arrival_s = flies ? now_s + path(message)[0] : now_s;
    if (flight.waiter != kNobody) {
      processes_[flight.waiter].state = State::kTimed;
      processes_[flight.waiter].timed_until_s = flight.arrival_s;
      queue_.set(static_cast<EventQueue::Source>(nodes_.size() + flight.waiter), flight.arrival_s,
                 store_.order_of(flight.waiter));
      flight.waiter = kNobody;
    }
  }
  store_.sent(op.message);
}

bool SharedReplay::step(ProcessIndex index, const Op& op, Seconds now_s) {
  Process& process = processes_[index];
  const bool has_cost = costs_.has_cpu() && (op.flags & kOpInternal) == 0;
  if (process.stage == Stage::kStart) {
    process.stage = Stage::kAction;
    Seconds work_s = op.work_s;
    if (has_cost && op.kind == OpKind::kSend) work_s += path(store_.message(op.message))[1];
    if (start_work(index, work_s, now_s)) return false;
  }
  if (process.stage == Stage::kAction) {
    switch (op.kind) {
      case OpKind::kBlocked:
        process.stage = Stage::kAfter;
        if (start_wait(index, now_s + op.call_s, now_s)) return false;
        break;
      case OpKind::kSend:
        execute_send(op, now_s);
        break;
      case OpKind::kRecv:
      case OpKind::kPeek: {
        Flight& flight = flights_[op.message];
        if (process.waits_for == kNoMessage) process.wait_since_s = now_s;
        process.waits_for = op.message;
        if (flight.arrival_s == kNeverS) {
          flight.waiter = index;
          process.state = State::kWaiting;
          return false;
        }
        if (start_wait(index, flight.arrival_s, now_s)) return false;
        process.waits_for = kNoMessage;
        process.stage = Stage::kAfter;
        if (op.kind == OpKind::kPeek) break;
        Seconds work_s = 0;
        if (has_cost) work_s = path(store_.message(op.message))[2];
        flight.arrival_s = kNeverS;  // the slot is clean for its next message
        store_.received(op.message);
        if (start_work(index, work_s, now_s)) return false;
        break;
      }
      case OpKind::kExit:
        process.exited = true;
        break;
      case OpKind::kCompute:
      case OpKind::kStartRecv:
        break;
    }
  }
  return true;
}

void SharedReplay::finish_op(ProcessIndex index, const Op& op, Seconds now_s) {
  Process& process = processes_[index];
  process.finish_s = now_s;
  process.measured_s += op.work_s + op.call_s;
  process.events_done += (op.flags & kOpEndsEvent) != 0 ? 1 : 0;
  process.stage = Stage::kStart;
  OpStore::pop(process.cursor);
}

void SharedReplay::run(ProcessIndex index, Seconds now_s) {
  Process& process = processes_[index];
  process.state = State::kRunning;
  bool reported = false;
  for (;;) {
    const Op* op = process.exited ? nullptr : store_.front(index, process.cursor);
    bool goes_on = false;
    if (op == nullptr) {
      const bool ends = process.exited || store_.closed(index);
      process.state = ends ? State::kDone : State::kNeedsEvents;
      if (!ends && !process.actor) needs_events_.push_back(index);
    } else {
      goes_on = step(index, *op, now_s);
    }
    observe_arrival_row();  // before anything is reported because of it
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
    if (store_.front(index, processes_[index].cursor) == nullptr && !store_.closed(index)) {
      needs_events_.push_back(index);
    } else {
      run(index, now_s_);
    }
  }
  observe_arrival_row();
}

void SharedReplay::advance() {
  add_processes();
  grow_messages();
  start_processes();
  while (needs_events_.empty() && !queue_.empty()) {
    const EventQueue::Entry next = queue_.top();
    now_s_ = std::max(now_s_, next.time_s);
    if (next.source >= nodes_.size()) {
      queue_.remove(next.source);
      run(static_cast<ProcessIndex>(next.source - nodes_.size()), now_s_);
      continue;
    }
    Node& node = nodes_[next.source];
    node.virtual_s = node.runnable.front().end;
    node.time_s = now_s_;
    const ProcessIndex index = node.runnable.front().process;
    std::pop_heap(node.runnable.begin(), node.runnable.end(), [](const Work& a, const Work& b) {
      return a.end != b.end ? a.end > b.end : a.process > b.process;
    });
    node.runnable.pop_back();
    schedule(next.source);
    run(index, now_s_);
  }
}

ProcessStatus SharedReplay::status(ProcessIndex index) const {
  ProcessStatus status;
  if (index >= processes_.size()) return status;
  const Process& process = processes_[index];
  status.events_done = process.events_done;
  switch (process.state) {
    case State::kNeedsEvents:
      status.state = process.actor ? ProcessStatus::State::kDone : ProcessStatus::State::kNeedsEvents;
      break;
    case State::kDone:
      status.state = ProcessStatus::State::kDone;
      break;
    case State::kWaiting:
      status.state = ProcessStatus::State::kWaiting;
      status.message = process.waits_for;
      break;
    case State::kWorking:
    case State::kTimed:
    case State::kRunning:
      status.state = ProcessStatus::State::kRunning;
      break;
  }
  return status;
}

// --- TSE Fig. 5

void SharedReplay::observe(ReplayObserver* observer) {
  observer_ = observer;
  if (observer_ != nullptr) observe_row(ObservedRow::Cause::kInitial, kAnyRank, 0);
}

void SharedReplay::observe_arrival(Rank rank, std::uint64_t number) {
  arrived_rank_ = rank;
  arrived_number_ = number;
}

void SharedReplay::observe_arrival_row() {
  if (observer_ == nullptr || arrived_rank_ == kAnyRank) return;
  const Rank rank = arrived_rank_;
  arrived_rank_ = kAnyRank;
  observe_row(ObservedRow::Cause::kArrival, rank, arrived_number_);
}

void SharedReplay::observe_row(ObservedRow::Cause cause, Rank rank, std::uint64_t number) {
  ObservedRow row;
  row.cause = cause;
  row.rank = rank;
  row.number = number;
  for (const Node& node : nodes_) row.group_time_s.push_back(node.time_s);
  for (Rank r = 0; r < store_.ranks(); ++r) {
    row.exited.push_back(processes_[static_cast<std::size_t>(r)].state == State::kDone ? 1 : 0);
    observe_events(r, row);
  }
  observer_->on_row(row);
}

// The rank's events that arrived and are not reported, from its queue of ops.
void SharedReplay::observe_events(Rank rank, ObservedRow& row) {
  const ProcessIndex index = static_cast<ProcessIndex>(rank);
  const Process& process = processes_[index];
  const Node& node = nodes_[process.node];
  OpStore::Cursor cursor = process.cursor;
  if (store_.front(index, cursor) == nullptr || process.exited) return;
  bool in_hand = process.state != State::kNeedsEvents;
  std::uint64_t number = process.events_done;
  ObservedEvent event;
  bool first_op = true;
  for (const OpStore::Chunk* chunk = cursor.chunk; chunk != nullptr; chunk = chunk->next, cursor.next = 0) {
    for (std::uint32_t i = cursor.next; i < chunk->filled; ++i) {
      const Op& op = chunk->ops[i];
      if (first_op) {
        event = ObservedEvent{};
        event.rank = rank;
        event.number = ++number;
        first_op = false;
      }
      event.end_recv = event.end_recv || op.kind == OpKind::kRecv;
      if (in_hand) {
        switch (process.state) {
          case State::kWorking: {
            const auto mine = std::find_if(node.runnable.begin(), node.runnable.end(),
                                           [index](const Work& work) { return work.process == index; });
            assert(mine != node.runnable.end());
            event.state = ObservedEvent::State::kCurrent;
            event.remaining_process_s += mine->end - node.virtual_s;
            event.earliest_s = node.time_s + (mine->end - node.virtual_s) / rate(node);
            break;
          }
          case State::kTimed: {
            event.state = ObservedEvent::State::kCurrent;
            event.earliest_s = process.timed_until_s;
            if (process.waits_for != kNoMessage) event.wait_s = process.timed_until_s - node.time_s;
            break;
          }
          case State::kWaiting:
            event.state = ObservedEvent::State::kPending;
            event.wait_s = process.wait_since_s - node.time_s;
            break;
          default:  // goes on at this very time
            event.state = ObservedEvent::State::kCurrent;
            event.earliest_s = now_s_;
            break;
        }
        in_hand = false;
      } else {
        event.remaining_process_s += op.work_s;
      }
      if ((op.flags & kOpEndsEvent) != 0) {
        row.events.push_back(event);
        first_op = true;
      }
    }
  }
}

}  // namespace lbf
