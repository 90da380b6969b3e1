// Why Slurm ended a step before its tasks ended by themselves, by slurmctld (docs/plugin.md, "Which hook does what").
#pragma once

#include <cstdint>
#include <string>

namespace lbf::plugin {

// Whether the end of a task with STATUS, as waitpid() gives it, may have been Slurm's doing.
bool may_be_killed_by_slurm(int status);

// For people, to stand behind "killed by"; empty: it was not Slurm, or slurmctld does not say. Waits for the answer
// (MessageTimeout).
std::string ask_killer(std::uint32_t job, std::uint32_t step);

}  // namespace lbf::plugin
