// sbatch and salloc (allocator context): checks the options early, and passes them on to the sruns inside.
#include <cerrno>
#include <string_view>
#include <utility>

#include "spank_plugin/plugin/job_options.h"
#include "spank_plugin/plugin/plugin.h"

namespace lbf::plugin::allocator {

void init_post_opt() {
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

}  // namespace lbf::plugin::allocator
