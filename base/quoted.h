// Words of an input in an error message: in quotes, on one line, not too long.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lbf {

inline constexpr std::size_t kMaxQuotedBytes = 80;

// Control characters become '?'.
inline std::string on_one_line(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out;
}

// For terminals and logs: everything but printable ASCII becomes '?', and it ends after kMaxQuotedBytes.
inline std::string as_ascii(std::string_view text) {
  std::string out(text.substr(0, kMaxQuotedBytes));
  for (char& c : out) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return out;
}

// (Where <iomanip> is included, std::quoted is found for a std::string: say lbf::quoted there.)
inline std::string quoted(std::string_view text) {
  return "'" + on_one_line(text.substr(0, kMaxQuotedBytes)) + (text.size() > kMaxQuotedBytes ? "...'" : "'");
}

}  // namespace lbf
