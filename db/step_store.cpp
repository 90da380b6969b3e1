// StepStore, see step_store.h.
#include "db/step_store.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "db/cost_store.h"
#include "db/prediction_store.h"
#include "db/procedure_store.h"
#include "db/program_store.h"
#include "db/statement_values.h"
#include "db/step_conditions.h"

namespace lbf::db {
namespace {

using nlohmann::json;

template <typename T>
std::vector<T> list_of(const std::string& text) {
  const json value = json::parse(text, nullptr, false);
  if (!value.is_array()) return {};
  return value.get<std::vector<T>>();
}

StepState state_of_name(const std::string& name) {
  if (name == "complete") return StepState::kComplete;
  return name == "partial" ? StepState::kPartial : StepState::kRunning;
}

std::int64_t integer(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

constexpr const char* kUpsert = R"sql(
INSERT INTO step (cluster, job, step, restart, array_job, array_task, het_job, het_offset, user_name, uid,
  account, partition_name, job_name, command, command_json, command_cut, state, why_partial, nodes_json, ranks, node_of_rank_json, network, start_s, end_s, measured_s, events, messages, collectives, wire_bytes,
  stored_bytes, wildcard_receives, lost_events, mpi_s, unmodelled_s, capture_s, relay_cpu_s, notes_json,
  fastest_position, self_position)
VALUES (:cluster, :job, :step, :restart, :array_job, :array_task, :het_job, :het_offset, :user_name, :uid,
  :account, :partition_name, :job_name, :command, :command_json, :command_cut, :state, :why_partial, :nodes_json, :ranks, :node_of_rank_json, :network, :start_s, :end_s, :measured_s, :events, :messages, :collectives,
  :wire_bytes, :stored_bytes, :wildcard_receives, :lost_events, :mpi_s, :unmodelled_s, :capture_s, :relay_cpu_s,
  :notes_json, :fastest_position, :self_position)
ON CONFLICT (cluster, job, step, restart) DO UPDATE SET
  array_job = excluded.array_job, array_task = excluded.array_task, het_job = excluded.het_job,
  het_offset = excluded.het_offset, command_json = excluded.command_json, command_cut = excluded.command_cut,
  user_name = excluded.user_name, uid = excluded.uid, job_name = excluded.job_name, command = excluded.command,
  state = excluded.state, why_partial = excluded.why_partial, nodes_json = excluded.nodes_json,
  ranks = excluded.ranks, node_of_rank_json = excluded.node_of_rank_json, network = excluded.network,
  start_s = excluded.start_s, end_s = excluded.end_s, measured_s = excluded.measured_s, events = excluded.events,
  messages = excluded.messages, collectives = excluded.collectives, wire_bytes = excluded.wire_bytes,
  stored_bytes = excluded.stored_bytes, wildcard_receives = excluded.wildcard_receives,
  lost_events = excluded.lost_events, mpi_s = excluded.mpi_s, unmodelled_s = excluded.unmodelled_s,
  capture_s = excluded.capture_s, relay_cpu_s = excluded.relay_cpu_s, notes_json = excluded.notes_json,
  account = excluded.account, partition_name = excluded.partition_name,
  fastest_position = excluded.fastest_position, self_position = excluded.self_position
RETURNING step_row
)sql";

constexpr const char* kColumns = R"sql(
SELECT step_row, cluster, job, step, restart, array_job, array_task, het_job, het_offset, user_name, uid,
  account, partition_name, job_name, command, command_json, command_cut, state, why_partial, nodes_json, ranks, node_of_rank_json, network, start_s, end_s, measured_s, events, messages, collectives, wire_bytes,
  stored_bytes, wildcard_receives, lost_events, mpi_s, unmodelled_s, capture_s, relay_cpu_s, notes_json
FROM step WHERE 1
)sql";

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
      insert.bind(4, integer(call.calls));
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
  std::optional<std::int64_t> fastest;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (!predictions[i].why_stuck.empty() || !predictions[i].why_deferred.empty()) continue;
    if (!fastest || predictions[i].predicted_s < predictions[static_cast<std::size_t>(*fastest)].predicted_s)
      fastest = static_cast<std::int64_t>(i);
  }
  return fastest;
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
  if (count.executeStep() && static_cast<std::size_t>(count.getColumn(0).getInt64()) == step.nodes.size())
    return;
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

