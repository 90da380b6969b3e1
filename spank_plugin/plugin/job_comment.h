// The job's own record (squeue, scontrol, sacct): srun's last line as the job's comment, where plugstack.conf has
// job_comment=on.
//
// Slurm lets a job's user change the comment while the job runs, and nobody once it is over (22.05 to 26.05).
#pragma once

#include <cstdint>
#include <string>

namespace lbf::plugin {

// LINE as the comment of JOB, as the caller's own user; a comment that is not lbf's stays. Two requests to slurmctld.
// Returns why it could not be set, in one line; empty: it is set, or the job has another one.
std::string set_job_comment(std::uint32_t job, const std::string& line);

}  // namespace lbf::plugin
