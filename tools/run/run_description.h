// What lbf-run and its task prolog tell their relays of the job, from Slurm's variables where there is Slurm.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cost/limits.h"

namespace lbf::tools {

// What the capture may cost, percent of the programs' processor time, where nobody says anything else.
inline constexpr double kDefaultOverheadPercent = 2;
// "0.5", "0.5%". Errors: kInvalidInput, not above 0 and at most 100.
Result<double> parse_overhead(std::string_view text);
// LBF_OVERHEAD, else the default; LBF_LIMITS may be lower.
double overhead_limit_percent();
// What lbf-run keeps to, in the place of a site: overhead, and the relay's default memory; and the lower ones
// of LBF_LIMITS
// (`cost::read_limits`), of which nothing counts where something in it is wrong.
cost::Limits limits_in_environment();
// Lines for the user, of LBF_LIMITS: what is above lbf-run's limits. Errors (kInvalidInput): the item that is
// wrong.
Result<std::vector<std::string>> check_limits();

// For programs that mpirun starts on this node. `job`: Slurm's, or one of lbf-run's own where there is no
// Slurm.
std::string describe_job(std::uint32_t job);
// For a task of an srun, in its TaskProlog. Errors: kNotFound, the variable that is missing.
struct TaskStep {
  std::string description;
  std::string name;  // JOB-RESTART-STEP, for the ring directory
  std::size_t local_tasks = 1;
};
Result<TaskStep> describe_task_step();

// The number in the environment; 0 when it is not there or none.
std::uint32_t number_in_environment(const char* name);

}  // namespace lbf::tools
