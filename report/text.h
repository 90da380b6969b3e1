// Text for a terminal: what comes from a job (names, commands, notes) made harmless, and its width in
// columns.
//
// Place in the event's way: lbfd -> HTTP -> *report*. A job's name is chosen by its user and read by an
// operator, so control characters must never reach the operator's terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lbf::report {

// UTF-8 in which every control character (C0, DEL, C1), bidirectional override and broken sequence was
// replaced by U+FFFD, and every tab and line end by a blank.
std::string printable(std::string_view utf8);

// The first character of `utf8`, which is not empty.
std::string first_character(std::string_view utf8);

// Columns that a printable() text takes: 2 for East Asian wide characters and emoji, 0 for combining marks.
std::size_t display_width(std::string_view utf8);

// Exactly `width` columns: padded with blanks, or cut with a '+' in the last column, as sacct does.
std::string fit(std::string_view utf8, std::size_t width, bool left);

// At most `width` columns, cut with "..." where it was longer.
std::string shorten(std::string_view utf8, std::size_t width);

// Columns of the text that commands print where no terminal says otherwise.
inline constexpr std::size_t kTextWidth = 80;

// Words of `text` on lines of at most `width` columns, each line behind `indent` blanks. A word that is
// longer than a line has one of its own.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent);

// "1 run", "2 runs".
std::string count_of(std::uint64_t count, std::string_view word);

}  // namespace lbf::report
