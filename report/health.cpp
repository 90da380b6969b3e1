// See health.h.
#include "report/health.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/number.h"
#include "base/times.h"
#include "report/answer.h"
#include "report/answer_json.h"
#include "report/fields.h"
#include "report/text.h"

namespace lbf::report {
namespace {

// As in etc/prometheus/lbfd.rules.yml.
constexpr Seconds kLongLagS = 60;
constexpr double kMuch = 0.9;  // of a limit

// Of what lbfd sent; an older one has not all of it.
class Numbers {
 public:
  explicit Numbers(const Samples& samples) : samples_(samples) {}
  double operator[](const std::string& name) const {
    const auto found = samples_.find(name);
    return found == samples_.end() ? 0 : found->second;
  }
  std::string count(const std::string& name) const { return fmt::format("{:.0f}", (*this)[name]); }
  std::string bytes(const std::string& name) const {
    return format_bytes(static_cast<std::uint64_t>((*this)[name]), {});
  }
  // "401: 3, 503: 1": those that are not 0, of the samples that begin with FAMILY; empty: none.
  std::string not_zero(std::string_view family, std::string_view except = {}) const {
    std::string out;
    for (const auto& [name, value] : samples_) {
      const std::size_t begin = name.find("=\"");
      if (!name.starts_with(family) || value == 0 || begin == std::string::npos) continue;
      const std::string_view label = std::string_view(name).substr(begin + 2, name.size() - begin - 4);
      if (label != except) out += fmt::format("{}{}: {:.0f}", out.empty() ? "" : ", ", label, value);
    }
    return out.empty() ? "none" : out;
  }

 private:
  const Samples& samples_;
};

std::string health_line(std::string_view name, const std::string& text) {
  return fmt::format("{:<12}{}\n", name, text);
}

}  // namespace

Result<Samples> parse_metrics(std::string_view text) {
  Samples out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line == "# EOF")
      return text.empty() ? Result<Samples>(std::move(out)) : answer_error("metrics go on after # EOF");
    if (line.starts_with('#')) continue;
    const std::size_t blank = line.rfind(' ');
    const auto value = blank == std::string_view::npos ? std::nullopt : parse_number<double>(line.substr(blank + 1));
    if (!value) return answer_error("a line of the metrics is no sample");
    out[printable(line.substr(0, blank))] = *value;
  }
  return answer_error("the metrics have no end");
}

Result<Health> parse_health(std::string_view text) {
  const nlohmann::json json = json_of_answer(text);
  if (!json.is_object() || !json.contains("version") || !json["version"].is_string())
    return answer_error("health has no version");
  Health out;
  out.version = printable(json["version"].get<std::string>());
  if (json.contains("steps_running") && json["steps_running"].is_number())
    json["steps_running"].get_to(out.steps_running);
  out.disk_full = json.contains("disk_full") && json["disk_full"] == true;
  if (json.contains("clusters") && json["clusters"].is_array()) {
    for (const nlohmann::json& name : json["clusters"]) {
      if (name.is_string()) out.clusters.push_back(printable(name.get<std::string>()));
    }
  }
  return out;
}

std::vector<std::string> concerns(const Health& health) {
  std::vector<std::string> out;
  if (health.disk_full) out.emplace_back("no room to write: relays keep their events");
  if (!health.metrics) return out;
  const Numbers numbers(*health.metrics);
  const auto is_much = [&](const char* used, const char* limit) {
    return numbers[limit] > 0 && numbers[used] > kMuch * numbers[limit];
  };
  if (numbers["lbfd_disk_free_bytes"] < (1 - kMuch) * numbers["lbfd_disk_bytes"])
    out.emplace_back("less than a tenth of the disk is free");
  if (numbers["lbfd_replay_lag_seconds"] > kLongLagS)
    out.push_back("replays are " + format_duration(numbers["lbfd_replay_lag_seconds"], 3) + " behind");
  if (is_much("lbfd_step_memory_bytes", "lbfd_step_memory_limit_bytes"))
    out.emplace_back("steps hold more than 90 % of memory_mb");
  if (is_much("lbfd_connections", "lbfd_connections_limit"))
    out.emplace_back("more than 90 % of max_connections are in use");
  return out;
}

