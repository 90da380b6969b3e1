// Metrics, see metrics.h.
#include "predictor/daemon/http/metrics.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <utility>

namespace lbf::daemon {
namespace {

// --- this process, as Prometheus' own client libraries name it

const Seconds kStartS = std::chrono::duration<Seconds>(std::chrono::system_clock::now().time_since_epoch()).count();

double cpu_s() {
  struct rusage usage {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto seconds = [](const struct timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  if (!(file >> all >> resident)) return 0;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// --- the text

enum class Type { kGauge, kCounter };

struct Family {
  std::string_view name;  // without a counter's _total
  Type type;
  std::string_view unit;  // that the name ends in; empty: none
  std::string_view help;
  double (*value)(const MetricsSource& source);
};

double as_number(std::uint64_t value) {
  return static_cast<double>(value);
}

// clang-format off
constexpr auto kFamilies = std::to_array<Family>({
    {"process_start_time_seconds", Type::kGauge, "seconds", "When lbfd started, since the epoch.", [](const MetricsSource&) { return kStartS; }},
    {"process_cpu_seconds", Type::kCounter, "seconds", "Processor time of lbfd.", [](const MetricsSource&) { return cpu_s(); }},
    {"process_resident_memory_bytes", Type::kGauge, "bytes", "Memory of lbfd.", [](const MetricsSource&) { return resident_bytes(); }},
    {"lbfd_steps_running", Type::kGauge, "", "Steps under way.", [](const MetricsSource& s) { return as_number(s.now.running); }},
    {"lbfd_steps_started", Type::kCounter, "", "Steps whose first relay registered.", [](const MetricsSource& s) { return as_number(s.counts.started_steps); }},
    {"lbfd_predictions", Type::kCounter, "", "Predictions of steps that ended.", [](const MetricsSource& s) { return as_number(s.counts.predictions); }},
    {"lbfd_deferred_targets", Type::kCounter, "", "Targets that were deferred when their steps ended.", [](const MetricsSource& s) { return as_number(s.counts.deferred_targets); }},
    {"lbfd_stored_batches", Type::kCounter, "", "Batches that were stored.", [](const MetricsSource& s) { return as_number(s.counts.stored_batches); }},
    {"lbfd_stored_bytes", Type::kCounter, "bytes", "Batches that were stored.", [](const MetricsSource& s) { return as_number(s.counts.stored_bytes); }},
    {"lbfd_replayed_events", Type::kCounter, "", "Events that were replayed; again with deferred targets.", [](const MetricsSource& s) { return as_number(s.counts.replayed_events); }},
    {"lbfd_replay_cpu_seconds", Type::kCounter, "seconds", "Processor time of replays; of process_cpu_seconds it is the replays' share.", [](const MetricsSource& s) { return s.counts.replay_cpu_s.load(); }},
    {"lbfd_replay_threads", Type::kGauge, "", "Threads that replay.", [](const MetricsSource& s) { return as_number(s.now.replay_threads); }},
    {"lbfd_replay_lag_seconds", Type::kGauge, "seconds", "How far the replay of the step that is furthest behind is behind what came.", [](const MetricsSource& s) { return s.now.lag_s; }},
    {"lbfd_replay_backlog_bytes", Type::kGauge, "bytes", "Stored batches that are to be replayed.", [](const MetricsSource& s) { return as_number(s.now.backlog_bytes); }},
    {"lbfd_step_memory_bytes", Type::kGauge, "bytes", "Memory of all steps, as memory_mb counts it.", [](const MetricsSource& s) { return as_number(s.now.memory_bytes); }},
    {"lbfd_step_memory_limit_bytes", Type::kGauge, "bytes", "memory_mb; 0: none.", [](const MetricsSource& s) { return as_number(s.now.memory_limit_bytes); }},
    {"lbfd_spooled_batches", Type::kCounter, "", "Batches that relays kept in their spool, as they say at the end of a step.", [](const MetricsSource& s) { return as_number(s.counts.spooled_batches); }},
    {"lbfd_lost_batches", Type::kCounter, "", "Batches that relays lost, as they say at the end of a step.", [](const MetricsSource& s) { return as_number(s.counts.lost_batches); }},
    {"lbfd_disk_bytes", Type::kGauge, "bytes", "Size of the file system of state_dir.", [](const MetricsSource& s) { return as_number(s.now.disk_bytes); }},
    {"lbfd_disk_free_bytes", Type::kGauge, "bytes", "Of it, what lbfd can write.", [](const MetricsSource& s) { return as_number(s.now.disk_free_bytes); }},
    {"lbfd_database_bytes", Type::kGauge, "bytes", "lbf.db and its log.", [](const MetricsSource& s) { return as_number(s.now.database_bytes); }},
    {"lbfd_connections", Type::kGauge, "", "Connections.", [](const MetricsSource& s) { return as_number(s.http.connections); }},
    {"lbfd_connections_limit", Type::kGauge, "", "max_connections.", [](const MetricsSource& s) { return as_number(s.http.connection_limit); }},
});
// clang-format on

class Text {
 public:
  void family(std::string_view name, std::string_view type, std::string_view unit, std::string_view help) {
    name_ = name;
    is_counter_ = type == "counter";
    text_ += fmt::format("# TYPE {} {}\n", name, type);
    if (!unit.empty()) text_ += fmt::format("# UNIT {} {}\n", name, unit);
    text_ += fmt::format("# HELP {} {}\n", name, help);
  }
  void sample(double value, std::string_view label = {}, std::string_view label_value = {}) {
    text_ += fmt::format("{}{}", name_, is_counter_ ? "_total" : "");
    if (!label.empty()) text_ += fmt::format("{{{}=\"{}\"}}", label, label_value);
    text_ += fmt::format(" {}\n", value);
  }
  void add(std::string_view line) { text_ += line; }
  std::string take() { return std::move(text_); }

 private:
  std::string_view name_;
  bool is_counter_ = false;
  std::string text_;
};

}  // namespace

std::string metrics_text(const MetricsSource& source) {
  Text text;
  text.family("lbfd_build", "info", "", "Which lbfd this is.");
  text.add(fmt::format("lbfd_build_info{{version=\"{}\"}} 1\n", source.version));
  for (const Family& family : kFamilies) {
    text.family(family.name, family.type == Type::kCounter ? "counter" : "gauge", family.unit, family.help);
    text.sample(family.value(source));
  }
  text.family("lbfd_steps_ended", "counter", "", "Steps that ended.");
  text.sample(as_number(source.counts.complete_steps), "state", "complete");
  text.sample(as_number(source.counts.partial_steps), "state", "partial");
  text.family("lbfd_disk_full", "gauge", "", "1 while writes fail for want of room.");
  text.sample(source.now.traces_disk_full ? 1 : 0, "of", "traces");
  text.sample(source.now.database_disk_full ? 1 : 0, "of", "database");
  text.family("lbfd_http_responses", "counter", "", "Answers, by HTTP status.");
  for (std::size_t i = 0; i < HttpCounts::kStatuses.size(); ++i)
    text.sample(as_number(source.http.answers(i)), "status", std::to_string(HttpCounts::kStatuses[i]));
  text.family("lbfd_errors", "counter", "",
              "Writes without room, writes that failed otherwise, replays that stopped, steps that were set aside.");
  text.sample(as_number(source.now.writes_without_room), "kind", "no_room");
  text.sample(as_number(source.now.failed_writes), "kind", "write");
  text.sample(as_number(source.counts.replay_errors), "kind", "replay");
  text.sample(as_number(source.counts.set_aside_steps), "kind", "set_aside");
  text.add("# EOF\n");
  return text.take();
}

}  // namespace lbf::daemon
