// Rows, see step_rows.h.
#include "predictor/daemon/http/step_rows.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "predictor/daemon/http/json_append.h"

namespace lbf::daemon {

struct StepColumn {
  std::string_view name;
  db::StepValue value;
  void (*append)(const db::ListedStep& step, std::string& out);
};

struct PredictionColumn {
  std::string_view name;  // without "predictions."
  db::PredictionValue value;
  void (*append)(const db::PredictionRecord& prediction, std::string& out);
};

namespace {

constexpr std::string_view kOfPredictions = "predictions.";

template <typename T>
void append(std::string& out, const T& value) {
  append_json(out, value);
}
template <typename T>
void append(std::string& out, const std::optional<T>& value) {
  if (value) {
    append_json(out, *value);
  } else {
    out += "null";
  }
}
void append(std::string& out, bool yes) {
  out += yes ? "true" : "false";
}

// A value of the cost record; null where there is none.
template <typename GetValue>
void append_of_cost(std::string& out, const db::ListedStep& step, const GetValue& value_of) {
  if (step.record.cost) {
    append(out, value_of(*step.record.cost));
  } else {
    out += "null";
  }
}

using L = const db::ListedStep&;
using P = const db::PredictionRecord&;
using O = std::string&;
using V = db::StepValue;
using C = const db::CostRecord&;
using PV = db::PredictionValue;

constexpr std::array kStepColumns{
    StepColumn{"cluster", V::kCluster, [](L s, O out) { append(out, s.record.cluster); }},
    StepColumn{"job", V::kJob, [](L s, O out) { append(out, s.record.job); }},
    StepColumn{"step", V::kStep, [](L s, O out) { append(out, s.record.step); }},
    StepColumn{"restart", V::kRestart, [](L s, O out) { append(out, s.record.restart); }},
    StepColumn{"array_job", V::kArrayJob, [](L s, O out) { append(out, s.record.array_job); }},
    StepColumn{"array_task", V::kArrayTask, [](L s, O out) { append(out, s.record.array_task); }},
    StepColumn{"het_job", V::kHetJob, [](L s, O out) { append(out, s.record.het_job); }},
    StepColumn{"het_offset", V::kHetOffset, [](L s, O out) { append(out, s.record.het_offset); }},
    StepColumn{"user", V::kUser, [](L s, O out) { append(out, s.record.user_name); }},
    StepColumn{"uid", V::kUid, [](L s, O out) { append(out, s.record.uid); }},
    StepColumn{"account", V::kAccount, [](L s, O out) { append(out, s.record.account); }},
    StepColumn{"partition", V::kPartition, [](L s, O out) { append(out, s.record.partition); }},
    StepColumn{"job_name", V::kJobName, [](L s, O out) { append(out, s.record.job_name); }},
    StepColumn{"command", V::kCommand,
               [](L s, O out) {
                 if (s.record.command_words) {
                   append(out, *s.record.command_words);
                 } else {
                   append(out, s.record.command);
                 }
               }},
    StepColumn{"command_cut", V::kCommandCut, [](L s, O out) { append(out, s.record.command_cut); }},
    StepColumn{"state", V::kState, [](L s, O out) { append(out, std::string(db::name_of(s.record.state))); }},
    StepColumn{"why_partial", V::kWhyPartial, [](L s, O out) { append(out, s.record.why_partial); }},
    StepColumn{"nodes", V::kNodes, [](L s, O out) { append(out, s.record.nodes); }},
    StepColumn{"node_count", V::kNodeCount, [](L s, O out) { append(out, s.node_count); }},
    StepColumn{"ranks", V::kRanks, [](L s, O out) { append(out, s.record.ranks); }},
    StepColumn{"network", V::kNetwork, [](L s, O out) { append(out, s.record.network); }},
    StepColumn{"start", V::kStart, [](L s, O out) { append(out, s.record.start_s); }},
    StepColumn{"end", V::kEnd, [](L s, O out) { append(out, s.record.end_s); }},
    StepColumn{"measured_s", V::kMeasured, [](L s, O out) { append(out, s.record.measured_s); }},
    StepColumn{"events", V::kEvents, [](L s, O out) { append(out, s.record.events); }},
    StepColumn{"messages", V::kMessages, [](L s, O out) { append(out, s.record.messages); }},
    StepColumn{"bytes_on_wire", V::kWireBytes, [](L s, O out) { append(out, s.record.wire_bytes); }},
    StepColumn{"bytes_stored", V::kStoredBytes, [](L s, O out) { append(out, s.record.stored_bytes); }},
    StepColumn{"wildcard_receives", V::kWildcardReceives,
               [](L s, O out) { append(out, s.record.wildcard_receives); }},
    StepColumn{"lost_events", V::kLostEvents, [](L s, O out) { append(out, s.record.lost_events); }},
    StepColumn{"mpi_s", V::kMpi, [](L s, O out) { append(out, s.record.mpi_s); }},
    StepColumn{"unmodelled_s", V::kUnmodelled, [](L s, O out) { append(out, s.record.unmodelled_s); }},
    StepColumn{"capture_s", V::kCapture, [](L s, O out) { append(out, s.record.capture_s); }},
    StepColumn{"relay_cpu_s", V::kRelayCpu, [](L s, O out) { append(out, s.record.relay_cpu_s); }},
    StepColumn{"lbfd_cpu_s", V::kLbfdCpu, [](L s, O out) { append(out, s.record.lbfd_cpu_s); }},
    StepColumn{"notes", V::kNotes, [](L s, O out) { append(out, s.record.notes); }},
    StepColumn{"cost.state", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.state; }); }},
    StepColumn{"cost.limit_percent", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.limit_percent; }); }},
    StepColumn{"cost.predicted_percent", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.predicted_percent; }); }},
    StepColumn{"cost.corrected_percent", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.corrected_percent; }); }},
    StepColumn{"cost.low_percent", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.low_percent(); }); }},
    StepColumn{"cost.high_percent", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.high_percent(); }); }},
    StepColumn{"cost.once_capture_s", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.once_capture_s; }); }},
    StepColumn{"cost.once_relay_s", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.once_relay_s; }); }},
    StepColumn{"cost.total_low_percent", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.total_low_percent(); }); }},
    StepColumn{"cost.total_high_percent", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.total_high_percent(); }); }},
    StepColumn{"cost.program_cpu_s", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.program_cpu_s; }); }},
    StepColumn{"cost.recorded_calls", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.recorded_calls; }); }},
    StepColumn{"cost.counted_calls", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.counted_calls; }); }},
    StepColumn{"cost.windows", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.windows; }); }},
    StepColumn{"cost.seen_share", V::kCost,
               [](L s, O out) { append_of_cost(out, s, [](C cost) { return cost.seen_share; }); }},
    StepColumn{"targets_deferred", V::kTargetCounts, [](L s, O out) { append(out, s.targets_deferred); }},
    StepColumn{"targets_taken_up", V::kTargetCounts, [](L s, O out) { append(out, s.targets_taken_up); }},
};

