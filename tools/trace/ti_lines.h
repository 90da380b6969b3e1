// Lines and words of a TI trace. No file but the import needs it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lbf::tools::ti {

// Two counts for each of a million ranks.
inline constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;
inline constexpr const char* kLineTooLong = "the line is longer than 64 MiB: is this a TI trace?";
using TiWords = std::vector<std::string_view>;  // RANK ACTION parameters ...

struct Place {
  std::uint64_t line = 0;    // number of the last one read
  std::uint64_t offset = 0;  // of the next one
};

inline Error error_at(const std::string& file, std::uint64_t line, const std::string& what) {
  return invalid_input(file + ":" + std::to_string(line) + ": " + what);
}
// The sink's errors keep their code; all are located.
inline Error error_at(const std::string& file, std::uint64_t line, const Error& what) {
  return {what.code, file + ":" + std::to_string(line) + ": " + what.message};
}

// As std::getline, but no more than kMaxLineBytes and a piece.
inline bool read_line(std::istream& in, std::string& line) {
  std::array<char, 1 << 14> piece;
  line.clear();
  for (;;) {
    in.getline(piece.data(), piece.size());
    const auto got = static_cast<std::size_t>(in.gcount());
    if (in.good()) {  // with its end
      line.append(piece.data(), got - 1);
      return true;
    }
    line.append(piece.data(), got);
    if (in.bad()) return false;
    if (in.eof()) return !line.empty();
    in.clear();
    if (line.size() > kMaxLineBytes) return true;
  }
}

// The next line that is neither empty nor a comment. False: end, or a line that is too long.
inline bool next_line(std::istream& in, std::string& line, Place& place) {
  while (read_line(in, line)) {
    ++place.line;
    place.offset += line.size() + 1;
    if (line.size() > kMaxLineBytes) return false;
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string::npos && line[first] != '#') return true;
  }
  line.clear();
  return false;
}

inline TiWords split_words(std::string_view line) {
  TiWords words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

}  // namespace lbf::tools::ti
