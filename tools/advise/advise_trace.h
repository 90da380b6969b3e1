// A trace as lbf-advise looks at it: read again for every pass, once for its communication graph, then with
// some targets each time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "advisor/mapping/comm_graph.h"
#include "advisor/ranking/ranking.h"
#include "base/result.h"
#include "predictor/engine/metric/predictor.h"
#include "tools/whatif/trace_replay.h"
#include "tools/whatif/whatif_trace.h"

namespace lbf::tools {

class AdviseTrace {
 public:
  // `mpi_library`: whose algorithms the collectives follow; empty: the one that ran. `progress` gets the
  // share of the pass under way.
  AdviseTrace(std::unique_ptr<WhatIfTrace> trace, const std::string& mpi_library, std::uint32_t replay_threads,
              std::function<void(double)> progress);

  Rank ranks() const { return trace_->ranks(); }
  const std::vector<std::uint32_t>& node_of_rank() const { return trace_->node_of_rank(); }
  // The trace has the time inside calls, so that measured times are in it.
  bool has_measured_times() const { return call_s_ > 0; }
  // Other programs had the processors of some rank.
  bool has_other_programs() const { return others_s_ > 0; }
  const engine::MpiRules& mpi_rules() const { return mpi_.rules; }
  const std::string& mpi_note() const { return mpi_note_; }
  // As WhatIfTrace::notes, once a pass is over.
  std::vector<std::string> notes() const { return trace_->notes(); }
  const KnownMemory& memory() const { return trace_->memory(); }
  double other_ranks_percent() const { return trace_->other_ranks_percent(); }

  // Errors: those of the trace.
  Result<advisor::CommGraph> graph();

  // One pass over the trace.
  Result<ReplayedTrace> replay(const std::vector<engine::Target>& targets);

 private:
  std::unique_ptr<WhatIfTrace> trace_;
  engine::MpiSetup mpi_;
  std::string mpi_note_;
  std::uint32_t replay_threads_;
  std::function<void(double)> progress_;
  Seconds call_s_ = 0;
  Seconds others_s_ = 0;
};

}  // namespace lbf::tools