constexpr std::array kPredictionColumns{
    PredictionColumn{"target", PV::kTarget, [](P p, O out) { append(out, p.target); }},
    PredictionColumn{"nodes", PV::kNodes, [](P p, O out) { append(out, p.nodes); }},
    PredictionColumn{"cores", PV::kCores, [](P p, O out) { append(out, p.cores_per_node); }},
    PredictionColumn{"placement", PV::kPlacement, [](P p, O out) { append(out, p.placement); }},
    PredictionColumn{"network", PV::kNetwork, [](P p, O out) { append(out, p.network); }},
    PredictionColumn{"contention", PV::kContention, [](P p, O out) { append(out, p.contention); }},
    PredictionColumn{"speed", PV::kSpeed, [](P p, O out) { append(out, p.speed); }},
    PredictionColumn{"kind", PV::kKind, [](P p, O out) { append(out, p.kind); }},
    // A program that waits for ever, or of which not all was replayed, has no run time (http-v1.md, PREDICTION).
    PredictionColumn{"predicted_s", PV::kPredicted,
                     [](P p, O out) {
                       const bool ends = p.why_stuck.empty() && p.why_deferred.empty();
                       append(out, ends ? std::optional(p.predicted_s) : std::nullopt);
                     }},
    PredictionColumn{"why_stuck", PV::kWhyStuck, [](P p, O out) { append(out, p.why_stuck); }},
    PredictionColumn{"why_deferred", PV::kWhyDeferred, [](P p, O out) { append(out, p.why_deferred); }},
    PredictionColumn{"deferred_for_good", PV::kDeferredForGood, [](P p, O out) { append(out, p.deferred_for_good); }},
    PredictionColumn{"taken_up", PV::kTakenUp, [](P p, O out) { append(out, p.taken_up); }},
    PredictionColumn{"speedup", PV::kSpeedup, [](P p, O out) { append(out, p.speedup); }},
    PredictionColumn{"self_error_percent", PV::kSelfError, [](P p, O out) { append(out, p.self_error_percent); }},
    PredictionColumn{"partial", PV::kPartial, [](P p, O out) { append(out, p.partial); }},
    PredictionColumn{"progress_s", PV::kProgress, [](P p, O out) { append(out, p.progress_s); }},
    PredictionColumn{"measured_at_progress_s", PV::kMeasuredAtProgress,
                     [](P p, O out) { append(out, p.measured_at_progress_s); }},
    PredictionColumn{"seen_share", PV::kSeenShare, [](P p, O out) { append(out, p.seen_share); }},
    PredictionColumn{"low_s", PV::kLow, [](P p, O out) { append(out, p.low_s); }},
    PredictionColumn{"high_s", PV::kHigh, [](P p, O out) { append(out, p.high_s); }},
    PredictionColumn{"topology.file", PV::kTopology, [](P p, O out) { append(out, p.topology.file); }},
    PredictionColumn{"topology.nodes", PV::kTopology, [](P p, O out) { append(out, p.topology.nodes); }},
};

