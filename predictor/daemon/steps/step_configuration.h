// StepConfiguration: where a step's ranks run, and the targets that lbfd predicts of it.
//
// Place in the event's way: step description, streams, network catalog, topology -> *StepConfiguration* -> replay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "predictor/daemon/intake/step_trace.h"
#include "predictor/daemon/network_catalog.h"
#include "predictor/daemon/steps/step_remarks.h"
#include "predictor/daemon/steps/step_run_options.h"
#include "predictor/engine/replay/memory_sharing.h"
#include "predictor/engine/replay/target.h"

namespace lbf::daemon {

struct StepConfiguration {
  engine::Target ran;
  std::uint32_t ranks_per_domain = 0;   // of the memory domains of ran's network; 0: it has none
  engine::KnownDemand demand;           // of memory
  std::vector<std::uint32_t> nodes;     // ran's nodes: their indices among the description's nodes, ascending
  std::vector<engine::Target> targets;  // ranked; the configuration that ran first
};

// From what is registered now. REMARKS get what is assumed, and what contradicts itself.
StepConfiguration configuration_of(const StepTrace& trace, const NetworkCatalog& networks,
                                   const StepRunOptions& options, StepRemarks& remarks);

// The placement's name where it has one: "block", "cyclic", "plane=K", else "map=N0,N1,...".
std::string placement_name(const std::vector<std::uint32_t>& node_of_rank, std::uint32_t nodes);

}  // namespace lbf::daemon
