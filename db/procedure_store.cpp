// ProcedureStore, see procedure_store.h.
#include "db/procedure_store.h"
#include "db/statement_values.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <nlohmann/json.hpp>
#include <string>

namespace lbf::db {
namespace {

using nlohmann::json;

std::string path_text(const std::optional<CriticalPathRecord>& path) {
  if (!path) return {};
  const json value{{"as_it_ran_s", path->as_it_ran_s}, {"length_s", path->length_s},
                   {"ends_at", path->ends_at},         {"other_work_s", path->other_work_s},
                   {"mpi_s", path->mpi_s},             {"blocked_s", path->blocked_s},
                   {"unseen_s", path->unseen_s},       {"ranks", path->ranks},
                   {"functions", path->functions},     {"partial", path->partial}};
  return value.dump();
}

// Written by this file alone.
std::optional<CriticalPathRecord> path_of(const std::string& text) {
  const json value = json::parse(text, nullptr, false);
  if (!value.is_object()) return std::nullopt;
  try {
    CriticalPathRecord path;
    value.at("as_it_ran_s").get_to(path.as_it_ran_s);
    value.at("length_s").get_to(path.length_s);
    value.at("ends_at").get_to(path.ends_at);
    value.at("other_work_s").get_to(path.other_work_s);
    value.at("mpi_s").get_to(path.mpi_s);
    value.at("blocked_s").get_to(path.blocked_s);
    path.unseen_s = value.value("unseen_s", 0.0);  // not in what older versions wrote
    value.at("ranks").get_to(path.ranks);
    value.at("functions").get_to(path.functions);
    value.at("partial").get_to(path.partial);
    return path;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

void ProcedureStore::replace(SQLite::Database& connection, StepRow step,
                             const std::optional<ProcedureReport>& report) {
  for (const char* const table : {"procedure", "procedure_run"}) {
    SQLite::Statement remove(connection, std::string("DELETE FROM ") + table + " WHERE step_row = ?");
    remove.bind(1, step);
    remove.exec();
  }
  if (!report) return;
  SQLite::Statement insert(
      connection,
      "INSERT INTO procedure (step_row, position, name, state, note, ranks, calls, inclusive_s, exclusive_s, "
      "critical_path_s, receiver_s, sender_s, zeroed_s, stayed_receiver_s, stayed_sender_s, predicted_cost, "
      "predicted_from, observed_cost, calls_per_s, samples, sampled_s, sampled_low_s, sampled_high_s) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  std::int64_t position = 0;
  for (const ProcedureRecord& procedure : report->procedures) {
    insert.reset();
    insert.bind(1, step);
    insert.bind(2, position++);
    insert.bind(3, procedure.name);
    insert.bind(4, procedure.state);
    insert.bind(5, procedure.note);
    insert.bind(6, static_cast<std::int64_t>(procedure.ranks));
    insert.bind(7, static_cast<std::int64_t>(procedure.calls));
    insert.bind(8, procedure.inclusive_s);
    insert.bind(9, procedure.exclusive_s);
    bind_optional(insert, 10, procedure.critical_path_s);
    bind_optional(insert, 11, procedure.receiver_s);
    bind_optional(insert, 12, procedure.sender_s);
    bind_optional(insert, 13, procedure.zeroed_s);
    bind_optional(insert, 14, procedure.stayed_receiver_s);
    bind_optional(insert, 15, procedure.stayed_sender_s);
    bind_optional(insert, 16, procedure.predicted_cost);
    insert.bind(17, procedure.predicted_from);
    bind_optional(insert, 18, procedure.observed_cost);
    bind_optional(insert, 19, procedure.calls_per_s);
    insert.bind(20, static_cast<std::int64_t>(procedure.samples));
    bind_optional(insert, 21, procedure.sampled_s);
    bind_optional(insert, 22, procedure.sampled_low_s);
    bind_optional(insert, 23, procedure.sampled_high_s);
    insert.exec();
  }
  SQLite::Statement run(connection,
                        "INSERT INTO procedure_run (step_row, path_json, why_deferred) VALUES (?, ?, ?)");
  run.bind(1, step);
  run.bind(2, path_text(report->path));
  run.bind(3, report->why_deferred);
  run.exec();
}

std::optional<ProcedureReport> ProcedureStore::of_step(SQLite::Database& connection, StepRow step) {
  SQLite::Statement run(connection, "SELECT path_json, why_deferred FROM procedure_run WHERE step_row = ?");
  run.bind(1, step);
  if (!run.executeStep()) return std::nullopt;
  ProcedureReport report;
  report.path = path_of(run.getColumn(0).getString());
  report.why_deferred = run.getColumn(1).getString();
  SQLite::Statement query(connection,
                          "SELECT name, state, note, ranks, calls, inclusive_s, exclusive_s, critical_path_s, "
                          "receiver_s, sender_s, zeroed_s, stayed_receiver_s, stayed_sender_s, predicted_cost, predicted_from, "
                          "observed_cost, calls_per_s, samples, sampled_s, sampled_low_s, sampled_high_s FROM procedure "
                          "WHERE step_row = ? ORDER BY position");
  query.bind(1, step);
  while (query.executeStep()) {
    ProcedureRecord procedure;
    procedure.name = query.getColumn(0).getString();
    procedure.state = query.getColumn(1).getString();
    procedure.note = query.getColumn(2).getString();
    procedure.ranks = static_cast<std::uint32_t>(query.getColumn(3).getInt64());
    procedure.calls = static_cast<std::uint64_t>(query.getColumn(4).getInt64());
    procedure.inclusive_s = query.getColumn(5).getDouble();
    procedure.exclusive_s = query.getColumn(6).getDouble();
    procedure.critical_path_s = optional_of(query.getColumn(7));
    procedure.receiver_s = optional_of(query.getColumn(8));
    procedure.sender_s = optional_of(query.getColumn(9));
    procedure.zeroed_s = optional_of(query.getColumn(10));
    procedure.stayed_receiver_s = optional_of(query.getColumn(11));
    procedure.stayed_sender_s = optional_of(query.getColumn(12));
    procedure.predicted_cost = optional_of(query.getColumn(13));
    procedure.predicted_from = query.getColumn(14).getString();
    procedure.observed_cost = optional_of(query.getColumn(15));
    procedure.calls_per_s = optional_of(query.getColumn(16));
    procedure.samples = static_cast<std::uint64_t>(query.getColumn(17).getInt64());
    procedure.sampled_s = optional_of(query.getColumn(18));
    procedure.sampled_low_s = optional_of(query.getColumn(19));
    procedure.sampled_high_s = optional_of(query.getColumn(20));
    report.procedures.push_back(std::move(procedure));
  }
  return report;
}

}  // namespace lbf::db
