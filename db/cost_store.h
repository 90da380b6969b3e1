// CostStore: the table `cost`, one row for each step whose relays reported costs.
#pragma once

#include <optional>

#include "db/cost_record.h"
#include "db/database.h"
#include "db/records.h"

namespace SQLite {
class Database;
}

namespace lbf::db {

class CostStore {
 public:
  // Inside a transaction. Without COST the row is removed.
  static void replace(SQLite::Database& connection, StepRow step, const std::optional<CostRecord>& cost);
  // Inside a read. WITH_PARTS: nodes and ranks, too.
  static std::optional<CostRecord> of_step(SQLite::Database& connection, StepRow step, bool with_parts);
};

}  // namespace lbf::db
