// Lists of steps, see step_list.h.
#include "db/step_list.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "db/prediction_store.h"
#include "db/row_reader.h"
#include "db/step_conditions.h"

namespace lbf::db {
namespace {

// How a value is read: so many columns from `c` on.
template <typename Record>
struct ColumnsOf {
  const char* sql;
  int count;
  void (*read)(const RowReader& row, int c, Record& out);
};

using R = const RowReader&;
using L = ListedStep&;
using P = PredictionRecord&;

// s: step, c: its cost, r: its run.
ColumnsOf<ListedStep> columns_of(StepValue value) {
  switch (value) {
    case StepValue::kCluster:
      return {"s.cluster", 1, [](R row, int c, L out) { out.record.cluster = row.text(c); }};
    case StepValue::kJob:
      return {"s.job", 1, [](R row, int c, L out) { out.record.job = row.u32(c); }};
    case StepValue::kStep:
      return {"s.step", 1, [](R row, int c, L out) { out.record.step = row.u32(c); }};
    case StepValue::kRestart:
      return {"s.restart", 1, [](R row, int c, L out) { out.record.restart = row.u32(c); }};
    case StepValue::kArrayJob:
      return {"s.array_job", 1, [](R row, int c, L out) { out.record.array_job = row.optional_u32(c); }};
    case StepValue::kArrayTask:
      return {"s.array_task", 1, [](R row, int c, L out) { out.record.array_task = row.optional_u32(c); }};
    case StepValue::kHetJob:
      return {"s.het_job", 1, [](R row, int c, L out) { out.record.het_job = row.optional_u32(c); }};
    case StepValue::kHetOffset:
      return {"s.het_offset", 1, [](R row, int c, L out) { out.record.het_offset = row.optional_u32(c); }};
    case StepValue::kUser:
      return {"s.user_name", 1, [](R row, int c, L out) { out.record.user_name = row.text(c); }};
    case StepValue::kUid:
      return {"s.uid", 1, [](R row, int c, L out) { out.record.uid = row.u32(c); }};
    case StepValue::kAccount:
      return {"s.account", 1, [](R row, int c, L out) { out.record.account = row.text(c); }};
    case StepValue::kPartition:
      return {"s.partition_name", 1, [](R row, int c, L out) { out.record.partition = row.text(c); }};
    case StepValue::kJobName:
      return {"s.job_name", 1, [](R row, int c, L out) { out.record.job_name = row.text(c); }};
    case StepValue::kCommand:
      return {"s.command_json, s.command", 2, [](R row, int c, L out) {
                if (row.is_null(c)) {
                  out.record.command = row.text(c + 1);
                } else {
                  out.record.command_words = row.texts(c);
                }
              }};
    case StepValue::kCommandCut:
      return {"s.command_cut", 1, [](R row, int c, L out) { out.record.command_cut = row.flag(c); }};
    case StepValue::kState:
      return {"s.state", 1, [](R row, int c, L out) {
                const std::string_view name = row.text(c);
                out.record.state = name == "complete"  ? StepState::kComplete
                                   : name == "partial" ? StepState::kPartial
                                                       : StepState::kRunning;
              }};
    case StepValue::kWhyPartial:
      return {"s.why_partial", 1, [](R row, int c, L out) { out.record.why_partial = row.text(c); }};
    case StepValue::kNodes:
      return {"s.nodes_json", 1, [](R row, int c, L out) { out.record.nodes = row.texts(c); }};
    case StepValue::kNodeCount:
      return {"iif(json_valid(s.nodes_json), json_array_length(s.nodes_json), 0)", 1,
              [](R row, int c, L out) { out.node_count = row.u64(c); }};
    case StepValue::kRanks:
      return {"s.ranks", 1, [](R row, int c, L out) { out.record.ranks = static_cast<Rank>(row.integer(c)); }};
    case StepValue::kNetwork:
      return {"s.network", 1, [](R row, int c, L out) { out.record.network = row.text(c); }};
    case StepValue::kStart:
      return {"s.start_s", 1, [](R row, int c, L out) { out.record.start_s = row.number(c); }};
    case StepValue::kEnd:
      return {"s.end_s", 1, [](R row, int c, L out) { out.record.end_s = row.optional_number(c); }};
    case StepValue::kMeasured:
      return {"s.measured_s", 1, [](R row, int c, L out) { out.record.measured_s = row.optional_number(c); }};
    case StepValue::kEvents:
      return {"s.events", 1, [](R row, int c, L out) { out.record.events = row.u64(c); }};
    case StepValue::kMessages:
      return {"s.messages", 1, [](R row, int c, L out) { out.record.messages = row.u64(c); }};
    case StepValue::kWireBytes:
      return {"s.wire_bytes", 1, [](R row, int c, L out) { out.record.wire_bytes = row.u64(c); }};
    case StepValue::kStoredBytes:
      return {"s.stored_bytes", 1, [](R row, int c, L out) { out.record.stored_bytes = row.u64(c); }};
    case StepValue::kWildcardReceives:
      return {"s.wildcard_receives", 1, [](R row, int c, L out) { out.record.wildcard_receives = row.u64(c); }};
    case StepValue::kLostEvents:
      return {"s.lost_events", 1, [](R row, int c, L out) { out.record.lost_events = row.u64(c); }};
    case StepValue::kMpi:
      return {"s.mpi_s", 1, [](R row, int c, L out) { out.record.mpi_s = row.number(c); }};
    case StepValue::kUnmodelled:
      return {"s.unmodelled_s", 1, [](R row, int c, L out) { out.record.unmodelled_s = row.number(c); }};
    case StepValue::kCapture:
      return {"s.capture_s", 1, [](R row, int c, L out) { out.record.capture_s = row.number(c); }};
    case StepValue::kRelayCpu:
      return {"s.relay_cpu_s", 1, [](R row, int c, L out) { out.record.relay_cpu_s = row.number(c); }};
    case StepValue::kLbfdCpu:
      return {"r.lbfd_cpu_s", 1, [](R row, int c, L out) { out.record.lbfd_cpu_s = row.number(c); }};
    case StepValue::kNotes:
      return {"s.notes_json", 1, [](R row, int c, L out) { out.record.notes = row.texts(c); }};
    case StepValue::kCost:
      return {"c.state, c.limit_percent, c.predicted_percent, c.corrected_percent, c.program_cpu_s, c.direct_s, c.ideal_s, "
              "c.relay_cpu_s, c.recorded_calls, c.counted_calls, c.disbelieved, c.windows, c.seen_share, c.once_capture_s, "
              "c.once_relay_s, c.held_up_s",
              16, [](R row, int c, L out) {
                if (row.is_null(c)) return;
                CostRecord& cost = out.record.cost.emplace();
                cost.state = row.text(c);
                cost.limit_percent = row.optional_number(c + 1);
                cost.predicted_percent = row.optional_number(c + 2);
                cost.corrected_percent = row.optional_number(c + 3);
                cost.program_cpu_s = row.number(c + 4);
                cost.direct_s = row.number(c + 5);
                cost.ideal_s = row.number(c + 6);
                cost.relay_cpu_s = row.number(c + 7);
                cost.recorded_calls = row.u64(c + 8);
                cost.counted_calls = row.u64(c + 9);
                cost.disbelieved = row.u64(c + 10);
                cost.windows = row.u64(c + 11);
                cost.seen_share = row.number(c + 12);
                cost.once_capture_s = row.optional_number(c + 13);
                cost.once_relay_s = row.optional_number(c + 14);
                cost.held_up_s = row.number(c + 15);
              }};
    case StepValue::kTargetCounts:
      return {"(SELECT count(*) FROM prediction d WHERE d.step_row = s.step_row AND d.why_deferred <> ''), "
              "(SELECT count(*) FROM prediction d WHERE d.step_row = s.step_row AND d.taken_up = 1)",
              2, [](R row, int c, L out) {
                out.targets_deferred = row.u64(c);
                out.targets_taken_up = row.u64(c + 1);
              }};
  }
  throw std::logic_error("a value that lists do not have");
}

ColumnsOf<PredictionRecord> columns_of(PredictionValue value) {
  switch (value) {
    case PredictionValue::kTarget:
      return {"target", 1, [](R row, int c, P out) { out.target = row.text(c); }};
    case PredictionValue::kNodes:
      return {"nodes", 1, [](R row, int c, P out) { out.nodes = row.u32(c); }};
    case PredictionValue::kCores:
      return {"cores_per_node", 1, [](R row, int c, P out) { out.cores_per_node = row.u32(c); }};
    case PredictionValue::kPlacement:
      return {"placement", 1, [](R row, int c, P out) { out.placement = row.text(c); }};
    case PredictionValue::kNetwork:
      return {"network", 1, [](R row, int c, P out) { out.network = row.text(c); }};
    case PredictionValue::kContention:
      return {"contention", 1, [](R row, int c, P out) { out.contention = row.text(c); }};
    case PredictionValue::kSpeed:
      return {"speed", 1, [](R row, int c, P out) { out.speed = row.number(c); }};
    case PredictionValue::kKind:
      return {"kind", 1, [](R row, int c, P out) { out.kind = row.text(c); }};
    case PredictionValue::kPredicted:
      return {"predicted_s, why_stuck, why_deferred", 3, [](R row, int c, P out) {
                out.predicted_s = row.number(c);
                out.why_stuck = row.text(c + 1);
                out.why_deferred = row.text(c + 2);
              }};
    case PredictionValue::kWhyStuck:
      return {"why_stuck", 1, [](R row, int c, P out) { out.why_stuck = row.text(c); }};
    case PredictionValue::kWhyDeferred:
      return {"why_deferred", 1, [](R row, int c, P out) { out.why_deferred = row.text(c); }};
    case PredictionValue::kDeferredForGood:
      return {"deferred_for_good", 1, [](R row, int c, P out) { out.deferred_for_good = row.flag(c); }};
    case PredictionValue::kTakenUp:
      return {"taken_up", 1, [](R row, int c, P out) { out.taken_up = row.flag(c); }};
    case PredictionValue::kSpeedup:
      return {"speedup", 1, [](R row, int c, P out) { out.speedup = row.optional_number(c); }};
    case PredictionValue::kSelfError:
      return {"self_error_percent", 1, [](R row, int c, P out) { out.self_error_percent = row.optional_number(c); }};
    case PredictionValue::kPartial:
      return {"partial", 1, [](R row, int c, P out) { out.partial = row.flag(c); }};
    case PredictionValue::kProgress:
      return {"progress_s", 1, [](R row, int c, P out) { out.progress_s = row.number(c); }};
    case PredictionValue::kMeasuredAtProgress:
      return {"measured_at_progress_s", 1, [](R row, int c, P out) { out.measured_at_progress_s = row.number(c); }};
    case PredictionValue::kSeenShare:
      return {"seen_share", 1, [](R row, int c, P out) { out.seen_share = row.optional_number(c).value_or(1); }};
    case PredictionValue::kLow:
      return {"low_s", 1, [](R row, int c, P out) { out.low_s = row.optional_number(c); }};
    case PredictionValue::kHigh:
      return {"high_s", 1, [](R row, int c, P out) { out.high_s = row.optional_number(c); }};
    case PredictionValue::kTopology:
      return {"topology_json", 1, [](R row, int c, P out) { out.topology = topology_of(row.text(c)); }};
  }
  throw std::logic_error("a value that lists do not have");
}

template <typename Record>
struct Reading {
  int column;
  void (*read)(const RowReader& row, int column, Record& out);
};

// The columns of `values` from number `column` on, with how each is read. Appended to `sql`, each with ", " before it.
template <typename Record, typename Value>
std::vector<Reading<Record>> readings_of(const std::vector<Value>& values, int column, std::string& sql) {
  std::vector<Reading<Record>> out;
  for (const Value value : values) {
    const ColumnsOf<Record> columns = columns_of(value);
    sql += ", ";
    sql += columns.sql;
    out.push_back({column, columns.read});
    column += columns.count;
  }
  return out;
}

template <typename Value>
bool wants(const std::vector<Value>& values, Value value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

void read_steps(SQLite::Database& connection, const StepQuery& query, const ListValues& values,
                std::vector<ListedStep>& out) {
  const StepConditions where = conditions_of(connection, query);
  std::string sql = "SELECT s.step_row, s.self_position, s.fastest_position, s.start_s";
  const auto readings = readings_of<ListedStep>(values.step, 4, sql);
  // Only numbers are sorted, and of the steps that are left out nothing else is read.
  sql += " FROM (SELECT step_row AS wanted_row FROM step WHERE 1" + where.sql +
         ") CROSS JOIN step s ON s.step_row = wanted_row";
  if (wants(values.step, StepValue::kCost)) sql += " LEFT JOIN cost c ON c.step_row = s.step_row";
  if (wants(values.step, StepValue::kLbfdCpu)) sql += " LEFT JOIN run r ON r.step_row = s.step_row";
  RowReader rows(connection, sql);
  for (std::size_t i = 0; i < where.values.size(); ++i) {
    std::visit([&](const auto& value) { rows.bind(static_cast<int>(i) + 1, value); }, where.values[i]);
  }
  const auto position = [&](int column) {
    return rows.is_null(column) ? std::nullopt : std::optional(rows.integer(column));
  };
  while (rows.next()) {
    ListedStep& step = out.emplace_back();
    step.unread = {.row = rows.integer(0), .self_position = position(1), .fastest_position = position(2)};
    step.record.start_s = rows.number(3);
    for (const auto& reading : readings) reading.read(rows, reading.column, step);
  }
}

void read_predictions_of(SQLite::Database& connection, const ListValues& values, std::span<ListedStep> steps) {
  std::string sql = "SELECT position";
  const auto readings = readings_of<PredictionRecord>(values.prediction, 1, sql);
  sql += " FROM prediction WHERE step_row = ?1";
  if (!values.every_target) sql += " AND position = ?2";
  RowReader rows(connection, sql + " ORDER BY position");
  std::size_t most = 2;
  for (ListedStep& step : steps) {
    if (!step.unread) continue;
    std::vector<PredictionRecord>& predictions = step.predictions;
    predictions.reserve(most);
    const auto read_all = [&] {
      while (rows.next()) {
        PredictionRecord& prediction = predictions.emplace_back();
        for (const auto& reading : readings) reading.read(rows, reading.column, prediction);
      }
      rows.reset();
    };
    rows.bind(1, step.unread->row);
    if (values.every_target) {
      read_all();
    } else {
      auto [first, second] = std::pair(step.unread->self_position, step.unread->fastest_position);
      if (first && second && *second < *first) std::swap(first, second);
      if (second == first) second.reset();
      for (const auto& position : {first, second}) {
        if (!position) continue;
        rows.bind(2, *position);
        read_all();
      }
    }
    step.unread.reset();
    most = std::max(most, predictions.size());
  }
}

}  // namespace

const PredictionRecord* fastest_of(const std::vector<PredictionRecord>& predictions) {
  const PredictionRecord* fastest = nullptr;
  for (const PredictionRecord& prediction : predictions) {
    const bool ends = prediction.why_stuck.empty() && prediction.why_deferred.empty();
    if (ends && (fastest == nullptr || prediction.predicted_s < fastest->predicted_s)) fastest = &prediction;
  }
  return fastest;
}

bool is_listed(const PredictionRecord& prediction, const PredictionRecord* fastest) {
  return prediction.kind == "self" || &prediction == fastest;
}

Result<std::vector<ListedStep>> list_steps(Database& database, const StepQuery& query, const ListValues& values) {
  std::vector<ListedStep> out;
  auto done = database.read(
      [&](SQLite::Database& connection) { read_steps(connection, query, values, out); });
  if (!done) return done.error();
  // The join keeps the order of the latest first, as far as is known; nothing promises it.
  std::reverse(out.begin(), out.end());
  const auto earlier = [](const ListedStep& a, const ListedStep& b) { return a.record.start_s < b.record.start_s; };
  if (!std::is_sorted(out.begin(), out.end(), earlier)) std::stable_sort(out.begin(), out.end(), earlier);
  return out;
}

Result<void> read_predictions(Database& database, const ListValues& values, std::span<ListedStep> steps) {
  if (values.prediction.empty()) return {};
  return database.read([&](SQLite::Database& connection) { read_predictions_of(connection, values, steps); });
}

}  // namespace lbf::db
