// StepReader, see step_reader.h.
#include "db/step_reader.h"

#include <algorithm>
#include <stdexcept>
#include <variant>

namespace lbf::db {
namespace {

constexpr std::string_view kCost = "cost";

const std::vector<ReadField<StepRecord>>& step_fields() {
  return read_fields<StepRecord, kStepFields>();
}

}  // namespace

std::span<const std::string_view> names_of_documents() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    protocol::for_each_field(kStepFields, [&out](const auto& field) {
      if ((field.in & protocol::In::kDocuments) == 0) return;
      if (field.sql.is_stored()) out.push_back(field.sql.column);
      if (!field.sql.expression.empty()) out.push_back(field.key);
    });
    return out;
  }();
  return names;
}

std::string StepReader::sql_of(std::span<const std::string_view> names, const StepConditions& which,
                               FieldReader<StepRecord>& of_step, FieldReader<CostRecord>& of_cost) {
  std::string sql = "SELECT s.step_row, s.self_position, s.fastest_position";
  const auto add = [&](std::string_view name) {
    const auto found = std::find_if(step_fields().begin(), step_fields().end(),
                                    [name](const auto& field) { return field.name == name; });
    if (found == step_fields().end()) throw std::logic_error("steps have no " + std::string(name));
    of_step.add(*found, "s.", sql);
  };
  add("start_s");
  for (const std::string_view name : names) {
    if (name != kCost && name != "start_s") add(name);
  }
  const bool with_cost = std::find(names.begin(), names.end(), kCost) != names.end();
  const bool with_run = std::find(names.begin(), names.end(), "lbfd_cpu_s") != names.end();
  if (with_cost) {
    sql += ", c.step_row";
    of_cost = FieldReader<CostRecord>(of_step.end() + 1);
    for (const auto& field : read_fields<CostRecord, kCostFields>()) of_cost.add(field, "c.", sql);
  }
  // Only numbers are sorted, and of the steps that are left out nothing else is read.
  sql += " FROM (SELECT step_row AS wanted_row FROM step WHERE 1" + which.sql +
         ") CROSS JOIN step s ON s.step_row = wanted_row";
  if (with_cost) sql += " LEFT JOIN cost c ON c.step_row = s.step_row";
  if (with_run) sql += " LEFT JOIN run r ON r.step_row = s.step_row";
  return sql;
}

StepReader::StepReader(SQLite::Database& connection, std::span<const std::string_view> names,
                       const StepConditions& which)
    : rows_(connection, sql_of(names, which, of_step_, of_cost_)) {
  for (std::size_t i = 0; i < which.values.size(); ++i) {
    std::visit([&](const auto& value) { rows_.bind(static_cast<int>(i) + 1, value); }, which.values[i]);
  }
}

bool StepReader::next(UnreadPredictions& where, StepRecord& step) {
  if (!rows_.next()) return false;
  where.row = rows_.integer(0);
  read_value(rows_, 1, where.self_position);
  read_value(rows_, 2, where.fastest_position);
  of_step_.read(rows_, step);
  if (of_cost_.end() > 0 && !rows_.is_null(of_step_.end())) of_cost_.read(rows_, step.cost.emplace());
  return true;
}

}  // namespace lbf::db
