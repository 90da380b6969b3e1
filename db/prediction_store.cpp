// PredictionStore, see prediction_store.h.
#include "db/prediction_store.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "db/row_reader.h"
#include "db/statement_values.h"

namespace lbf::db {
namespace {

std::string topology_text(const TopologyRecord& topology) {
  if (topology.file.empty()) return {};
  return nlohmann::json{{"file", topology.file}, {"nodes", topology.nodes}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

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
  SQLite::Statement insert(
      connection,
      "INSERT INTO prediction (step_row, position, target, nodes, cores_per_node, placement, "
      "network, contention, speed, kind, predicted_s, speedup, self_error_percent, partial, "
      "progress_s, measured_at_progress_s, rank_finish_s_json, why_stuck, topology_json, "
      "why_deferred, deferred_for_good, low_s, high_s, seen_share, taken_up) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  std::int64_t position = 0;
  for (const PredictionRecord& prediction : predictions) {
    insert.reset();
    insert.bind(1, step);
    insert.bind(2, position++);
    insert.bind(3, prediction.target);
    insert.bind(4, prediction.nodes);
    insert.bind(5, prediction.cores_per_node);
    insert.bind(6, prediction.placement);
    insert.bind(7, prediction.network);
    insert.bind(8, prediction.contention);
    insert.bind(9, prediction.speed);
    insert.bind(10, prediction.kind);
    insert.bind(11, prediction.predicted_s);
    bind_optional(insert, 12, prediction.speedup);
    bind_optional(insert, 13, prediction.self_error_percent);
    insert.bind(14, prediction.partial ? 1 : 0);
    insert.bind(15, prediction.progress_s);
    insert.bind(16, prediction.measured_at_progress_s);
    insert.bind(17, nlohmann::json(prediction.rank_finish_s).dump());
    insert.bind(18, prediction.why_stuck);
    insert.bind(19, topology_text(prediction.topology));
    insert.bind(20, prediction.why_deferred);
    insert.bind(21, prediction.deferred_for_good ? 1 : 0);
    bind_optional(insert, 22, prediction.low_s);
    bind_optional(insert, 23, prediction.high_s);
    insert.bind(24, prediction.seen_share);
    insert.bind(25, prediction.taken_up ? 1 : 0);
    insert.exec();
  }
}

namespace {

std::string selection(bool with_ranks, const char* condition) {
  return std::string("SELECT target, nodes, cores_per_node, placement, network, contention, speed, kind, "
                     "predicted_s, speedup, self_error_percent, partial, progress_s, measured_at_progress_s, "
                     "why_stuck, topology_json, why_deferred, deferred_for_good, low_s, high_s, seen_share, taken_up, ") +
         (with_ranks ? "rank_finish_s_json" : "'[]'") + " FROM prediction WHERE step_row = ?1" + condition +
         " ORDER BY position";
}

constexpr const char* kShownInLists =
    " AND position IN (SELECT self_position FROM step WHERE step_row = ?1 UNION SELECT fastest_position FROM "
    "step WHERE step_row = ?1)";

void read_row(const RowReader& row, PredictionRecord& prediction) {
  prediction.target = row.text(0);
  prediction.nodes = row.u32(1);
  prediction.cores_per_node = row.u32(2);
  prediction.placement = row.text(3);
  prediction.network = row.text(4);
  prediction.contention = row.text(5);
  prediction.speed = row.number(6);
  prediction.kind = row.text(7);
  prediction.predicted_s = row.number(8);
  prediction.speedup = row.optional_number(9);
  prediction.self_error_percent = row.optional_number(10);
  prediction.partial = row.flag(11);
  prediction.progress_s = row.number(12);
  prediction.measured_at_progress_s = row.number(13);
  prediction.why_stuck = row.text(14);
  prediction.topology = topology_of(row.text(15));
  prediction.why_deferred = row.text(16);
  prediction.deferred_for_good = row.flag(17);
  prediction.low_s = row.optional_number(18);
  prediction.high_s = row.optional_number(19);
  prediction.seen_share = row.optional_number(20).value_or(1);
  prediction.taken_up = row.flag(21);
  const std::string_view ranks = row.text(22);
  if (ranks == "[]") return;
  const auto finish = nlohmann::json::parse(ranks, nullptr, false);
  if (!finish.is_array()) return;
  for (const auto& value : finish) {
    if (value.is_number()) prediction.rank_finish_s.push_back(value.get<Seconds>());
  }
}

}  // namespace

Result<std::optional<StepRow>> PredictionStore::next_deferred(StepRow after) const {
  std::optional<StepRow> row;
  auto done = database_.read([&](SQLite::Database& connection) {
    SQLite::Statement query(connection,
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
  return of_each(steps, selection(with_ranks, ""));
}

Result<std::vector<std::vector<PredictionRecord>>> PredictionStore::summaries(
    const std::vector<StepRow>& steps) const {
  return of_each(steps, selection(false, kShownInLists));
}

Result<std::vector<std::vector<PredictionRecord>>> PredictionStore::of_each(const std::vector<StepRow>& steps,
                                                                            const std::string& sql) const {
  std::vector<std::vector<PredictionRecord>> all;
  all.reserve(steps.size());
  auto done = database_.read([&](SQLite::Database& connection) {
    RowReader rows(connection, sql);
    std::size_t most = 0;
    for (const StepRow step : steps) {
      rows.bind(1, step);
      auto& predictions = all.emplace_back();
      predictions.reserve(most);
      while (rows.next()) read_row(rows, predictions.emplace_back());
      rows.reset();
      most = std::max(most, predictions.size());
    }
  });
  if (!done) return done.error();
  return all;
}

}  // namespace lbf::db
