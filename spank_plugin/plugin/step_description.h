// The step's description for lbfd (docs/formats/http-v1.md), from what SPANK and Slurm's environment tell.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "spank_plugin/plugin/config.h"
#include "spank_plugin/plugin/spank_handle.h"

namespace lbf::plugin {

// Set by the batch step to the job's id where SLURM_ARRAY_* in its environment are another job's
// (docs/formats/environment.md).
inline constexpr const char* kNotInArrayVariable = "LBF_NOT_IN_ARRAY";

// Whether the step's tasks are daemons with which mpirun starts its ranks on other nodes than its own.
bool is_launcher(const std::vector<std::string>& command);

enum class StepKind {
  kProgram,   // its tasks are the ranks
  kLauncher,  // a batch script, an interactive step, or mpirun's daemons: no program of its own
};

// Set by the batch step to "JOB:RESTARTS": in a step of srun's, SPANK's own item is 0 and Slurm's variable may be
// that of the job from which this one was submitted (docs/formats/environment.md).
inline constexpr const char* kRestartVariable = "LBF_RESTART_COUNT";

struct DescribedStep {
  std::string json;  // for the relay: docs/relay.md, "Programs that mpirun starts"
  std::string node;  // this node's name
};

// Errors: kNotFound, an item without which the step cannot be named (job, step, nodes, tasks).
Result<DescribedStep> describe_step(const SpankHandle& spank, const StepConfig& step, StepKind kind);

}  // namespace lbf::plugin