StoredStepRecord read_row(SQLite::Statement& query) {
  int column = 0;
  const auto next = [&]() { return query.getColumn(column++); };
  const auto next_u64 = [&]() { return static_cast<std::uint64_t>(next().getInt64()); };
  const auto next_u32 = [&]() { return static_cast<std::uint32_t>(next().getInt64()); };
  const auto next_optional = [&]() {
    const auto value = next();
    return value.isNull() ? std::optional<double>() : std::optional<double>(value.getDouble());
  };
  const auto next_optional_u32 = [&]() {
    const auto value = next();
    return value.isNull() ? std::optional<std::uint32_t>()
                          : std::optional<std::uint32_t>(static_cast<std::uint32_t>(value.getInt64()));
  };
  StoredStepRecord stored;
  StepRecord& step = stored.record;
  stored.row = next().getInt64();
  step.cluster = next().getString();
  step.job = next_u32();
  step.step = next_u32();
  step.restart = next_u32();
  step.array_job = next_optional_u32();
  step.array_task = next_optional_u32();
  step.het_job = next_optional_u32();
  step.het_offset = next_optional_u32();
  step.user_name = next().getString();
  step.uid = static_cast<uid_t>(next().getInt64());
  step.account = next().getString();
  step.partition = next().getString();
  step.job_name = next().getString();
  step.command = next().getString();
  if (const auto words = next(); !words.isNull())
    step.command_words = list_of<std::string>(words.getString());
  step.command_cut = next().getInt() != 0;
  step.state = state_of_name(next().getString());
  step.why_partial = next().getString();
  step.nodes = list_of<std::string>(next().getString());
  step.ranks = next().getInt();
  step.node_of_rank = list_of<std::uint32_t>(next().getString());
  step.network = next().getString();
  step.start_s = next().getDouble();
  step.end_s = next_optional();
  step.measured_s = next_optional();
  step.events = next_u64();
  step.messages = next_u64();
  step.collectives = next_u64();
  step.wire_bytes = next_u64();
  step.stored_bytes = next_u64();
  step.wildcard_receives = next_u64();
  step.lost_events = next_u64();
  step.mpi_s = next().getDouble();
  step.unmodelled_s = next().getDouble();
  step.capture_s = next().getDouble();
  step.relay_cpu_s = next().getDouble();
  step.notes = list_of<std::string>(next().getString());
  return stored;
}

void read_calls(SQLite::Database& connection, StoredStepRecord& stored) {
  SQLite::Statement query(
      connection,
      "SELECT function, calls, total_s, unmodelled FROM call WHERE step_row = ? ORDER BY position");
  query.bind(1, stored.row);
  while (query.executeStep()) {
    auto& calls = query.getColumn(3).getInt() != 0 ? stored.record.unmodelled_calls : stored.record.calls;
    calls.push_back({query.getColumn(0).getString(),
                     static_cast<std::uint64_t>(query.getColumn(1).getInt64()),
                     query.getColumn(2).getDouble()});
  }
}

}  // namespace

const char* name_of(StepState state) {
  switch (state) {
    case StepState::kRunning:
      return "running";
    case StepState::kComplete:
      return "complete";
    case StepState::kPartial:
      return "partial";
  }
  return "running";
}

bool StepQuery::matches(const StepRecord& record) const {
  const auto is = [](const auto& wanted, const auto& value) { return !wanted || value == *wanted; };
  return is(cluster, record.cluster) && is(job, record.job) &&
         (!job_group || record.job == *job_group || record.array_job == job_group ||
          record.het_job == job_group) &&
         is(array_task, record.array_task) && is(het_offset, record.het_offset) && is(step, record.step) &&
         is(restart, record.restart) && is(uid, record.uid) &&
         is(account, record.account) && is(partition, record.partition) &&
         (states.empty() || std::find(states.begin(), states.end(), record.state) != states.end()) &&
         (nodes.empty() ||
          std::find_first_of(nodes.begin(), nodes.end(), record.nodes.begin(), record.nodes.end()) !=
              nodes.end()) &&
         (!since_s || !record.end_s || *record.end_s >= *since_s) && (!until_s || record.start_s <= *until_s);
}

