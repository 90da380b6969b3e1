// When the job was submitted and in which partition it runs, by slurmctld: the time tells two jobs of one number apart
// (docs/plugin.md, "A job number that comes again"), srun knows a list of partitions only as it was asked for. One
// request by each srun, unless the batch step has asked before; its nodes hear it from srun.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace lbf::plugin {

// "JOB:SECONDS:PARTITION" (docs/formats/environment.md). Slurm's prefix: `srun --export=NONE` passes nothing else on.
inline constexpr const char* kSubmitVariable = "SLURM_LBF_SUBMIT";

struct JobSubmit {
  std::uint32_t job = 0;       // of a heterogeneous job the first component's number
  std::uint64_t submit_s = 0;  // since the epoch; 0: not known
  std::string partition;       // in which JOB runs; empty: not known

  std::string text() const;  // for kSubmitVariable
};

using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// The number that stands for the whole job: of a heterogeneous job the first component's.
std::uint32_t whole_job(const Environment& variable, std::uint32_t job);

// What kSubmitVariable says of JOB; nothing: it is about another job, from which this one was submitted, or not there.
std::optional<JobSubmit> known_submit(const Environment& variable, std::uint32_t job);

// Asks slurmctld, and waits for the answer as srun itself does (MessageTimeout).
JobSubmit ask_submit(std::uint32_t job);

}  // namespace lbf::plugin
