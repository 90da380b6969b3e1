#include "report/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace lbf::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 0;  // bytes; 0: broken sequence (skip one byte)
};

// The first code point of `text` (not empty). Overlong forms, surrogates and values above U+10FFFF are
// broken.
CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  std::size_t length = 0;
  char32_t value = 0;
  char32_t smallest = 0;
  if ((lead & 0xE0U) == 0xC0U) {
    length = 2, value = lead & 0x1FU, smallest = 0x80;
  } else if ((lead & 0xF0U) == 0xE0U) {
    length = 3, value = lead & 0x0FU, smallest = 0x800;
  } else if ((lead & 0xF8U) == 0xF0U) {
    length = 4, value = lead & 0x07U, smallest = 0x10000;
  } else {
    return {};
  }
  if (text.size() < length) return {};
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    value = (value << 6) | (byte(i) & 0x3FU);
  }
  if (value < smallest || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
  return {value, length};
}

struct Range {
  char32_t first;
  char32_t last;
};

template <std::size_t N>
bool in_ranges(char32_t value, const std::array<Range, N>& ranges) {
  for (const Range& range : ranges) {
    if (value >= range.first && value <= range.last) return true;
  }
  return false;
}

// Bidirectional controls reorder what is printed after them; a line separator breaks the table.
constexpr std::array<Range, 5> kUnprintable{
    {{0x00, 0x1F}, {0x7F, 0x9F}, {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}}};
constexpr std::array<Range, 9> kZeroWidth{{{0x300, 0x36F},
                                           {0x483, 0x489},
                                           {0x591, 0x5BD},
                                           {0x610, 0x61A},
                                           {0x64B, 0x65F},
                                           {0x200B, 0x200D},
                                           {0x20D0, 0x20FF},
                                           {0xFE00, 0xFE0F},
                                           {0xFE20, 0xFE2F}}};
// East Asian Width W and F (Unicode Standard Annex 11), joined to blocks.
constexpr std::array<Range, 12> kDoubleWidth{{{0x1100, 0x115F},
                                              {0x2E80, 0x303E},
                                              {0x3041, 0x33FF},
                                              {0x3400, 0x4DBF},
                                              {0x4E00, 0x9FFF},
                                              {0xA000, 0xA4CF},
                                              {0xAC00, 0xD7A3},
                                              {0xF900, 0xFAFF},
                                              {0xFE30, 0xFE6F},
                                              {0xFF00, 0xFF60},
                                              {0x1F300, 0x1FAFF},
                                              {0x20000, 0x3FFFD}}};

std::size_t columns(char32_t value) {
  if (value < 0x300) return 1;
  if (in_ranges(value, kZeroWidth)) return 0;
  return in_ranges(value, kDoubleWidth) ? 2 : 1;
}

// The longest prefix of `utf8` that takes at most `width` columns.
std::string_view prefix(std::string_view utf8, std::size_t width) {
  std::size_t used = 0;
  std::size_t end = 0;
  while (end < utf8.size()) {
    const CodePoint point = decode(utf8.substr(end));
    const std::size_t length = point.length == 0 ? 1 : point.length;
    const std::size_t wide = point.length == 0 ? 1 : columns(point.value);
    if (used + wide > width) break;
    used += wide;
    end += length;
  }
  return utf8.substr(0, end);
}

// Most texts are: a byte is a column then, and nothing has to be decoded.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
}

}  // namespace

std::string printable(std::string_view utf8) {
  if (is_plain(utf8)) return std::string(utf8);
  std::string out;
  out.reserve(utf8.size());
  while (!utf8.empty()) {
    const CodePoint point = decode(utf8);
    if (point.length == 0) {
      out += kReplacement;
      utf8.remove_prefix(1);
      continue;
    }
    if (point.value == '\t' || point.value == '\n' || point.value == '\r') {
      out += ' ';
    } else if (in_ranges(point.value, kUnprintable)) {
      out += kReplacement;
    } else {
      out += utf8.substr(0, point.length);
    }
    utf8.remove_prefix(point.length);
  }
  return out;
}

std::string first_character(std::string_view utf8) {
  return std::string(utf8.substr(0, std::max<std::size_t>(decode(utf8).length, 1)));
}

std::size_t display_width(std::string_view utf8) {
  if (is_plain(utf8)) return utf8.size();
  std::size_t width = 0;
  while (!utf8.empty()) {
    const CodePoint point = decode(utf8);
    width += point.length == 0 ? 1 : columns(point.value);
    utf8.remove_prefix(point.length == 0 ? 1 : point.length);
  }
  return width;
}

std::string fit(std::string_view utf8, std::size_t width, bool left) {
  if (utf8.size() <= width && is_plain(utf8)) {
    std::string out(width, ' ');
    std::copy(utf8.begin(), utf8.end(), out.begin() + static_cast<std::ptrdiff_t>(left ? 0 : width - utf8.size()));
    return out;
  }
  std::string text(utf8);
  std::size_t used = display_width(text);
  if (used > width) {
    if (width == 0) return {};
    text = std::string(prefix(utf8, width - 1));
    used = display_width(text);
    // A wide character that no longer fits leaves a hole of one column before the '+'.
    text.append(width - 1 - used, ' ');
    text += '+';
    return text;
  }
  const std::string blanks(width - used, ' ');
  return left ? text + blanks : blanks + text;
}

std::string shorten(std::string_view utf8, std::size_t width) {
  if (display_width(utf8) <= width) return std::string(utf8);
  if (width <= 3) return std::string(prefix("...", width));
  return std::string(prefix(utf8, width - 3)) + "...";
}

std::string count_of(std::uint64_t count, std::string_view word) {
  return std::to_string(count) + ' ' + std::string(word) + (count == 1 ? "" : "s");
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string out;
  std::size_t used = 0;  // columns of the line so far, margin included; 0: no line yet
  while (!text.empty()) {
    const std::size_t start = text.find_first_not_of(' ');
    if (start == std::string_view::npos) break;
    text.remove_prefix(start);
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    const std::size_t wide = display_width(word);
    if (used != 0 && used + 1 + wide <= width) {
      out += ' ';
      used += 1 + wide;
    } else {
      if (used != 0) out += '\n';
      out += margin;
      used = indent + wide;
    }
    out += word;
  }
  if (used != 0) out += '\n';
  return out;
}

}  // namespace lbf::report
