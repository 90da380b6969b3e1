#include "predictor/replay/dedicated_replay.h"

#include <algorithm>

namespace lbf {
namespace {

constexpr ProcessIndex kNobody = ~ProcessIndex{0};

std::vector<double> inverse_speeds(const std::vector<const Target*>& targets) {
  std::vector<double> inverse;
  for (const Target* target : targets) inverse.push_back(1.0 / target->speed);
  return inverse;
}

}  // namespace

bool is_dedicated(const Target& target) {
  std::vector<std::uint32_t> ranks_on_node(target.nodes, 0);
  return std::all_of(target.node_of_rank.begin(), target.node_of_rank.end(),
                     [&](std::uint32_t node) { return ++ranks_on_node[node] <= target.cores_per_node; });
}

DedicatedReplay::DedicatedReplay(const std::vector<const Target*>& targets, OpStore& store)
    : store_(store),
      count_(targets.size()),
      inverse_speed_(inverse_speeds(targets)),
      costs_(targets, inverse_speed_) {
  const std::size_t ranks = static_cast<std::size_t>(store.ranks());
  node_.resize(ranks * count_);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t k = 0; k < count_; ++k) node_[rank * count_ + k] = targets[k]->node_of_rank[rank];
  }
  add_processes();
}

void DedicatedReplay::add_processes() {
  processes_.resize(store_.processes());
  clock_s_.resize(processes_.size() * count_, 0.0);
}

void DedicatedReplay::advance() {
  add_processes();
  for (ProcessIndex index : store_.touched()) {
    if (processes_[index].waits_for == kNoMessage) ready_.push_back(index);
  }
  while (!ready_.empty()) {
    const ProcessIndex index = ready_.back();
    ready_.pop_back();
    run(index);
  }
}

void DedicatedReplay::run(ProcessIndex index) {
  if (arrival_s_.size() < store_.message_slots() * count_) {
    const std::size_t slots = std::max(store_.message_slots(), waiter_.size() * 2);
    arrival_s_.resize(slots * count_, kNeverS);
    waiter_.resize(slots, kNobody);
  }
  Process& process = processes_[index];
  Seconds* clock = &clock_s_[index * count_];
  process.waits_for = kNoMessage;
  while (const Op* op = store_.front(index, process.cursor)) {
    if ((op->kind == OpKind::kRecv || op->kind == OpKind::kPeek) &&
        arrival_s_[op->message * count_] == kNeverS) {
      waiter_[op->message] = index;
      process.waits_for = op->message;
      return;
    }
    if (op->work_s != 0) {
      for (std::size_t k = 0; k < count_; ++k) clock[k] += op->work_s * inverse_speed_[k];
    }
    switch (op->kind) {
      case OpKind::kCompute:
      case OpKind::kStartRecv:
        break;
      case OpKind::kBlocked:
        for (std::size_t k = 0; k < count_; ++k) clock[k] += op->call_s;
        break;
      case OpKind::kSend:
        execute_send(index, *op);
        break;
      case OpKind::kRecv:
        execute_recv(index, *op, true);
        break;
      case OpKind::kPeek:
        execute_recv(index, *op, false);
        break;
      case OpKind::kExit:
        process.exited = true;
        break;
    }
    process.measured_s += op->work_s + op->call_s;
    process.events_done += (op->flags & kOpEndsEvent) != 0 ? 1 : 0;
    OpStore::pop(process.cursor);
  }
}

void DedicatedReplay::execute_send(ProcessIndex index, const Op& op) {
  const Message& message = store_.message(op.message);
  Seconds* clock = &clock_s_[index * count_];
  Seconds* arrival = &arrival_s_[op.message * count_];
  const bool costs_time = (op.flags & kOpInternal) == 0 && (costs_.has_flight() || costs_.has_cpu());
  if (costs_time) {
    const Seconds* remote = costs_.row(message.bytes);
    const Seconds* local = remote + 3 * count_;
    const std::uint32_t* from = &node_[static_cast<std::size_t>(message.src) * count_];
    const std::uint32_t* to = &node_[static_cast<std::size_t>(message.dst) * count_];
    for (std::size_t k = 0; k < count_; ++k) {
      const Seconds* path = from[k] == to[k] ? local : remote;
      clock[k] += path[count_ + k];
      arrival[k] = clock[k] + path[k];
    }
  } else {
    std::copy_n(clock, count_, arrival);
  }
  if (message.discarded) {
    arrival[0] = kNeverS;  // nobody will receive it
  } else if (waiter_[op.message] != kNobody) {
    ready_.push_back(waiter_[op.message]);
    waiter_[op.message] = kNobody;
  }
  store_.sent(op.message);
}

void DedicatedReplay::execute_recv(ProcessIndex index, const Op& op, bool take) {
  Seconds* clock = &clock_s_[index * count_];
  Seconds* arrival = &arrival_s_[op.message * count_];
  for (std::size_t k = 0; k < count_; ++k) clock[k] = std::max(clock[k], arrival[k]);
  if (!take) return;
  if (costs_.has_recv_cpu() && (op.flags & kOpInternal) == 0) {
    const Message& message = store_.message(op.message);
    const Seconds* remote = costs_.row(message.bytes) + 2 * count_;
    const Seconds* local = remote + 3 * count_;
    const std::uint32_t* from = &node_[static_cast<std::size_t>(message.src) * count_];
    const std::uint32_t* to = &node_[static_cast<std::size_t>(message.dst) * count_];
    for (std::size_t k = 0; k < count_; ++k) clock[k] += (from[k] == to[k] ? local : remote)[k];
  }
  arrival[0] = kNeverS;  // the slot is clean for its next message
  store_.received(op.message);
}

ProcessStatus DedicatedReplay::status(ProcessIndex index) const {
  ProcessStatus status;
  if (index >= processes_.size()) return status;
  const Process& process = processes_[index];
  status.events_done = process.events_done;
  if (process.exited) {
    status.state = ProcessStatus::State::kDone;
  } else if (process.waits_for != kNoMessage) {
    status.state = ProcessStatus::State::kWaiting;
    status.message = process.waits_for;
  } else if (store_.closed(index) || store_.is_actor(index)) {
    status.state = ProcessStatus::State::kDone;
  }
  return status;
}

}  // namespace lbf
