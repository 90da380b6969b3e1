// StepStore, see step_store.h.
#include "db/step_store.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>

#include "db/cost_store.h"
#include "db/prediction_store.h"
#include "db/procedure_store.h"
#include "db/program_store.h"
#include "db/step_list.h"
#include "db/step_reader.h"

namespace lbf::db {
namespace {

// A step's name: what the row stays with when the step is put again.
bool is_of_key(std::string_view column) {
  return column == "cluster" || column == "job" || column == "step" || column == "restart" || column == "submit_s";
}

const std::string& upsert() {
  static const std::string sql = "INSERT INTO step (fastest_position, self_position" +
                                 each_column(kStepFields, [](std::string_view name) { return name; }) +
                                 ") VALUES (?, ?" + each_column(kStepFields, [](std::string_view) { return "?"; }) +
                                 ") ON CONFLICT (cluster, job, step, restart, submit_s) DO UPDATE SET fastest_position "
                                 "= excluded.fastest_position, "
                                 "self_position = excluded.self_position" +
                                 [] {
                                   std::string updates;
                                   protocol::for_each_field(kStepFields, [&](const auto& field) {
                                     const std::string name(field.sql.column);
                                     if (field.sql.is_stored() && !is_of_key(name))
                                       updates += ", " + name + " = excluded." + name;
                                   });
                                   return updates;
                                 }() +
                                 " RETURNING step_row";
  return sql;
}

void insert_calls(SQLite::Database& connection, StepRow row, const StepRecord& step) {
  SQLite::Statement remove(connection, "DELETE FROM call WHERE step_row = ?");
  remove.bind(1, row);
  remove.exec();
  SQLite::Statement insert(connection, "INSERT INTO call VALUES (?, ?, ?, ?, ?, ?)");
  std::int64_t position = 0;
  const auto insert_all = [&](const std::vector<CallRecord>& calls, int unmodelled) {
    for (const CallRecord& call : calls) {
      insert.reset();
      insert.bind(1, row);
      insert.bind(2, position++);
      insert.bind(3, call.function);
      bind_value(insert, 4, call.calls);
      insert.bind(5, call.total_s);
      insert.bind(6, unmodelled);
      insert.exec();
    }
  };
  insert_all(step.calls, 0);
  insert_all(step.unmodelled_calls, 1);
}

// The predictions that a list of steps shows, so that it reads no others.
std::optional<std::int64_t> fastest_position(const std::vector<PredictionRecord>& predictions) {
  const PredictionRecord* const fastest = fastest_of(predictions);
  return fastest != nullptr ? std::optional<std::int64_t>(fastest - predictions.data()) : std::nullopt;
}

std::optional<std::int64_t> self_position(const std::vector<PredictionRecord>& predictions) {
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (predictions[i].kind == "self") return static_cast<std::int64_t>(i);
  }
  return std::nullopt;
}

// A running step is written every few seconds and its nodes change once at most, when the relays have said which
// of them have ranks.
void insert_nodes(SQLite::Database& connection, StepRow row, const StepRecord& step) {
  SQLite::Statement count(connection, "SELECT count(*) FROM step_node WHERE step_row = ?");
  count.bind(1, row);
  if (count.executeStep() && static_cast<std::size_t>(count.getColumn(0).getInt64()) == step.nodes.size()) return;
  SQLite::Statement remove(connection, "DELETE FROM step_node WHERE step_row = ?");
  remove.bind(1, row);
  remove.exec();
  SQLite::Statement insert(connection, "INSERT OR IGNORE INTO step_node (node, step_row) VALUES (?, ?)");
  for (const std::string& node : step.nodes) {
    insert.reset();
    insert.bind(1, node);
    insert.bind(2, row);
    insert.exec();
  }
}

void read_calls(SQLite::Database& connection, StoredStepRecord& stored) {
  SQLite::Statement query(connection,
                          "SELECT function, calls, total_s, unmodelled FROM call WHERE step_row = ? ORDER BY position");
  query.bind(1, stored.row);
  while (query.executeStep()) {
    auto& calls = query.getColumn(3).getInt() != 0 ? stored.record.unmodelled_calls : stored.record.calls;
    calls.push_back({query.getColumn(0).getString(), static_cast<std::uint64_t>(query.getColumn(1).getInt64()),
                     query.getColumn(2).getDouble()});
  }
}

}  // namespace

