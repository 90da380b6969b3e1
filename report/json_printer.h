// What --json prints, made from lbfd's text as it comes.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "report/json_tokens.h"

namespace lbf::report {

enum class JsonLayout { kPretty, kCompact };

// As sacct's: "compact" is what SLURM_JSON=compact asks for, everything else is pretty.
JsonLayout json_layout(std::string_view slurm_json);

// Pretty: two blanks for each level, a line for each value. Texts are printed with \u escapes for everything that is
// not ASCII, so that nothing in them acts on a terminal; numbers as they came.
class JsonPrinter final : public JsonTokens {
 public:
  explicit JsonPrinter(JsonLayout layout) : pretty_(layout == JsonLayout::kPretty) {}

  // What was printed since the last clear(); after the end of the document its last line ends.
  const std::string& text();
  void clear() { out_.clear(); }

 private:
  void on_open(std::string_view rest, bool is_first) override;
  void on_close(char bracket, bool is_empty) override;
  void on_comma() override;
  void on_colon() override;
  bool on_text(std::string_view text, bool is_plain, bool is_first) override;
  void on_word(std::string_view word, bool is_first) override;
  void new_line();

  const bool pretty_;
  std::string out_;
  bool ended_ = false;
};

// A whole document. Errors: kInvalidInput (it is none).
Result<std::string> print_json(std::string_view json, JsonLayout layout);

}  // namespace lbf::report
