// Lines, words and numbers of a text trace, with errors that name the line. No file but the reader
// (event/text_trace_reader.cpp) needs it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <string_view>

#include "base/quoted.h"
#include "base/result.h"
#include "base/units.h"
#include "event/text_trace_format.h"

namespace lbf::text_trace {

// A `wait` for a million requests has room. `comm` and `nodes` have a number for each rank and may be longer.
inline constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;
inline constexpr std::size_t kBytesPerRank = 9;

// Well-formed UTF-8 without control characters (names end up in JSON, on terminals).
bool is_printable_utf8(std::string_view text);

constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// The keys of a line, with their values as they stand there.
struct Keys {
  unsigned seen = 0;
  std::string_view text[kKeyNames.size()];

  bool has(Key key) const { return (seen & key) != 0; }
  std::string_view value(Key key) const {
    return text[static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(key)))];
  }
};

// A stream as lines, read in large pieces.
class Lines {
 public:
  // REQUIRES: `in` outlives it, and so do the characters of `name`.
  Lines(std::istream& in, std::string_view name) : in_(in), name_(name) {}

  // How long a line may be.
  std::size_t longest_line_bytes() const { return longest_line_bytes_; }
  void allow_ranks(Rank ranks) {
    longest_line_bytes_ = kMaxLineBytes + kBytesPerRank * static_cast<std::size_t>(ranks);
  }

  // Goes to the next line. False at the end of the input or where it cannot be read on.
  bool next_line();
  // Why next_line() said false, where it was not the end of the input.
  bool stream_failed() const { return stream_failed_; }
  bool line_too_long() const { return line_too_long_; }

  // 1, 2 ... For an error about a line that is not there.
  std::uint64_t line_number() const { return line_number_; }
  void set_line_number(std::uint64_t number) { line_number_ = number; }

  // A comment starts at a '#' that starts a word.
  void strip_comment();
  void skip_blanks() {
    while (at_ != end_ && is_blank(*at_)) ++at_;
  }
  // Nothing is left of the line.
  bool at_end() const { return at_ == end_; }
  // REQUIRES: !at_end().
  char peek() const { return *at_; }

  // The next word; empty at the end of the line.
  std::string_view word() {
    skip_blanks();
    const char* start = at_;
    while (at_ != end_ && !is_blank(*at_)) ++at_;
    return {start, static_cast<std::size_t>(at_ - start)};
  }

  // What is left of the line, without blanks around it.
  std::string_view rest() {
    skip_blanks();
    const char* start = at_;
    const char* last = end_;
    while (last != start && is_blank(last[-1])) --last;
    at_ = end_;
    return {start, static_cast<std::size_t>(last - start)};
  }

  // The rest of a line of this kind: key=value ...
  Result<Keys> read_keys(const LineKind& kind);

  Error fail(const std::string& what) const;

  // A whole number up to `max`, a time in seconds. `what` it is, for the error.
  Result<std::uint64_t> whole(std::string_view text, std::string_view what, std::uint64_t max) const;
  Result<Seconds> seconds(std::string_view text, std::string_view what) const;

 private:
  std::istream& in_;
  std::string_view name_;
  std::string buffer_;
  std::size_t buffer_at_ = 0;
  std::size_t longest_line_bytes_ = kMaxLineBytes;
  std::size_t scanned_ = 0;  // bytes after buffer_at_ that are known to hold no newline
  bool input_ended_ = false;
  bool stream_failed_ = false;
  bool line_too_long_ = false;
  const char* at_ = nullptr;  // of the line: [at_, end_) is left
  const char* end_ = nullptr;
  std::uint64_t line_number_ = 0;
};

}  // namespace lbf::text_trace
