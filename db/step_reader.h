// StepReader: rows of the table step as records. For the files of db that read steps.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "db/field_sql.h"
#include "db/records.h"
#include "db/row_reader.h"
#include "db/step_conditions.h"

namespace lbf::db {

// Where a step's predictions are.
struct UnreadPredictions {
  StepRow row = 0;
  std::optional<std::int64_t> self_position;
  std::optional<std::int64_t> fastest_position;
};

// Throws SQLite::Exception. REQUIRES: the connection and the conditions outlive the object.
class StepReader {
 public:
  // `names`: columns of the table step, keys of what is computed (protocol/step_fields.h), and "cost": the whole of it
  // without its nodes and ranks. start_s is always read.
  StepReader(SQLite::Database& connection, std::span<const std::string_view> names, const StepConditions& which);
  // REQUIRES: `step` is as a record is made.
  bool next(UnreadPredictions& where, StepRecord& step);

 private:
  static std::string sql_of(std::span<const std::string_view> names, const StepConditions& which,
                            FieldReader<StepRecord>& of_step, FieldReader<CostRecord>& of_cost);

  FieldReader<StepRecord> of_step_{3};
  FieldReader<CostRecord> of_cost_{0};
  RowReader rows_;
};

// The names of everything that a document of a step has.
std::span<const std::string_view> names_of_documents();

}  // namespace lbf::db