std::string render_health(const Health& health, std::string_view server, std::time_t now) {
  std::string out = fmt::format("lbfd {} at {}\n", health.version, printable(server));
  if (!health.clusters.empty()) out += health_line("Clusters", fmt::format("{}", fmt::join(health.clusters, ", ")));
  const std::vector<std::string> all = concerns(health);
  for (const std::string& one : all) out += health_line("Look at", one);
  if (all.empty()) out += health_line("State", "ok");
  if (!health.metrics) {
    out += health_line("Steps", fmt::format("{:.0f} under way", health.steps_running));
    return out + health_line("More", printable(health.why_no_metrics));
  }
  const Numbers numbers(*health.metrics);
  const double start_s = numbers["process_start_time_seconds"];
  out +=
      health_line("Up", fmt::format("{}, since {}", format_duration(std::max(0.0, static_cast<double>(now) - start_s)),
                                    format_timestamp(start_s)));
  out +=
      health_line("Steps", fmt::format("{} under way, {} started, {} complete, {} partial",
                                       numbers.count("lbfd_steps_running"), numbers.count("lbfd_steps_started_total"),
                                       numbers.count("lbfd_steps_ended_total{state=\"complete\"}"),
                                       numbers.count("lbfd_steps_ended_total{state=\"partial\"}")));
  out += health_line("Predictions", fmt::format("{}, {} targets deferred", numbers.count("lbfd_predictions_total"),
                                                numbers.count("lbfd_deferred_targets_total")));
  const double cpu_s = numbers["process_cpu_seconds_total"];
  out += health_line("Replays", fmt::format("{} events, {} behind, backlog {}, {:.0f} % of lbfd's processor time",
                                            numbers.count("lbfd_replayed_events_total"),
                                            format_duration(numbers["lbfd_replay_lag_seconds"], 3),
                                            numbers.bytes("lbfd_replay_backlog_bytes"),
                                            cpu_s > 0 ? 100 * numbers["lbfd_replay_cpu_seconds_total"] / cpu_s : 0));
  out += health_line(
      "Memory", fmt::format("{}, of it steps {} of {}", numbers.bytes("process_resident_memory_bytes"),
                            numbers.bytes("lbfd_step_memory_bytes"), numbers.bytes("lbfd_step_memory_limit_bytes")));
  out += health_line("Stored",
                     fmt::format("{} batches, {}; database {}", numbers.count("lbfd_stored_batches_total"),
                                 numbers.bytes("lbfd_stored_bytes_total"), numbers.bytes("lbfd_database_bytes")));
  out += health_line(
      "Disk", fmt::format("{} of {} free", numbers.bytes("lbfd_disk_free_bytes"), numbers.bytes("lbfd_disk_bytes")));
  out += health_line("Relays", fmt::format("{} batches spooled, {} lost", numbers.count("lbfd_spooled_batches_total"),
                                           numbers.count("lbfd_lost_batches_total")));
  out += health_line("Connections", fmt::format("{} of {}", numbers.count("lbfd_connections"),
                                                numbers.count("lbfd_connections_limit")));
  out += health_line("Refused", numbers.not_zero("lbfd_http_responses_total", "200"));
  return out + health_line("Errors", numbers.not_zero("lbfd_errors_total"));
}

std::string health_json(const Health& health) {
  using Json = nlohmann::json;
  const Json json = {{"version", health.version},
                     {"steps_running", health.steps_running},
                     {"disk_full", health.disk_full},
                     {"concerns", concerns(health)},
                     {"metrics", health.metrics ? Json(*health.metrics) : Json()}};
  return Json{{"health", json}}.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace lbf::report
