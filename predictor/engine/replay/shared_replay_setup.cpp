// SharedReplay before and beside its run: the nodes of the target, and what a look from outside sees.
#include <algorithm>

#include "predictor/engine/replay/shared_replay.h"

namespace lbf::engine {

SharedReplay::SharedReplay(const Target& target, OpStore& store)
    : store_(store),
      target_(target),
      memory_(shares_memory(target) ? memory_domains(target) : nullptr),
      scales_work_(memory_ != nullptr && target.memory.ran != nullptr ? 1 : 0),
      groups_(target, memory_ != nullptr ? memory_->per_node : 1),
      localities_(target),
      costs_({&target}),
      nodes_(groups_.count()),
      work_queue_(groups_.count()),
      links_(target),
      counts_awake_(target.waiting == Waiting::kSpin) {
  for (std::size_t locality = 0; locality < localities_.count(); ++locality) {
    eager_limit_.push_back(localities_.path(locality).eager_limit_bytes);
    any_first_peer_ = any_first_peer_ || localities_.path(locality).first_peer_s > 0;
  }
  eager_up_to_ = *std::min_element(eager_limit_.begin(), eager_limit_.end());
  for (std::size_t group = 0; group < nodes_.size(); ++group) {
    Node& node = nodes_[group];
    node.speed = target.speed_of(groups_[group].node);
    node.cores = groups_[group].cores;
    node.undisturbed = memory_ != nullptr ? 0 : node.cores;
    node.spins = target.waiting == Waiting::kSpin;
  }
  if (target.waiting == Waiting::kYield) set_turns();
  add_processes();
  for (ProcessIndex index = 0; index < static_cast<ProcessIndex>(store.ranks()); ++index) {
    needs_events_.push_back(index);
  }
}

Bytes SharedReplay::memory_bytes() const {
  // Each process is in one heap at a time, of its node or of the timers.
  const Bytes of_process =
      sizeof(Process) + sizeof(Work) + sizeof(EventQueue::Entry) + sizeof(std::size_t) + sizeof(std::uint32_t);
  const Bytes of_node = sizeof(Node) + sizeof(SharingGroup) + 2 * sizeof(WinnerTree::Entry);
  return std::max<Bytes>(processes_.capacity(), store_.processes()) * of_process + nodes_.size() * of_node +
         (needs_events_.capacity() + starting_.capacity()) * sizeof(ProcessIndex) +
         flights_.bytes_of(store_.message_slots()) + links_.memory_bytes() + costs_.memory_bytes() +
         window_clocks_.memory_bytes();
}

void SharedReplay::set_turns() {
  const std::uint32_t first = target_.node_of_rank.front();
  const bool one_node =
      std::ranges::all_of(target_.node_of_rank, [first](std::uint32_t node) { return node == first; });
  // Who talks to other nodes polls their connections each time, whatever it waits for.
  const PathCost& path = target_.network->path(one_node ? 0 : kUnknownHops);
  for (std::size_t group = 0; group < nodes_.size(); ++group) {
    Node& node = nodes_[group];
    if (static_cast<double>(groups_[group].ranks) <= node.cores) continue;
    node.turn_s = path.turn_s / node.cores;
    node.switch_s = path.switch_s / node.cores;
    node.takes_turns = path.turn_s > 0 || path.switch_s > 0;
    node.yields = true;
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
      status.state = process.for_post ? ProcessStatus::State::kWaitingForReceive : ProcessStatus::State::kWaiting;
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

}  // namespace lbf::engine
