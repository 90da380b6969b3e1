// See job_options.h.
#include "spank_plugin/plugin/job_options.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace lbf::plugin {
namespace {

constexpr const char* kCaptureLibrary = "/liblbf_capture.so";

struct Passed {
  const char* name;  // LBF_NAME, LBF_OPTION_NAME, LBF_USER_NAME
  std::optional<std::string> UserRequest::*option;
  const char* if_empty;
};
constexpr Passed kPassed[] = {{"PREDICT", &UserRequest::predict, "on"},
                              {"NETWORKS", &UserRequest::networks, ""},
                              {"OVERHEAD", &UserRequest::overhead, ""},
                              {"PROCEDURES", &UserRequest::procedures, ""},
                              {"LIMITS", &UserRequest::limits, ""}};

std::string variable_of(const Passed& passed) {
  return std::string("LBF_") + passed.name;
}
std::string option_of(const Passed& passed) {
  return std::string("LBF_OPTION_") + passed.name;
}
std::string user_of(const Passed& passed) {
  return std::string("LBF_USER_") + passed.name;
}

void set_or_unset(const Variables& variables, const std::string& name, const std::optional<std::string>& value) {
  value ? variables.set(name, *value) : variables.unset(name);
}

std::string without_capture(std::string_view preload) {
  std::string kept;
  while (!preload.empty()) {
    const std::string_view entry = preload.substr(0, preload.find_first_of(": "));
    preload.remove_prefix(std::min(entry.size() + 1, preload.size()));
    if (entry.empty() || entry.ends_with(kCaptureLibrary)) continue;
    kept += (kept.empty() ? "" : ":") + std::string(entry);
  }
  return kept;
}

}  // namespace

Variables own_variables() {
  return {[](const std::string& name) -> std::optional<std::string> {
            const char* const value = std::getenv(name.c_str());
            return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
          },
          [](const std::string& name, const std::string& value) { ::setenv(name.c_str(), value.c_str(), 1); },
          [](const std::string& name) { ::unsetenv(name.c_str()); }};
}

void pass_options(const UserRequest& options, const Variables& variables) {
  for (const Passed& passed : kPassed) {
    const std::optional<std::string>& option = options.*passed.option;
    if (!option) continue;
    const std::string value = option->empty() || *option == "(null)" ? passed.if_empty : *option;
    if (!variables.get(option_of(passed))) {
      if (const auto users = variables.get(variable_of(passed))) variables.set(user_of(passed), *users);
    }
    variables.set(variable_of(passed), value);
    variables.set(option_of(passed), value);
  }
}

void take_back_options(const Variables& variables) {
  for (const Passed& passed : kPassed) {
    const auto was_set = variables.get(option_of(passed));
    if (!was_set) continue;
    if (variables.get(variable_of(passed)) == was_set)
      set_or_unset(variables, variable_of(passed), variables.get(user_of(passed)));
    variables.unset(option_of(passed));
    variables.unset(user_of(passed));
  }
}

void leave_lbf_run(const Variables& variables) {
  if (!variables.get("LBF_RUN_RING_DIR")) return;
  for (const auto& [slurms, users] :
       {std::pair{"LBF_PREDICT", "LBF_RUN_USER_PREDICT"}, std::pair{"SLURM_TASK_PROLOG", "LBF_RUN_USER_TASK_PROLOG"},
        std::pair{"SLURM_TASK_EPILOG", "LBF_RUN_USER_TASK_EPILOG"}}) {
    set_or_unset(variables, slurms, variables.get(users));
    variables.unset(users);
  }
  if (const auto preload = variables.get("LD_PRELOAD")) {
    const std::string kept = without_capture(*preload);
    set_or_unset(variables, "LD_PRELOAD", kept.empty() ? std::nullopt : std::optional<std::string>(kept));
  }
  for (const char* name : {"LBF_CAPTURE_DIR", "LBF_CAPTURE_GRANT", "LBF_CAPTURE_RING_BYTES", "LBF_CAPTURE_PROCEDURES",
                           "LBF_CAPTURE_PROCEDURES_LIMIT", "LBF_SERVER", "LBF_TOKEN", "LBF_RUN_PORT", "LBF_RUN_COMMAND",
                           "LBF_RUN_RING_BYTES", "LBF_RUN_RING_DIR"})
    variables.unset(name);
}

}  // namespace lbf::plugin