Result<StepRow> StepStore::put(const StepRecord& step, const std::vector<PredictionRecord>& predictions) {
  StepRow row = 0;
  auto written = database_.write([&](SQLite::Database& connection) {
    SQLite::Statement upsert(connection, kUpsert);
    upsert.bind(":cluster", step.cluster);
    upsert.bind(":job", step.job);
    upsert.bind(":step", step.step);
    upsert.bind(":restart", step.restart);
    bind_optional(upsert, ":array_job", step.array_job);
    bind_optional(upsert, ":array_task", step.array_task);
    bind_optional(upsert, ":het_job", step.het_job);
    bind_optional(upsert, ":het_offset", step.het_offset);
    upsert.bind(":user_name", step.user_name);
    upsert.bind(":uid", step.uid);
    upsert.bind(":account", step.account);
    upsert.bind(":partition_name", step.partition);
    upsert.bind(":job_name", step.job_name);
    upsert.bind(":command", step.command);
    bind_optional(upsert, ":command_json",
                  step.command_words ? std::optional(text_of(*step.command_words)) : std::nullopt);
    upsert.bind(":command_cut", step.command_cut ? 1 : 0);
    upsert.bind(":state", name_of(step.state));
    upsert.bind(":why_partial", step.why_partial);
    upsert.bind(":nodes_json", text_of(step.nodes));
    upsert.bind(":ranks", step.ranks);
    upsert.bind(":node_of_rank_json", text_of(step.node_of_rank));
    upsert.bind(":network", step.network);
    upsert.bind(":start_s", step.start_s);
    bind_optional(upsert, ":end_s", step.end_s);
    bind_optional(upsert, ":measured_s", step.measured_s);
    upsert.bind(":events", integer(step.events));
    upsert.bind(":messages", integer(step.messages));
    upsert.bind(":collectives", integer(step.collectives));
    upsert.bind(":wire_bytes", integer(step.wire_bytes));
    upsert.bind(":stored_bytes", integer(step.stored_bytes));
    upsert.bind(":wildcard_receives", integer(step.wildcard_receives));
    upsert.bind(":lost_events", integer(step.lost_events));
    upsert.bind(":mpi_s", step.mpi_s);
    upsert.bind(":unmodelled_s", step.unmodelled_s);
    upsert.bind(":capture_s", step.capture_s);
    upsert.bind(":relay_cpu_s", step.relay_cpu_s);
    upsert.bind(":notes_json", text_of(step.notes));
    bind_optional(upsert, ":fastest_position", fastest_position(predictions));
    bind_optional(upsert, ":self_position", self_position(predictions));
    if (!upsert.executeStep()) throw SQLite::Exception("no row came back from the insert");
    row = upsert.getColumn(0).getInt64();
    upsert.reset();
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
    SQLite::Statement statement(connection, kColumns + where.sql);
    where.bind_to(statement);
    while (statement.executeStep()) found.push_back(read_row(statement));
    SQLite::Statement replayed(connection, "SELECT lbfd_cpu_s FROM run WHERE step_row = ?");
    CostStore::Reader costs(connection);
    for (StoredStepRecord& stored : found) {
      stored.record.cost = costs.of_step(stored.row, with_calls);
      if (with_calls) {
        read_calls(connection, stored);
        stored.record.procedures = ProcedureStore::of_step(connection, stored.row);
      }
      replayed.reset();
      replayed.bind(1, stored.row);
      if (replayed.executeStep()) stored.record.lbfd_cpu_s = replayed.getColumn(0).getDouble();
    }
  });
  if (!done) return done.error();
  return std::vector<StoredStepRecord>(std::make_move_iterator(found.rbegin()),
                                       std::make_move_iterator(found.rend()));
}

Result<std::size_t> StepStore::remove_ended_before(double before_s, std::size_t most,
                                                   const std::function<bool(const StepRecord&)>& has_trace) {
  std::vector<StepRow> old;
  auto found = database_.read([&](SQLite::Database& connection) {
    SQLite::Statement statement(connection, std::string(kColumns) +
                                                " AND ifnull(end_s, 1e300) < ? AND +state <> 'running' ORDER BY "
                                                "ifnull(end_s, 1e300)");
    statement.bind(1, before_s);
    while (old.size() < most && statement.executeStep()) {
      const StoredStepRecord stored = read_row(statement);
      if (!has_trace(stored.record)) old.push_back(stored.row);
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

Result<std::optional<StepState>> StepStore::state_of(const std::string& cluster, std::uint32_t job,
                                                     std::uint32_t step, std::uint32_t restart) const {
  std::optional<StepState> state;
  auto done = database_.read([&](SQLite::Database& connection) {
    SQLite::Statement statement(
        connection, "SELECT state FROM step WHERE cluster = ? AND job = ? AND step = ? AND restart = ?");
    statement.bind(1, cluster);
    statement.bind(2, job);
    statement.bind(3, step);
    statement.bind(4, restart);
    if (statement.executeStep()) state = state_of_name(statement.getColumn(0).getString());
  });
  if (!done) return done.error();
  return state;
}

}  // namespace lbf::db
