// The schema's history: db/migrations/NNNN_*.sql in order. Migration k (from 1) takes PRAGMA user_version
// from k - 1 to k.
#pragma once

#include <vector>

namespace lbf::db {

struct Migration {
  const char* name;
  const char* sql;
};

const std::vector<Migration>& migrations();

}  // namespace lbf::db
