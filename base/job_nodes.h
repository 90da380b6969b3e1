// Which of the node lists in a Slurm step's environment is the job's.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace lbf {

// `job`: what SLURM_JOB_NODELIST names, `step`: SLURM_NODELIST. The first, but for steps of `srun --external-launcher`
// (mpirun of Open MPI 6 starts its daemons so; seen with Slurm 26.05): there it has the step's nodes, and
// SLURM_NODELIST still the job's.
inline std::vector<std::string> nodes_of_job(std::vector<std::string> job, std::vector<std::string> step) {
  const bool holds_all = std::all_of(job.begin(), job.end(), [&](const std::string& node) {
    return std::find(step.begin(), step.end(), node) != step.end();
  });
  return holds_all && step.size() > job.size() ? step : job;
}

}  // namespace lbf
