// lbf-report --health: one screen about lbfd, from `GET /v1/health` and `GET /metrics` (docs/formats/http-v1.md,
// "Metrics").
#pragma once

#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lbf::report {

// By the sample's full name: "lbfd_steps_running", "lbfd_disk_full{of=\"traces\"}".
using Samples = std::map<std::string, double>;

// The samples of an OpenMetrics text. Errors: kInvalidInput (a line is none, or the end is missing).
Result<Samples> parse_metrics(std::string_view text);

struct Health {
  std::string version;
  double steps_running = 0;
  bool disk_full = false;
  std::vector<std::string> clusters;  // that lbfd.toml has a section for
  std::optional<Samples> metrics;
  std::string why_no_metrics;  // where there are none
};

// What GET /v1/health answered. Errors: kInvalidInput.
Result<Health> parse_health(std::string_view json);

// What an operator should look at now; empty: nothing. The limits are those of the alerts in etc/prometheus.
std::vector<std::string> concerns(const Health& health);

// SERVER: that was asked. NOW: since 1970.
std::string render_health(const Health& health, std::string_view server, std::time_t now);
// {"health":{...}}, as lbf-report(1) says.
std::string health_json(const Health& health);

}  // namespace lbf::report
