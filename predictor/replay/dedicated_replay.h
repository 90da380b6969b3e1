// DedicatedReplay: all targets on which every process has a processor of its own, in one pass.
//
// There the predicted time is the longest path through the Program Activity Graph with the target's costs
// (TSE Sec. 2, "Critical Path"): a max-plus recurrence that needs no event queue. An op's clocks on all K
// targets lie side by side; which op can run next does not depend on the target, only on which sends were
// executed, so one walk over the ops serves all. A process runs until it waits for a message that was not
// sent yet.
#pragma once

#include <vector>

#include "predictor/replay/cost_table.h"
#include "predictor/replay/replay.h"

namespace lbf {

class DedicatedReplay final : public Replay {
 public:
  // REQUIRES: is_dedicated() for every target; `targets` not empty; `store` outlives the replay.
  DedicatedReplay(const std::vector<const Target*>& targets, OpStore& store);

  void advance() override;
  Seconds finish_s(std::size_t k, Rank rank) const override {
    return clock_s_[static_cast<std::size_t>(rank) * count_ + k];
  }
  Seconds measured_s(Rank rank) const override {
    return processes_[static_cast<std::size_t>(rank)].measured_s;
  }
  bool exited(Rank rank) const override { return processes_[static_cast<std::size_t>(rank)].exited; }
  ProcessStatus status(ProcessIndex process) const override;

 private:
  struct Process {
    OpStore::Cursor cursor;
    Seconds measured_s = 0;
    std::uint64_t events_done = 0;
    MessageIndex waits_for = kNoMessage;
    bool exited = false;
  };

  void add_processes();
  void run(ProcessIndex index);
  void execute_send(ProcessIndex index, const Op& op);
  void execute_recv(ProcessIndex index, const Op& op, bool take);

  OpStore& store_;
  std::size_t count_;                   // K
  std::vector<Seconds> inverse_speed_;  // [K]
  std::vector<std::uint32_t> node_;     // [rank][K]
  CostTable costs_;
  std::vector<Seconds> clock_s_;      // [process][K]
  std::vector<Seconds> arrival_s_;    // [message slot][K]; [0] = kNeverS: not sent
  std::vector<ProcessIndex> waiter_;  // [message slot]
  std::vector<Process> processes_;
  std::vector<ProcessIndex> ready_;
};

}  // namespace lbf
