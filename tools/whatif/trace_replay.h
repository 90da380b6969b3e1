// A trace replayed on targets, on several processors where that pays: targets in groups, each with a reader of the
// trace, a matcher and a thread of its own. Nothing is shared between them, so each target has the same bits as alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "predictor/daemon/steps/step_cost.h"
#include "predictor/engine/metric/predictor.h"
#include "tools/whatif/whatif_trace.h"

namespace CLI {
class App;
}

namespace lbf::tools {

struct ReplayedTrace {
  std::vector<engine::Prediction> predictions;  // in the order of the targets
  engine::PredictorStats stats;
  std::string why_partial;                // empty: the trace is whole
  std::vector<daemon::StreamCost> costs;  // of the capture
};

// Processors that this process may use, at most 8: lbf-whatif and lbf-advise run on login nodes.
std::uint32_t default_replay_threads();

// --replay-threads of lbf-whatif and lbf-advise.
void add_replay_threads_option(CLI::App& command, std::uint32_t& threads);

// `progress`: of the first group, from the calling thread. Errors: those of the trace, and of Predictor::make.
Result<ReplayedTrace> replay_targets(WhatIfTrace& trace, const std::vector<engine::Target>& targets,
                                     const engine::MpiSetup& mpi, std::uint32_t threads,
                                     const std::function<void(double)>& progress);

// The end of all of a trace's events: what the predictor says. REQUIRES: `trace` was read to its end.
ReplayedTrace finish_replay(const WhatIfTrace& trace, engine::Predictor& predictor);

}  // namespace lbf::tools
