// lbf-advise --script: a batch script whose #SBATCH lines ask for the configuration that is advised.
//
// Only these lines are changed, and of them only what the advice decides: sbatch(1) reads them up to the first command.
// What its commands say themselves (srun -n 8) goes before them, so it is named.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace lbf::tools {

// What the script is to ask for.
struct ScriptAdvice {
  std::string flags;                 // advise_flags()
  Rank ranks = 0;                    // of the run
  std::uint32_t ranks_per_node = 1;  // at most
  std::uint32_t cores = 1;           // of the smallest node
  Seconds predicted_s = 0;
};

struct ChangedScript {
  std::string text;
  std::vector<std::string> changes;  // "job.sh:3: --nodes=8 becomes --nodes=4", in the order of the lines
  std::vector<std::string> notes;    // what was left as it is and may matter
};

// `name` of the script, for messages. Errors (kInvalidInput), with the line: no script of sbatch's; a heterogeneous
// job; another number of ranks than ran; options that Slurm and the advice would decide differently (--nodelist,
// --ntasks-per-socket and the like, more processors for each task than the nodes have); an advice that needs a host
// file.
Result<ChangedScript> change_script(std::string_view script, const std::string& name, const ScriptAdvice& advice);

}  // namespace lbf::tools
