// What a relay reads in, and makes of, a step's description (docs/formats/http-v1.md, "Step description").
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "spank_plugin/relay/relay.h"
#include "spank_plugin/relay/run_finder.h"

namespace lbf::relay {

// A description from the plugin or lbf-run, for the relay alone: "step" is missing where the step itself is no
// program (a batch script, mpirun's daemons); the member "mpirun" has "nodes", "node_index" and "cpus_on_node"
// of the whole job, for the programs that mpirun starts.
struct RelayDescription {
  std::string own;         // of the step's own stream; empty: it has none
  bool on_demand = false;  // member "on_demand": no stream unless a process of the step itself calls MPI
  nlohmann::json runs;  // null: programs that mpirun starts are taken for the step's
};
// Errors: kInvalidInput.
Result<RelayDescription> parse_relay_description(const std::string& text);

// The description of one run's stream from this node.
std::string describe_run(const nlohmann::json& runs, const FoundRun& run);

}  // namespace lbf::relay
