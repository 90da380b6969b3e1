#include "report/json_printer.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace lbf::report {
namespace {

constexpr std::size_t kIndent = 2;

}  // namespace

JsonLayout json_layout(std::string_view slurm_json) {
  return slurm_json == "compact" ? JsonLayout::kCompact : JsonLayout::kPretty;
}

void JsonPrinter::new_line() {
  if (!pretty_) return;
  out_ += '\n';
  out_.append(kIndent * depth(), ' ');
}

void JsonPrinter::on_open(std::string_view rest, bool is_first) {
  if (is_first) new_line();
  out_ += rest.front();
}

void JsonPrinter::on_close(char bracket, bool is_empty) {
  if (!is_empty) new_line();
  out_ += bracket;
}

void JsonPrinter::on_comma() {
  out_ += ',';
  new_line();
}

void JsonPrinter::on_colon() {
  out_ += pretty_ ? ": " : ":";
}

bool JsonPrinter::on_text(std::string_view text, bool is_plain, bool is_first) {
  if (is_first) new_line();
  if (is_plain) {
    out_ += text;
    return true;
  }
  const auto value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_string()) return false;
  out_ += value.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  return true;
}

void JsonPrinter::on_word(std::string_view word, bool is_first) {
  if (is_first) new_line();
  out_ += word;
}

const std::string& JsonPrinter::text() {
  if (is_whole() && !std::exchange(ended_, true)) out_ += '\n';
  return out_;
}

Result<std::string> print_json(std::string_view json, JsonLayout layout) {
  JsonPrinter printer(layout);
  if (!printer.add(json) || !printer.is_whole()) return invalid_input("lbfd answered something that is not JSON");
  return std::string(printer.text());
}

}  // namespace lbf::report
