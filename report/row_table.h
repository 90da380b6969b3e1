// Tables of records that are no steps: summaries of many steps, parts of one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/fields.h"
#include "report/text.h"

namespace lbf::report {

template <typename Row>
struct ColumnOf {
  std::string_view name;
  std::size_t width;
  bool left;
  std::string (*value)(const Row&);
  bool is_id = false;  // as wide as its longest cell
};

// A line for each row below the header; empty where there are no rows.
template <typename Row, std::size_t kCount>
std::string render_rows(const std::vector<Row>& rows, const std::array<ColumnOf<Row>, kCount>& columns,
                        const TableStyle& style) {
  std::string out;
  std::array<std::size_t, kCount> widths{};
  for (std::size_t i = 0; i < kCount; ++i) {
    widths[i] = columns[i].width;
    if (!columns[i].is_id) continue;
    for (const Row& row : rows) widths[i] = std::max(widths[i], display_width(columns[i].value(row)));
  }
  const auto line = [&](const auto& cell_of) {
    std::string text;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) text += style.parsable ? style.delimiter : " ";
      text += shown_cell(cell_of(i), widths[i], columns[i].left, style);
    }
    if (style.parsable) {
      if (style.trailing) text += style.delimiter;
    } else {
      text.erase(text.find_last_not_of(' ') + 1);
    }
    out += text + '\n';
  };
  if (rows.empty()) return out;
  if (style.header) {
    line([&](std::size_t i) { return std::string(columns[i].name); });
    if (!style.parsable) line([&](std::size_t i) { return std::string(widths[i], '-'); });
  }
  for (const Row& row : rows) {
    line([&](std::size_t i) { return columns[i].value(row); });
  }
  return out;
}

}  // namespace lbf::report
