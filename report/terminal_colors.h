// Escape sequences of a terminal (ECMA-48, SGR).
#pragma once

#include <string_view>

namespace lbf::report {

inline constexpr std::string_view kBold = "\x1b[1m";
inline constexpr std::string_view kGreen = "\x1b[32m";
inline constexpr std::string_view kYellow = "\x1b[33m";
inline constexpr std::string_view kPlain = "\x1b[0m";

}  // namespace lbf::report
