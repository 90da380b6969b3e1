#include "report/yaml_printer.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace lbf::report {
namespace {

constexpr std::size_t kIndent = 2;

// Whether the list that `rest` begins with has nothing but texts, numbers and words, as far as this part goes.
bool fits_on_a_line(std::string_view rest) {
  for (std::size_t at = 1; at < rest.size(); ++at) {
    if (rest[at] == ']') return true;
    if (rest[at] == '[' || rest[at] == '{') return false;
    if (rest[at] == '"') {
      const std::size_t bytes = end_of_text(rest.substr(at));
      if (bytes == 0) return false;
      at += bytes - 1;
    }
  }
  return false;
}

// Keys that need no quotes: names that are no words of YAML's.
bool is_name(std::string_view key) {
  constexpr std::array<std::string_view, 9> kWords{"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
  return !key.empty() && (key.front() < '0' || key.front() > '9') && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }) && std::find(kWords.begin(), kWords.end(), key) == kWords.end();
}

// JSON writes what is above U+FFFF as two \u, YAML as one \U.
std::string with_long_escapes(const std::string& json) {
  std::string out;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const bool is_escape = json[at] == '\\' && at + 1 < json.size();
    if (!is_escape) {
      out += json[at];
      continue;
    }
    const std::size_t bytes = json[at + 1] == 'u' ? 6 : 2;
    const auto unit = [&](std::size_t from) { return std::stoul(json.substr(from + 2, 4), nullptr, 16); };
    if (bytes == 6 && unit(at) >= 0xD800 && unit(at) < 0xDC00 && json.compare(at + 6, 2, "\\u") == 0) {
      const unsigned long point = 0x10000 + ((unit(at) - 0xD800) << 10) + (unit(at + 6) - 0xDC00);
      std::array<char, 16> text{};
      (void)std::snprintf(text.data(), text.size(), "\\U%08lX", point);
      out += text.data();
      at += 11;
    } else {
      out.append(json, at, bytes);
      at += bytes - 1;
    }
  }
  return out;
}

}  // namespace

void YamlPrinter::begin_item(bool is_first) {
  if (styles_.empty()) return;
  if (styles_.back() == Style::kLine) {
    if (!is_first) out_ += ", ";
  } else if (!std::exchange(after_dash_, false)) {
    out_ += '\n';
    out_.append(kIndent * (styles_.size() - 1), ' ');
  }
}

void YamlPrinter::begin_value(bool is_first) {
  if (std::exchange(after_key_, false) || styles_.empty()) {
    out_ += ' ';
    return;
  }
  begin_item(is_first);
  if (styles_.back() == Style::kBlock) out_ += "- ";
}

void YamlPrinter::on_open(std::string_view rest, bool is_first) {
  const bool on_a_line = rest.front() == '[' && fits_on_a_line(rest);
  if (on_a_line) {
    begin_value(is_first);
    out_ += '[';
  } else if (!after_key_ && !styles_.empty()) {
    begin_item(is_first);
    out_ += "- ";
    after_dash_ = true;
  }
  after_key_ = false;
  styles_.push_back(on_a_line ? Style::kLine : Style::kBlock);
}

void YamlPrinter::on_close(char bracket, bool is_empty) {
  const Style style = styles_.back();
  styles_.pop_back();
  if (style == Style::kLine) {
    out_ += ']';
  } else if (is_empty) {
    if (!std::exchange(after_dash_, false)) out_ += ' ';
    out_ += bracket == '}' ? "{}" : "[]";
  }
}

void YamlPrinter::on_colon() {
  out_ += ':';
  after_key_ = true;
}

bool YamlPrinter::on_text(std::string_view text, bool is_plain, bool is_first) {
  const bool is_key = depth() > 0 && innermost() == '{' && !after_key_;
  if (is_key) {
    begin_item(is_first);
  } else {
    begin_value(is_first);
  }
  if (is_key && is_name(text.substr(1, text.size() - 2))) {
    out_ += text.substr(1, text.size() - 2);
    return true;
  }
  if (is_plain) {
    out_ += text;
    return true;
  }
  const auto value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_string()) return false;
  out_ += with_long_escapes(value.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace));
  return true;
}

void YamlPrinter::on_word(std::string_view word, bool is_first) {
  begin_value(is_first);
  const std::size_t exponent = word.find_first_of("eE");
  const bool is_number = word.front() == '-' || (word.front() >= '0' && word.front() <= '9');
  if (is_number && exponent != std::string_view::npos && word.find('.') == std::string_view::npos) {
    // YAML 1.1 takes 1e-7 for a text.
    out_.append(word.substr(0, exponent)).append(".0").append(word.substr(exponent));
  } else {
    out_ += word;
  }
}

const std::string& YamlPrinter::text() {
  if (is_whole() && !std::exchange(ended_, true)) out_ += '\n';
  return out_;
}

Result<std::string> print_yaml(std::string_view json) {
  YamlPrinter printer;
  if (!printer.add(json) || !printer.is_whole()) return invalid_input("lbfd answered something that is not JSON");
  return std::string(printer.text());
}

}  // namespace lbf::report
