// Values as JSON text, for lists: a document in memory of each step took longer than everything else of a list.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <string>
#include <vector>

namespace lbf::daemon {

// Bytes that are not UTF-8 become U+FFFD, as in json_text().
void append_json(std::string& out, const std::string& text);
void append_json(std::string& out, const std::vector<std::string>& texts);
// The shortest digits that give the same number again, always with a fraction or an exponent: readers tell 1.0 from 1.
// null where it is not finite.
void append_json(std::string& out, double number);
void append_json(std::string& out, bool yes) = delete;  // a number would come out

inline void append_json(std::string& out, std::integral auto number) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

}  // namespace lbf::daemon
