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

namespace lbf::plugin {

struct AdminConfig {
  // Percent of the processor time of the program on a node. 0: the capture is off.
  double overhead_limit_percent = 2.0;
  // What the relay may take (docs/relay.md, "Limits"); 0: no limit of its own.
  double relay_cpu_limit_percent = 0;  // of the same, as a part of overhead_limit_percent
  std::uint64_t relay_memory_limit_mb = 32;
  double network_limit_kBps = 0;
  std::string lbfd = "unix:/run/lbf/lbfd.sock";
  std::vector<std::string> networks;  // empty: all that lbfd knows
  std::string spool_dir = "/var/spool/lbf";
  std::uint64_t spool_limit_mb = 1024;
  bool default_on = false;
  std::string relay;  // paths of this installation, see default_config()
  std::string capture;
  std::string report;
  std::string ring_dir = "/dev/shm";
  std::uint64_t ring_bytes = std::uint64_t{8} << 20;
  Seconds relay_wait_s = 10;
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
};

// What this step does.
struct StepConfig {
  bool predict = false;
  std::vector<std::string> networks;
  double overhead_limit_percent = 0;
  std::string procedures;  // as the user wrote them, or "auto"; empty: none are measured
  // One line each, without the "lbf: " in front. After a wrong value `predict` is false.
  std::vector<std::string> messages;
};

// OPTIONS go before ENVIRONMENT, the environment before the administrator's default.
StepConfig resolve(const AdminConfig& admin, const UserRequest& options, const UserRequest& environment);

// "2(x3),1" (SLURM_STEP_TASKS_PER_NODE) -> 2,2,2,1. Empty when the text is something else or longer than
// MAX_NODES.
std::vector<std::uint32_t> parse_tasks_per_node(std::string_view text, std::size_t max_nodes);

// LD_PRELOAD with LIBRARY first, then what OLD had besides it.
std::string preload_with(const std::string& library, std::string_view old);
// OLD without LIBRARY.
std::string preload_without(const std::string& library, std::string_view old);

}  // namespace lbf::plugin
