// sbatch and salloc (allocator context): checks the options early, and passes them on to the sruns inside.
#include <cstdlib>

#include "spank_plugin/plugin/plugin.h"

namespace lbf::plugin::allocator {

void init_post_opt() {
  decide(request_from_own_environment(), true);
  refuse_unknown_networks();
  // salloc's command inherits salloc's environment; sbatch exports its own to the batch script (the plugin in
  // the batch step does it again, for --export=NONE).
  const UserRequest& options = state().options;
  const auto pass = [](const char* name, const std::optional<std::string>& value, const char* if_empty) {
    if (value) ::setenv(name, value->empty() || *value == "(null)" ? if_empty : value->c_str(), 1);
  };
  pass("LBF_PREDICT", options.predict, "on");
  pass("LBF_NETWORKS", options.networks, "");
  pass("LBF_OVERHEAD", options.overhead, "");
  pass("LBF_PROCEDURES", options.procedures, "");
  pass("LBF_LIMITS", options.limits, "");
}

}  // namespace lbf::plugin::allocator
