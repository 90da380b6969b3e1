// The options of sbatch and salloc on their way to the sruns of the job, in its environment
// (docs/formats/environment.md), and no further: a job that is submitted from inside it inherits the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "spank_plugin/plugin/config.h"

namespace lbf::plugin {

// This process's variables, or those of a job's tasks.
struct Variables {
  std::function<std::optional<std::string>(const std::string& name)> get;
  std::function<void(const std::string& name, const std::string& value)> set;
  std::function<void(const std::string& name)> unset;
};
Variables own_variables();

// LBF_PREDICT and the others, as far as OPTIONS have them; what each is now, and what the user had, in variables beside
// it.
void pass_options(const UserRequest& options, const Variables& variables);
// What an outer job's options set and nobody has changed since becomes what the user had.
void take_back_options(const Variables& variables);
// Everything that lbf-run set for its command: a batch job runs when lbf-run may be gone.
void leave_lbf_run(const Variables& variables);

}  // namespace lbf::plugin
