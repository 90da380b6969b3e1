// CostStore: the table `cost`, one row for each step whose relays reported costs.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <optional>

#include "db/cost_record.h"
#include "db/database.h"
#include "db/records.h"

namespace lbf::db {

class CostStore {
 public:
  // Inside a transaction. Without COST the row is removed.
  static void replace(SQLite::Database& connection, StepRow step, const std::optional<CostRecord>& cost);

  // Inside a read: prepared once, for as many steps as there are. WITH_PARTS: nodes and ranks, too.
  class Reader {
   public:
    explicit Reader(SQLite::Database& connection);
    std::optional<CostRecord> of_step(StepRow step, bool with_parts);

   private:
    SQLite::Statement query_;
  };
};

}  // namespace lbf::db
