// What --yaml prints, made from lbfd's JSON text as it comes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/json_tokens.h"

namespace lbf::report {

// Block style; lists of numbers and texts on one line. Texts are in double quotes, so that "no", "1e3" and "2026-11-22"
// stay texts, with escapes for everything that is not ASCII.
class YamlPrinter final : public JsonTokens {
 public:
  // What was printed since the last clear(); after the end of the document its last line ends.
  const std::string& text();
  void clear() { out_.clear(); }

 private:
  enum class Style { kBlock, kLine };

  void on_open(std::string_view rest, bool is_first) override;
  void on_close(char bracket, bool is_empty) override;
  void on_comma() override {}
  void on_colon() override;
  bool on_text(std::string_view text, bool is_plain, bool is_first) override;
  void on_word(std::string_view word, bool is_first) override;

  // What stands before a key, or before a value that is not a map's.
  void begin_item(bool is_first);
  void begin_value(bool is_first);

  std::string out_ = "---";
  bool ended_ = false;
  std::vector<Style> styles_;  // of the open brackets
  bool after_key_ = false;
  bool after_dash_ = false;  // the next key is on this line
};

// A whole document. Errors: kInvalidInput (it is none).
Result<std::string> print_yaml(std::string_view json);

}  // namespace lbf::report
