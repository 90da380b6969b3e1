// lbf-report, as srun, sbatch and salloc run it: never longer than a given time (docs/plugin.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spank_plugin/plugin/config.h"

namespace lbf::plugin {

// The output of `lbf-report WORDS`, of 64 KiB at most; its own messages are thrown away. Nothing: it is not there, has
// failed, or was not finished in TIMEOUT_MS.
std::optional<std::string> output_of_report(const AdminConfig& admin, std::vector<std::string> words, long timeout_ms);

}  // namespace lbf::plugin
