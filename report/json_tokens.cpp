#include "report/json_tokens.h"

#include <algorithm>
#include <utility>

#include "report/answer_json.h"

namespace lbf::report {
namespace {

bool is_of_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == 'E' || c == '+' || c == '-' || c == '.';
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; }) &&
         text.find("\\u") == std::string_view::npos;
}

}  // namespace

std::size_t end_of_text(std::string_view rest) {
  for (std::size_t at = 1; at < rest.size(); ++at) {
    if (rest[at] == '"') return at + 1;
    if (rest[at] == '\\') ++at;
  }
  return 0;
}

bool JsonTokens::close(char bracket) {
  if (open_.empty() || open_.back() != (bracket == '}' ? '{' : '[')) return false;
  if (last_ != Last::kValue && last_ != Last::kOpening) return false;
  open_.pop_back();
  on_close(bracket, std::exchange(last_, Last::kValue) == Last::kOpening);
  return true;
}

std::size_t JsonTokens::take(std::string_view rest) {
  const bool value_may_begin = last_ != Last::kValue;
  const bool is_first = last_ == Last::kOpening;
  switch (rest.front()) {
    case ' ':
    case '\t':
    case '\r':
    case '\n':
      return 1;
    case '{':
    case '[':
      if (!value_may_begin || open_.size() == kMostLevels) return 0;
      on_open(rest, is_first);
      open_ += rest.front();
      last_ = Last::kOpening;
      return 1;
    case '}':
    case ']':
      return close(rest.front()) ? 1 : 0;
    case ',':
      if (open_.empty() || last_ != Last::kValue) return 0;
      on_comma();
      last_ = Last::kComma;
      return 1;
    case ':':
      if (open_.empty() || innermost() != '{' || last_ != Last::kValue) return 0;
      on_colon();
      last_ = Last::kColon;
      return 1;
    case '"': {
      const std::size_t end = value_may_begin ? end_of_text(rest) : 0;
      const std::string_view text = rest.substr(0, end);
      if (end == 0 || !on_text(text, is_plain(text), is_first)) return 0;
      last_ = Last::kValue;
      return end;
    }
    default: {
      const auto* const end = std::find_if_not(rest.begin(), rest.end(), is_of_word);
      const std::string_view word(rest.begin(), end);
      if (!value_may_begin || word.empty()) return 0;
      on_word(word, is_first);
      last_ = Last::kValue;
      return word.size();
    }
  }
}

bool JsonTokens::add(std::string_view part) {
  while (!part.empty()) {
    const std::size_t taken = take(part);
    if (taken == 0) return false;
    part.remove_prefix(taken);
  }
  return true;
}

}  // namespace lbf::report
