// Words of an input in an error message: in quotes, on one line, not too long; and in a command to paste.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lbf {

inline constexpr std::size_t kMaxQuotedBytes = 80;

// Control characters become '?', also those that UTF-8 writes as two bytes (U+0080 to U+009F).
inline std::string on_one_line(std::string_view text) {
  std::string out(text);
  unsigned char before = 0;
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_c1 = before == 0xc2 && byte >= 0x80 && byte < 0xa0;
    if (byte < 0x20 || byte == 0x7f) c = '?';
    if (is_c1) (&c)[-1] = c = '?';
    before = byte;
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

// One word of a command line as a shell reads it back: quoted where it must be.
inline std::string shell_word(std::string_view word) {
  constexpr std::string_view kNeedsNoQuotes =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kNeedsNoQuotes) == std::string_view::npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

}  // namespace lbf
