// What the SPANK plugin and lbf-run tell a relay of its step, and the descriptions that the relay makes of it for lbfd
// (docs/relay.md, "Programs that mpirun starts").
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/step_description.h"

namespace lbf::protocol {

// Of the whole job, for the programs that mpirun starts.
struct NodesOfJob {
  std::vector<std::string> nodes;
  std::uint32_t node_index = 0;
  std::uint32_t cpus_on_node = 0;  // 0: not said
};

struct RelayDescription {
  // Without `step` where the step itself is no program: a batch script, mpirun's daemons.
  StepDescription step;
  std::optional<NodesOfJob> mpirun;
  bool on_demand = false;  // no stream unless a process of the step itself calls MPI
};
std::string encode(const RelayDescription& description);

// The same as the relay uses it. Keys that the relay does not know reach lbfd.
struct RelayStreams {
  std::string own;  // description of the step's own stream; empty: it has none
  bool on_demand = false;
  nlohmann::json runs;  // what the programs that mpirun starts have in common; null: they are taken for the step's
};
// Errors: kInvalidInput.
Result<RelayStreams> decode_relay_description(std::string_view text);

// The description of one run's stream: `runs`, and of RUN its step, run, tasks, task_ids, start_realtime_ns and
// command.
std::string describe_run(const nlohmann::json& runs, const StepDescription& run);

}  // namespace lbf::protocol
