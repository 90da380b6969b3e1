// sbatch and salloc (allocator context): checks the options early, passes them on to the sruns inside, and ends
// salloc with a line for each program of mpirun.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "spank_plugin/plugin/job_options.h"
#include "spank_plugin/plugin/plugin.h"
#include "spank_plugin/plugin/report_program.h"

namespace lbf::plugin::allocator {
namespace {

std::string current_job() {
  const char* const job = ::getenv("SLURM_JOB_ID");
  return job != nullptr ? job : "";
}

}  // namespace

void init_post_opt() {
  state().outer_job = current_job();
  const Variables variables = own_variables();
  if (!std::exchange(state().outer_left, true)) {
    take_back_options(variables);
    if (std::string_view(program_invocation_short_name) == "sbatch") leave_lbf_run(variables);
  }
  decide(request_from_own_environment(), true);
  refuse_unknown_networks();
  // salloc's command inherits salloc's environment; sbatch exports its own to the batch script (the plugin in
  // the batch step does it again, for --export=NONE).
  pass_options(state().options, variables);
}

// salloc has its job in its own environment by now, sbatch has not. Each srun inside has had its line.
void exit() {
  constexpr long kTimeoutMs = 3000;
  const PluginState& plugin = state();
  const std::string job = current_job();
  if (!plugin.admin || !plugin.step || !plugin.step->predict || job.empty() || job == plugin.outer_job) return;
  const std::string lines =
      output_of_report(*plugin.admin, {"--brief", "--wait=0.5", "-j", job}, kTimeoutMs).value_or("");
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    const std::string line = lines.substr(begin, end - begin);
    constexpr std::string_view kPrefix = "lbf: ";
    if (line.starts_with(kPrefix) && line.find(".mpirun-") != std::string::npos) say(line.substr(kPrefix.size()));
    begin = end + 1;
  }
}

}  // namespace lbf::plugin::allocator
