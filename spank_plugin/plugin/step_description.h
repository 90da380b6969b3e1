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

struct StepDescription {
  std::string json;
  std::string node;  // this node's name
};

// Errors: kNotFound, an item without which the step cannot be named (job, step, nodes, tasks).
Result<StepDescription> describe_step(const SpankHandle& spank, const StepConfig& step);

}  // namespace lbf::plugin
