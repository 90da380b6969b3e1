// ProcedureStore: the tables `procedure` and `procedure_run`: a step's procedures and what is predicted of them.
#pragma once

#include <optional>

#include "db/database.h"
#include "db/records.h"

namespace SQLite {
class Database;
}

namespace lbf::db {

class ProcedureStore {
 public:
  // Inside a transaction. Without REPORT the rows are removed.
  static void replace(SQLite::Database& connection, StepRow step, const std::optional<ProcedureReport>& report);
  // Inside a read.
  static std::optional<ProcedureReport> of_step(SQLite::Database& connection, StepRow step);
};

}  // namespace lbf::db
