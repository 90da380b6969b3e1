// What every context does: plugstack.conf's arguments, the options, and the decision for the step.
#include <cstdlib>

#include "base/quoted.h"
#include "spank_plugin/plugin/boundary.h"
#include "spank_plugin/plugin/plugin.h"
#include "spank_plugin/plugin/report_program.h"

namespace lbf::plugin {
namespace {

enum OptionValue : int { kPredict = 1, kNetworks = 2, kOverhead = 3, kProcedures = 4, kLimits = 5 };

constexpr int kRequiredArgument = 1;  // as in struct option, where Slurm puts it
constexpr int kOptionalArgument = 2;

// Values are only kept here and checked in decide(): a callback that fails would end the user's srun.
extern "C" int on_option(int value, const char* argument, int /*remote*/) {
  return guarded("option", [&] {
    std::string text = argument != nullptr ? argument : "";
    UserRequest& options = state().options;
    if (value == kPredict) options.predict = std::move(text);
    if (value == kNetworks) options.networks = std::move(text);
    if (value == kOverhead) options.overhead = std::move(text);
    if (value == kProcedures) options.procedures = std::move(text);
    if (value == kLimits) options.limits = std::move(text);
  });
}

struct Option {
  const char* name;
  const char* argument;
  const char* usage;
  int has_argument;
  OptionValue value;
};
constexpr Option kOptions[] = {
    {"lbf-predict", "on|off", "predict this job's run time on other node counts and networks", kOptionalArgument,
     kPredict},
    {"lbf-networks", "A,B", "predict for these networks only", kRequiredArgument, kNetworks},
    {"lbf-overhead", "PCT", "keep the capture's cost below PCT percent of the processor time", kRequiredArgument,
     kOverhead},
    {"lbf-procedures", "F,G|auto", "measure these procedures: what if they ran in the other process", kRequiredArgument,
     kProcedures},
    {"lbf-limits", "NAME=N,...",
     "lower this site's limits for lbf: overhead_limit and relay_cpu_limit (percent), relay_memory_limit_mb, "
     "network_limit_kBps, "
     "spool_limit_mb, step_cpu_percent, step_trace_limit_mb",
     kRequiredArgument, kLimits},
};

}  // namespace

PluginState& state() {
  static PluginState instance;
  return instance;
}

void init(SpankHandle spank, std::span<char* const> arguments) {
  state() = PluginState();
  auto admin = parse_admin_config(arguments);
  if (admin) {
    state().admin = std::move(*admin);
  } else {
    state().admin_error = admin.error().message;
    // In srun, sbatch and salloc this would be the user's screen: who asks for a prediction is told by
    // decide().
    if (spank_context() == S_CTX_REMOTE || spank_context() == S_CTX_SLURMD) {
      log_for_admin(state().admin_error + "; the plugin is off");
    }
  }
  // Also when the plugin is off: a job script with --lbf-predict must still start.
  const spank_context_t context = spank_context();
  if (context != S_CTX_LOCAL && context != S_CTX_REMOTE && context != S_CTX_ALLOCATOR) return;
  for (const Option& option : kOptions) {
    // Slurm copies the strings.
    std::string name = option.name;
    std::string argument = option.argument;
    std::string usage = option.usage;
    spank_option slurm_option{name.data(),         argument.data(), usage.data(),
                              option.has_argument, option.value,    &on_option};
    if (spank_option_register(spank.get(), &slurm_option) != ESPANK_SUCCESS) {
      log_for_admin("option --" + name + " could not be registered");
    }
  }
}

UserRequest request_from_own_environment() {
  const auto variable = [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
  return {variable("LBF_PREDICT"), variable("LBF_NETWORKS"), variable("LBF_OVERHEAD"), variable("LBF_PROCEDURES"),
          variable("LBF_LIMITS")};
}

const StepConfig& decide(const UserRequest& environment, bool tell) {
  PluginState& plugin = state();
  StepConfig step = resolve(plugin.admin.value_or(default_config()), plugin.options, environment);
  if (!plugin.admin) {
    const bool wanted = step.predict;
    step = StepConfig();
    if (wanted) step.messages.push_back(plugin.admin_error + "; the job runs without prediction");
  }
  plugin.step = std::move(step);
  if (tell) {
    for (const std::string& message : plugin.step->messages) say(message);
  }
  return *plugin.step;
}

void refuse_unknown_networks() {
  constexpr long kTimeoutMs = 1000;
  PluginState& plugin = state();
  const UserRequest environment = request_from_own_environment();
  const auto& option = plugin.options.networks;
  const auto& asked = option ? option : environment.networks;
  if (!plugin.admin || !plugin.step || !plugin.step->predict || !asked || asked->empty()) return;
  const auto known = output_of_report(*plugin.admin, {"--networks"}, kTimeoutMs);
  if (!known || known->empty()) return;
  const std::string unknown = unknown_networks(plugin.step->networks, *known);
  if (unknown.empty()) return;
  say(std::string(option ? "--lbf-networks" : "LBF_NETWORKS") + "=" + as_ascii(*asked) + ": " + unknown +
      "; the job runs without prediction");
  plugin.step->predict = false;
}

}  // namespace lbf::plugin
