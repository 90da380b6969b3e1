// Metrics: what `GET /metrics` answers: OpenMetrics 1.0, for Prometheus and lbf-report --health
// (docs/formats/http-v1.md, "Metrics"). A metric has no label that users choose.
#pragma once

#include <string>
#include <string_view>

#include "predictor/daemon/http/http_counts.h"
#include "predictor/daemon/steps/daemon_counts.h"
#include "predictor/daemon/steps/steps_now.h"

namespace lbf::daemon {

inline constexpr std::string_view kMetricsTarget = "/metrics";
inline constexpr std::string_view kMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

struct MetricsSource {
  std::string_view version;
  const DaemonCounts& counts;
  const StepsNow& now;
  const HttpCounts& http;
};

// Thread-safe. With what the system says of this process.
std::string metrics_text(const MetricsSource& source);

}  // namespace lbf::daemon
