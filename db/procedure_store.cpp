// ProcedureStore, see procedure_store.h.
#include "db/procedure_store.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <nlohmann/json.hpp>
#include <string>

#include "db/field_sql.h"

namespace lbf::db {
namespace {

using nlohmann::json;

std::string path_text(const std::optional<CriticalPathRecord>& path) {
  if (!path) return {};
  json value{{"ranks", path->ranks}, {"functions", path->functions}};
  protocol::for_each_field(protocol::kCriticalPathTable,
                           [&](const auto& field) { value[std::string(field.key)] = *path.*field.member; });
  return value.dump();
}

// Written by this file alone.
std::optional<CriticalPathRecord> path_of(const std::string& text) {
  const json value = json::parse(text, nullptr, false);
  if (!value.is_object()) return std::nullopt;
  try {
    CriticalPathRecord path;
    protocol::for_each_field(protocol::kCriticalPathTable, [&](const auto& field) {
      const auto found = value.find(field.key);  // unseen_s is not in what older versions wrote
      if (found != value.end()) found->get_to(path.*field.member);
    });
    value.at("ranks").get_to(path.ranks);
    value.at("functions").get_to(path.functions);
    return path;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

void ProcedureStore::replace(SQLite::Database& connection, StepRow step, const std::optional<ProcedureReport>& report) {
  for (const char* const table : {"procedure", "procedure_run"}) {
    SQLite::Statement remove(connection, std::string("DELETE FROM ") + table + " WHERE step_row = ?");
    remove.bind(1, step);
    remove.exec();
  }
  if (!report) return;
  static const std::string sql = "INSERT INTO procedure (step_row, position" +
                                 each_column(kProcedureFields, [](std::string_view name) { return name; }) +
                                 ") VALUES (?, ?" +
                                 each_column(kProcedureFields, [](std::string_view) { return "?"; }) + ")";
  SQLite::Statement insert(connection, sql);
  std::int64_t position = 0;
  for (const ProcedureRecord& procedure : report->procedures) {
    insert.reset();
    insert.bind(1, step);
    insert.bind(2, position++);
    bind_fields(insert, 3, kProcedureFields, procedure);
    insert.exec();
  }
  SQLite::Statement run(connection, "INSERT INTO procedure_run (step_row, path_json, why_deferred) VALUES (?, ?, ?)");
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
  std::string sql = "SELECT position";
  FieldReader<ProcedureRecord> fields(1);
  for (const auto& field : read_fields<ProcedureRecord, kProcedureFields>()) fields.add(field, "", sql);
  RowReader rows(connection, sql + " FROM procedure WHERE step_row = ? ORDER BY position");
  rows.bind(1, step);
  while (rows.next()) fields.read(rows, report.procedures.emplace_back());
  return report;
}

}  // namespace lbf::db
