// CostStore: the table `cost`, one row for each step whose relays reported costs.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <optional>

#include "db/cost_record.h"
#include "db/database.h"
#include "db/records.h"
#include "db/row_reader.h"

namespace lbf::db {

class CostStore {
 public:
  // Inside a transaction. Without COST the row is removed.
  static void replace(SQLite::Database& connection, StepRow step, const std::optional<CostRecord>& cost);

  // Inside a read: the nodes and ranks of costs, prepared once for as many steps as there are.
  class PartsReader {
   public:
    explicit PartsReader(SQLite::Database& connection);
    void add_to(CostRecord& cost, StepRow step);

   private:
    RowReader rows_;
  };
};

}  // namespace lbf::db