// false: no column of that name, or it is in `chosen` already.
template <typename Column, std::size_t kCount>
bool choose(const std::array<Column, kCount>& columns, std::string_view name, std::vector<const Column*>& chosen) {
  const auto* const found =
      std::find_if(columns.begin(), columns.end(), [name](const Column& column) { return column.name == name; });
  if (found == columns.end() || std::find(chosen.begin(), chosen.end(), &*found) != chosen.end()) return false;
  chosen.push_back(&*found);
  return true;
}

template <typename Column>
void append_names(const std::vector<const Column*>& columns, std::string& out) {
  out += '[';
  for (const Column* const column : columns) {
    if (column != columns.front()) out += ',';
    append_json(out, std::string(column->name));
  }
  out += ']';
}

template <typename Column, typename Value>
void add_values(const std::vector<const Column*>& columns, std::vector<Value>& values) {
  for (const Column* const column : columns) {
    if (std::find(values.begin(), values.end(), column->value) == values.end()) values.push_back(column->value);
  }
}

}  // namespace

db::ListValues RowColumns::values() const {
  db::ListValues out;
  add_values(step, out.step);
  add_values(prediction, out.prediction);
  return out;
}

Result<RowColumns> parse_rows(std::string_view names) {
  RowColumns out;
  while (true) {
    const std::size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    const bool known = name.starts_with(kOfPredictions)
                           ? choose(kPredictionColumns, name.substr(kOfPredictions.size()), out.prediction)
                           : choose(kStepColumns, name, out.step);
    if (!known) {
      return invalid_input("rows: '" + std::string(name.substr(0, 40)) +
                           "' is there twice, or no key of rows: docs/formats/http-v1.md lists them");
    }
    if (comma == std::string_view::npos) return out;
    names.remove_prefix(comma + 1);
  }
}

std::vector<std::string_view> all_row_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const StepColumn& column : kStepColumns) out.emplace_back(column.name);
    for (const PredictionColumn& column : kPredictionColumns)
      out.push_back(std::string(kOfPredictions) + std::string(column.name));
    return out;
  }();
  return {names.begin(), names.end()};
}

void append_rows_head(const RowColumns& columns, std::string& out) {
  out += "{\"keys\":";
  append_names(columns.step, out);
  out += ",\"prediction_keys\":";
  append_names(columns.prediction, out);
  out += ",\"rows\":[";
}

void append_row(const db::ListedStep& step, const RowColumns& columns, std::string& out) {
  char separator = '[';
  for (const StepColumn* const column : columns.step) {
    out += std::exchange(separator, ',');
    column->append(step, out);
  }
  if (!columns.prediction.empty()) {
    out += std::exchange(separator, ',');
    out += '[';
    for (const db::PredictionRecord& prediction : step.predictions) {
      separator = '[';
      if (&prediction != &step.predictions.front()) out += ',';
      for (const PredictionColumn* const column : columns.prediction) {
        out += std::exchange(separator, ',');
        column->append(prediction, out);
      }
      out += ']';
    }
    out += ']';
  }
  out += ']';
}

}  // namespace lbf::daemon
