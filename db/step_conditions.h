// StepConditions: a StepQuery as SQL. For the files of db that read steps.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "db/step_store.h"

namespace lbf::db {

// What comes after "FROM step WHERE 1", ORDER BY and LIMIT included (the latest first), with its values in the order of
// their question marks. What sqlite would choose among the indexes without statistics is not left to it: '+' before a
// column keeps that column's index out.
struct StepConditions {
  std::string sql;
  std::vector<std::variant<std::int64_t, double, std::string>> values;

  template <typename T>
  void add(const char* text, const T& value) {
    sql += text;
    bind(value);
  }
  template <typename T>
  void bind(const T& value) {
    if constexpr (std::integral<T>) {
      values.emplace_back(static_cast<std::int64_t>(value));
    } else {
      values.emplace_back(value);
    }
  }
  void bind_to(SQLite::Statement& statement) const;
};

// Inside a read. Throws SQLite::Exception.
StepConditions conditions_of(SQLite::Database& connection, const StepQuery& query);

}  // namespace lbf::db
