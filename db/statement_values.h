// What the stores share: optional numbers and texts in statements.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lbf::db {

// NULL where there is no value. `at`: the number or the name of a parameter.
template <typename At, typename T>
void bind_optional(SQLite::Statement& statement, At at, const std::optional<T>& value) {
  if (value) {
    statement.bind(at, *value);
  } else {
    statement.bind(at);
  }
}

inline std::optional<double> optional_of(const SQLite::Column& column) {
  return column.isNull() ? std::optional<double>() : std::optional<double>(column.getDouble());
}

inline std::optional<double> optional_of(const nlohmann::json& value) {
  return value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt;
}

// `value` in one line. Names from users may hold bytes that are not UTF-8: replaced, not refused.
inline std::string text_of(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace lbf::db