bool StepQuery::matches(const StepRecord& record) const {
  const auto is = [](const auto& wanted, const auto& value) { return !wanted || value == *wanted; };
  return is(cluster, record.cluster) && is(job, record.job) &&
         (!job_group || record.job == *job_group || record.array_job == job_group || record.het_job == job_group) &&
         is(array_task, record.array_task) && is(het_offset, record.het_offset) && is(step, record.step) &&
         is(restart, record.restart) && is(submit_s, record.submit_s) && is(uid, record.uid) &&
         is(account, record.account) && is(partition, record.partition) && is(job_name, record.job_name) &&
         (states.empty() || std::find(states.begin(), states.end(), record.state) != states.end()) &&
         (nodes.empty() ||
          std::find_first_of(nodes.begin(), nodes.end(), record.nodes.begin(), record.nodes.end()) != nodes.end()) &&
         (!since_s || !record.end_s || *record.end_s >= *since_s) && (!until_s || record.start_s <= *until_s);
}

Result<StepRow> StepStore::put(const StepRecord& step, const std::vector<PredictionRecord>& predictions) {
  StepRow row = 0;
  auto written = database_.write([&](SQLite::Database& connection) {
    SQLite::Statement put_step(connection, upsert());
    bind_value(put_step, 1, fastest_position(predictions));
    bind_value(put_step, 2, self_position(predictions));
    bind_fields(put_step, 3, kStepFields, step);
    if (!put_step.executeStep()) throw SQLite::Exception("no row came back from the insert");
    row = put_step.getColumn(0).getInt64();
    put_step.reset();
    insert_calls(connection, row, step);
    insert_nodes(connection, row, step);
    CostStore::replace(connection, row, step.cost);
    PredictionStore::replace(connection, row, predictions);
    ProcedureStore::replace(connection, row, step.procedures);
    ProgramStore::record(connection, row, step, predictions);
  });
  if (!written) return written.error();
  return row;
}

Result<std::vector<StoredStepRecord>> StepStore::find(const StepQuery& query, bool with_calls) const {
  std::vector<StoredStepRecord> found;
  auto done = database_.read([&](SQLite::Database& connection) {
    const StepConditions where = conditions_of(connection, query);
    std::vector<std::string_view> names(names_of_documents().begin(), names_of_documents().end());
    names.push_back("cost");
    StepReader steps(connection, names, where);
    for (UnreadPredictions at; steps.next(at, found.emplace_back().record);) found.back().row = at.row;
    found.pop_back();
    if (!with_calls) return;
    CostStore::PartsReader parts(connection);
    for (StoredStepRecord& stored : found) {
      if (stored.record.cost) parts.add_to(*stored.record.cost, stored.row);
      read_calls(connection, stored);
      stored.record.procedures = ProcedureStore::of_step(connection, stored.row);
    }
  });
  if (!done) return done.error();
  return std::vector<StoredStepRecord>(std::make_move_iterator(found.rbegin()), std::make_move_iterator(found.rend()));
}

Result<std::size_t> StepStore::remove_ended_before(double before_s, std::size_t most,
                                                   const std::function<bool(const StepRecord&)>& has_trace) {
  std::vector<StepRow> old;
  auto found = database_.read([&](SQLite::Database& connection) {
    StepConditions ended;
    ended.add(" AND ifnull(end_s, 1e300) < ? AND +state <> 'running' ORDER BY ifnull(end_s, 1e300) LIMIT -1", before_s);
    StepReader steps(connection, names_of_documents(), ended);
    UnreadPredictions at;
    for (StepRecord step; old.size() < most && steps.next(at, step); step = {}) {
      if (!has_trace(step)) old.push_back(at.row);
    }
  });
  if (!found) return found.error();
  if (old.empty()) return std::size_t{0};
  auto removed = database_.write([&](SQLite::Database& connection) {
    SQLite::Statement remove(connection, "DELETE FROM step WHERE step_row = ?");
    for (const StepRow row : old) {
      remove.reset();
      remove.bind(1, row);
      remove.exec();
    }
  });
  if (!removed) return removed.error();
  return old.size();
}

Result<std::optional<StepState>> StepStore::state_of(const std::string& cluster, std::uint32_t job, std::uint32_t step,
                                                     std::uint32_t restart, std::uint64_t submit_s) const {
  std::optional<StepState> state;
  auto done = database_.read([&](SQLite::Database& connection) {
    SQLite::Statement statement(connection,
                                "SELECT state FROM step WHERE cluster = ? AND job = ? AND step = ? AND restart = ? AND "
                                "submit_s = ?");
    statement.bind(1, cluster);
    statement.bind(2, job);
    statement.bind(3, step);
    statement.bind(4, restart);
    statement.bind(5, static_cast<std::int64_t>(submit_s));
    if (statement.executeStep()) state = protocol::state_of_name(statement.getColumn(0).getString());
  });
  if (!done) return done.error();
  return state;
}

}  // namespace lbf::db
