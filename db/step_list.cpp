// Lists of steps, see step_list.h.
#include "db/step_list.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/network_name.h"

namespace lbf::db {
namespace {

void read_steps(SQLite::Database& connection, const StepQuery& query, const ListValues& values,
                std::vector<ListedStep>& out) {
  const StepConditions where = conditions_of(connection, query);
  StepReader steps(connection, values.step, where);
  UnreadPredictions at;
  while (true) {
    ListedStep& step = out.emplace_back();
    if (!steps.next(at, step.record)) break;
    step.unread = at;
  }
  out.pop_back();
}

void read_predictions_of(SQLite::Database& connection, const ListValues& values, std::span<ListedStep> steps) {
  std::string sql = "SELECT position";
  FieldReader<PredictionRecord> fields(1);
  for (const auto& field : read_fields<PredictionRecord, kPredictionFields>()) {
    if (std::find(values.prediction.begin(), values.prediction.end(), field.name) != values.prediction.end())
      fields.add(field, "", sql);
  }
  sql += " FROM prediction WHERE step_row = ?1";
  if (!values.every_target) sql += " AND position = ?2";
  RowReader rows(connection, sql + " ORDER BY position");
  std::size_t most = 2;
  for (ListedStep& step : steps) {
    if (!step.unread) continue;
    std::vector<PredictionRecord>& predictions = step.predictions;
    predictions.reserve(most);
    const auto read_all = [&] {
      while (rows.next()) fields.read(rows, predictions.emplace_back());
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
    if (!prediction.is_known() || !is_measured(prediction.network, prediction.nodes)) continue;
    if (fastest == nullptr || prediction.predicted_s < fastest->predicted_s) fastest = &prediction;
  }
  return fastest;
}

bool is_listed(const PredictionRecord& prediction, const PredictionRecord* fastest) {
  return prediction.kind == "self" || &prediction == fastest;
}

Result<std::vector<ListedStep>> list_steps(Database& database, const StepQuery& query, const ListValues& values) {
  std::vector<ListedStep> out;
  auto done = database.read([&](SQLite::Database& connection) { read_steps(connection, query, values, out); });
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
