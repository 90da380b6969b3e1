// PredictionStore, see prediction_store.h.
#include "db/prediction_store.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "db/field_sql.h"

namespace lbf::db {
namespace {

constexpr std::string_view kRanks = "rank_finish_s_json";

}  // namespace

PredictionRecord PredictionRecord::without_ranks() const {
  PredictionRecord out;
  protocol::for_each_field(kPredictionFields, [&](const auto& field) {
    if (field.sql.column != kRanks) out.*field.member = this->*field.member;
  });
  return out;
}

std::string topology_text(const protocol::Topology& topology) {
  if (topology.file.empty()) return {};
  return text_of({{"file", topology.file}, {"nodes", topology.nodes}});
}

TopologyRecord topology_of(std::string_view text) {
  TopologyRecord topology;
  if (text.empty()) return topology;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("file") || !json["file"].is_string()) return topology;
  topology.file = json["file"].get<std::string>();
  if (!json.contains("nodes") || !json["nodes"].is_array()) return topology;
  for (const auto& node : json["nodes"]) {
    if (node.is_string()) topology.nodes.push_back(node.get<std::string>());
  }
  return topology;
}

void PredictionStore::replace(SQLite::Database& connection, StepRow step,
                              const std::vector<PredictionRecord>& predictions) {
  SQLite::Statement remove(connection, "DELETE FROM prediction WHERE step_row = ?");
  remove.bind(1, step);
  remove.exec();
  static const std::string sql = "INSERT INTO prediction (step_row, position" +
                                 each_column(kPredictionFields, [](std::string_view name) { return name; }) +
                                 ") VALUES (?, ?" +
                                 each_column(kPredictionFields, [](std::string_view) { return "?"; }) + ")";
  SQLite::Statement insert(connection, sql);
  std::int64_t position = 0;
  for (const PredictionRecord& prediction : predictions) {
    insert.reset();
    insert.bind(1, step);
    insert.bind(2, position++);
    bind_fields(insert, 3, kPredictionFields, prediction);
    insert.exec();
  }
}

namespace {

constexpr const char* kShownInLists =
    " AND position IN (SELECT self_position FROM step WHERE step_row = ?1 UNION SELECT fastest_position FROM "
    "step WHERE step_row = ?1)";

}  // namespace

Result<std::optional<StepRow>> PredictionStore::next_deferred(StepRow after) const {
  std::optional<StepRow> row;
  auto done = database_.read([&](SQLite::Database& connection) {
    SQLite::Statement query(
        connection,
        "SELECT min(p.step_row) FROM ("
        "SELECT step_row FROM prediction WHERE why_deferred <> '' AND deferred_for_good = 0 UNION ALL "
        "SELECT step_row FROM procedure_run WHERE why_deferred <> '' AND deferred_for_good = 0) p "
        "JOIN step s ON s.step_row = p.step_row WHERE p.step_row > ? AND s.state <> 'running'");
    query.bind(1, after);
    if (query.executeStep() && !query.getColumn(0).isNull()) row = query.getColumn(0).getInt64();
  });
  if (!done) return done.error();
  return row;
}

Result<std::set<TargetName>> PredictionStore::deferred_targets(StepRow step) const {
  std::set<TargetName> found;
  auto done = database_.read([&](SQLite::Database& connection) {
    SQLite::Statement query(connection,
                            "SELECT target, network, contention, speed FROM prediction WHERE step_row = ? AND "
                            "(why_deferred <> '' OR taken_up = 1)");
    query.bind(1, step);
    while (query.executeStep()) {
      found.emplace(query.getColumn(0).getString(), query.getColumn(1).getString(), query.getColumn(2).getString(),
                    query.getColumn(3).getDouble());
    }
  });
  if (!done) return done.error();
  return found;
}

Result<void> PredictionStore::give_up_deferred(StepRow step, const std::string& why) {
  return database_.write([&](SQLite::Database& connection) {
    SQLite::Statement update(connection,
                             "UPDATE prediction SET why_deferred = ?, deferred_for_good = 1 "
                             "WHERE step_row = ? AND why_deferred <> ''");
    update.bind(1, why);
    update.bind(2, step);
    update.exec();
    SQLite::Statement of_procedures(connection,
                                    "UPDATE procedure_run SET why_deferred = ?, deferred_for_good = 1 "
                                    "WHERE step_row = ? AND why_deferred <> ''");
    of_procedures.bind(1, why);
    of_procedures.bind(2, step);
    of_procedures.exec();
  });
}

Result<std::vector<PredictionRecord>> PredictionStore::of_step(StepRow step, bool with_ranks) const {
  auto all = of_steps({step}, with_ranks);
  if (!all) return all.error();
  return std::move(all->front());
}

Result<std::vector<PredictionRecord>> PredictionStore::summary_of_step(StepRow step) const {
  auto all = summaries({step});
  if (!all) return all.error();
  return std::move(all->front());
}

Result<std::vector<std::vector<PredictionRecord>>> PredictionStore::of_steps(const std::vector<StepRow>& steps,
                                                                             bool with_ranks) const {
  return of_each(steps, with_ranks, "");
}

Result<std::vector<std::vector<PredictionRecord>>> PredictionStore::summaries(const std::vector<StepRow>& steps) const {
  return of_each(steps, false, kShownInLists);
}

Result<std::vector<std::vector<PredictionRecord>>> PredictionStore::of_each(const std::vector<StepRow>& steps,
                                                                            bool with_ranks,
                                                                            std::string_view condition) const {
  std::vector<std::vector<PredictionRecord>> all;
  all.reserve(steps.size());
  auto done = database_.read([&](SQLite::Database& connection) {
    std::string sql = "SELECT position";
    FieldReader<PredictionRecord> fields(1);
    for (const auto& field : read_fields<PredictionRecord, kPredictionFields>()) {
      if (with_ranks || field.name != kRanks) fields.add(field, "", sql);
    }
    sql.append(" FROM prediction WHERE step_row = ?1").append(condition).append(" ORDER BY position");
    RowReader rows(connection, sql);
    std::size_t most = 0;
    for (const StepRow step : steps) {
      rows.bind(1, step);
      auto& predictions = all.emplace_back();
      predictions.reserve(most);
      while (rows.next()) fields.read(rows, predictions.emplace_back());
      rows.reset();
      most = std::max(most, predictions.size());
    }
  });
  if (!done) return done.error();
  return all;
}

}  // namespace lbf::db
