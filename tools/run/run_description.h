// What lbf-run and its task prolog tell their relays of the job, from Slurm's variables where there is Slurm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace lbf::run {

// For programs that mpirun starts on this node. `job`: Slurm's, or one of lbf-run's own where there is no Slurm.
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

}  // namespace lbf::run
