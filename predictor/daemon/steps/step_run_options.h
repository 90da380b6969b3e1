// StepRunOptions: what lbfd decides about the replays of one step.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "db/records.h"
#include "predictor/daemon/bounds.h"
#include "predictor/daemon/steps/daemon_counts.h"
#include "predictor/daemon/steps/memory_accounts.h"
#include "predictor/daemon/steps/replay_budget.h"
#include "predictor/daemon/steps/replay_turn.h"
#include "predictor/daemon/steps/run_picture.h"
#include "predictor/daemon/steps/side_by_side.h"

namespace lbf::engine {
class TopologyFile;
}

namespace lbf::daemon {

struct StepRunOptions {
  // How long the replay waits for the relays of all nodes to register. Where each rank runs is known for sure
  // only then; after it, the rest is taken to be placed in blocks.
  std::chrono::milliseconds stream_start_timeout{5000};
  // Above it, streams that are ahead of another one are left on disk until the other one has caught up.
  std::uint64_t events_in_flight_limit = 20'000'000;
  // Which switches the cluster's nodes are on; nullptr: nobody said, all nodes are equally far apart.
  std::shared_ptr<const engine::TopologyFile> topology;
  // What the targets beside the configuration that ran may take while the step runs (docs/lbfd.md, "Budgets").
  ReplayBudget budget;
  std::size_t targets_per_pass = 8;      // of those that have passes of their own
  std::size_t threads = 1;               // that its passes may have: those targets are in so many groups at most
  std::shared_ptr<ReplayMemory> memory;  // of all steps; nullptr: nobody counts
  // Processor time of the calling thread; empty: the system's clock.
  std::function<Seconds()> cpu_clock;
  Seconds cpu_spent_before_s = 0;  // by replays of this step that were before this one
  // Not nullptr: a run for this picture, which replays no other target than the picture's and whose view says
  // nothing of predictions; it outlives the run.
  RunPicture* picture = nullptr;
  // Of a step that is replayed again: which of its targets were deferred when it ended.
  std::set<db::TargetName> deferred_before;
  // Calls per second of a rank that earlier runs of the program let expect of its procedures, by name.
  std::map<std::string, double> procedure_history;
  // Work of a rank in earlier runs of the program, in seconds, by ranks per memory domain.
  std::map<std::uint32_t, double> work_by_density;
  std::vector<std::string> notes{};  // the view's first
  Bounds bounds{};
  std::shared_ptr<MemoryAccounts> accounts{};  // of all steps; nullptr: only the step's own bounds count
  std::shared_ptr<DaemonCounts> counts{};      // nullptr: nobody counts
  std::function<bool()> lbfd_ends{};           // a turn that is under way ends then, and nothing is said of it
  // Of `threads`, for passes over the trace beside the turn. Empty: passes have their turns one after the other.
  LendThread lend_thread{};

  // StepRun sets these for its parts.
  ReplayLimits limits{};                                   // of each of its replays
  std::function<std::string(Bytes more)> why_no_memory{};  // why there is no room for so much more; '': there is
};

}  // namespace lbf::daemon
