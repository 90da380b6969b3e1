// What the administrator (plugstack.conf) and the user (options, environment) asked for, checked.
//
// Implements docs/plugin.md ("plugstack.conf", "Options") and docs/formats/environment.md. Pure functions: no
// SPANK, no logging, so that every wrong value can be tested by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "cost/limits.h"

namespace lbf::plugin {

// Overhead 2 percent, 32 MiB in a relay's memory, 1024 MiB in the spool; no others.
cost::Limits default_limits();

struct AdminConfig {
  cost::Limits limits = default_limits();  // of the nodes; lbfd has its own
  std::string lbfd = "unix:/run/lbf/lbfd.sock";
  std::vector<std::string> networks;  // empty: all that lbfd knows
  std::string spool_dir = "/var/spool/lbf";
  bool default_on = false;
  bool job_comment = false;  // set_job_comment() at the end of an srun inside a job
  std::string relay;         // paths of this installation, see default_config()
  std::string capture;
  std::string report;
  std::string ring_dir = "/dev/shm";
  std::uint64_t ring_bytes = std::uint64_t{8} << 20;
  Seconds relay_wait_s = 10;

  // Percent of the processor time of the program on a node. 0: the capture is off.
  double overhead_limit_percent() const { return limits[cost::Limit::kOverhead].value_or(0); }
};

// With the paths of the build's install prefix.
AdminConfig default_config();

// From the arguments behind the plugin's path in plugstack.conf. Errors: kInvalidInput, naming the argument.
Result<AdminConfig> parse_admin_config(std::span<char* const> arguments);

// What a user gave, by option or by environment variable; each may be missing.
struct UserRequest {
  std::optional<std::string> predict;
  std::optional<std::string> networks;
  std::optional<std::string> overhead;
  std::optional<std::string> procedures{};
  std::optional<std::string> limits{};  // cost::read_limits()
};

// What this step does.
struct StepConfig {
  bool predict = false;
  std::vector<std::string> networks;
  // The administrator's, where the user asked for less his. Of lbfd's limits what the user asked for.
  cost::Limits limits;
  std::string procedures;  // as the user wrote them, or "auto"; empty: none are measured
  // One line each, without the "lbf: " in front. After a wrong value `predict` is false.
  std::vector<std::string> messages;

  double overhead_limit_percent() const { return limits[cost::Limit::kOverhead].value_or(0); }
};

// OPTIONS go before ENVIRONMENT, the environment before the administrator's default.
StepConfig resolve(const AdminConfig& admin, const UserRequest& options, const UserRequest& environment);

// "lbfd has no network nonet, but lan and zero", where not all NAMES are lines of KNOWN; empty: they are.
std::string unknown_networks(const std::vector<std::string>& names, std::string_view known);

// "2(x3),1" (SLURM_STEP_TASKS_PER_NODE) -> 2,2,2,1. Empty when the text is something else or longer than
// MAX_NODES.
std::vector<std::uint32_t> parse_tasks_per_node(std::string_view text, std::size_t max_nodes);

// LD_PRELOAD with LIBRARY first, then what OLD had besides it.
std::string preload_with(const std::string& library, std::string_view old);
// OLD without LIBRARY.
std::string preload_without(const std::string& library, std::string_view old);

}  // namespace lbf::plugin
