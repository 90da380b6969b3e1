// SharedReplay as the papers show it: the rows of TSE Fig. 5 (observer.h).
#include <algorithm>

#include "predictor/engine/replay/shared_replay.h"

namespace lbf::engine {

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
  store_.for_each_ahead(index, cursor, [&](const Op& op) {
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
  });
}

}  // namespace lbf::engine
