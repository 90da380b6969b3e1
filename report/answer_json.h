// What lbfd answered, as JSON in memory: never deeper than its documents are.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json_levels.h"

namespace lbf::report {

inline constexpr std::size_t kMostLevels = 64;  // of lbfd's documents

// is_discarded(): TEXT is no JSON, or has more levels.
inline nlohmann::json json_of_answer(std::string_view text) {
  if (has_more_levels(text, kMostLevels)) return nlohmann::json::value_t::discarded;
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace lbf::report
