// Numbers and texts: a number that is a whole text (a command line's, a configuration's, a trace's word), and a text of
// a number.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace lbf {

// `text` as a Number, the same in every locale.
//
// Taken: decimal digits, as many zeros before them as there are, '-' before them where Number is signed; in
// another `base` (2 to 36, whole numbers only) its digits, small or capital. A float or double also with '.'
// and an exponent ("0.5", ".5", "5.", "1e-3"), rounded to the nearest one.
// Refused, as nothing: empty text; blanks or anything else before or behind the number; '+'; "0x"; '-' where
// Number is unsigned, also "-0"; what is too large for Number, or so small that it would become 0; "inf" and
// "nan". Which of these it is, the caller does not learn: who has to say it reads for himself
// (event/text_trace_lines.cpp).
template <typename Number>
std::optional<Number> parse_number(std::string_view text, [[maybe_unused]] int base = 10) {
  static_assert(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>);
  Number value{};
  const char* const end = text.data() + text.size();
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<Number>) {
    read = std::from_chars(text.data(), end, value);
    if (!std::isfinite(value)) return std::nullopt;
  } else {
    read = std::from_chars(text.data(), end, value, base);
  }
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

// `value` as printf writes it with `format` ("%.4g"), which has one conversion of a double; cut after 63 characters.
inline std::string format_number(double value, const char* format) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

}  // namespace lbf
