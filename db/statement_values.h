// What the stores share: values as JSON text.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lbf::db {

inline std::optional<double> optional_of(const nlohmann::json& value) {
  return value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt;
}

// `value` in one line. Names from users may hold bytes that are not UTF-8: replaced, not refused.
inline std::string text_of(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace lbf::db
