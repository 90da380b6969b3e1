// The fields of lbf-report -o, in sacct's habits: names without regard to case, NAME%WIDTH, NAME%-WIDTH
// (left).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/step.h"

namespace lbf::report {

struct Field {
  std::string_view name;
  std::size_t width;  // columns, where -o does not say another width
  bool left;          // left justified
  bool of_target;     // one value per target, else one per step
  // What it is made from: keys of ROWS (docs/formats/http-v1.md) with commas between them. Every list has the keys of
  // job and step.
  std::string keys;
  // `target` is nullptr where a step has no prediction: fields of targets are empty then.
  std::string (*value)(const Step& step, const TargetPrediction* target);
  // Not nullptr: the value is so many bytes and is written as TableStyle says.
  std::optional<std::uint64_t> (*bytes)(const Step& step) = nullptr;
  // A name that is typed again, as in `lbf-report -j`: the column is as wide as its longest cell.
  bool is_id = false;
};

// In alphabetical order. Those that show one field of a record are lines of protocol/.
const std::vector<Field>& all_fields();

// Keys of ROWS that advise() and speedup() read of a step and its predictions, beside nodes and networks.
std::string_view gain_keys();

struct Column {
  const Field* field;
  std::size_t width;
  bool left;
  bool grows = false;  // with its longest cell, from `width` on
};

// "JobID,Target%20,Predicted". A name may be cut short as long as it starts a field's name; ALL: every field. Errors:
// kInvalidInput, with the name or the width that is wrong.
Result<std::vector<Column>> parse_format(std::string_view format);

// Whether one of the columns shows more of a step's targets than the fastest and the one that ran.
bool needs_targets(const std::vector<Column>& columns);

// The lists that are used without -o.
std::string_view default_step_format(bool many_users);  // one line per step
std::string_view default_target_format();               // one line per target
std::string_view long_format();                         // -l

// Four columns of names, as sacct -e prints them.
std::string help_format();

struct TableStyle {
  bool header = true;
  bool parsable = false;  // -p and -P: no widths
  bool trailing = false;  // -p: a delimiter at the end of every line, too
  std::string delimiter = "|";
  char unit = '\0';     // K, M, G, T or P for all numbers of bytes; '\0': each its own
  bool convert = true;  // false: bytes as they are
};

// A cell of a table: WIDTH columns or, where it is parsable, the text without the delimiter, whose first character
// becomes '?': names are chosen by users, and a row has as many delimiters as columns ask for.
std::string shown_cell(std::string text, std::size_t width, bool left, const TableStyle& style);

// 1536: "1.50K", "0.00M" with `unit` M; "1536" without `convert`. As sacct: 1024 bytes are 1K.
std::string format_bytes(std::uint64_t bytes, const TableStyle& style);

// A table that grows step by step; nothing but its text is kept of them.
class Table {
 public:
  Table(std::vector<Column> columns, TableStyle style);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // One line per target where a column is a target's, else one per step.
  void add(const Step& step);
  std::size_t steps() const;
  // The header, and the steps in the order of lists: by job, step and restart. REQUIRES: once.
  std::string take_text();

 private:
  class Lines;
  struct Part;
  friend std::string render_table(const std::vector<Step>& steps, const std::vector<Column>& columns,
                                  const TableStyle& style);

  std::unique_ptr<Lines> lines_;
  std::string text_;
  std::vector<Part> parts_;
};

// The same of steps that are in their order.
std::string render_table(const std::vector<Step>& steps, const std::vector<Column>& columns, const TableStyle& style);

}  // namespace lbf::report
