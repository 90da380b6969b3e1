// The schema's history: db/migrations/NNNN_*.sql in order. PRAGMA user_version is the number of the last one applied.
#pragma once

#include <vector>

namespace lbf::db {

struct Migration {
  int number;  // NNNN; ascending, a number may be missing
  const char* name;
  const char* sql;
};

const std::vector<Migration>& migrations();

}  // namespace lbf::db
