// JsonTokens: walks JSON text token by token, without a document in memory. What --json and --yaml are printed by: a
// document of a day's steps took ten times as long as the printing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lbf::report {

class JsonTokens {
 public:
  // The next part of the document. REQUIRES: no text, number or word goes on in the next part; lines do not.
  // false: no part of a JSON document. Brackets, commas, colons and texts are looked at; what a word or a number is
  // not.
  bool add(std::string_view part);
  // Whether the document is whole.
  bool is_whole() const { return open_.empty() && last_ == Last::kValue; }

 protected:
  JsonTokens() = default;
  ~JsonTokens() = default;
  JsonTokens(const JsonTokens&) = default;
  JsonTokens& operator=(const JsonTokens&) = default;

  std::size_t depth() const { return open_.size(); }
  // The innermost open bracket. REQUIRES: there is one.
  char innermost() const { return open_.back(); }

  // `rest` begins with the bracket; it is not counted in depth() yet. `is_first`: of what is in the innermost bracket.
  virtual void on_open(std::string_view rest, bool is_first) = 0;
  // Not counted in depth() any more.
  virtual void on_close(char bracket, bool is_empty) = 0;
  virtual void on_comma() = 0;
  virtual void on_colon() = 0;
  // With its quotes; false: it is none. `is_plain`: ASCII that can be printed, and no \u in it.
  virtual bool on_text(std::string_view text, bool is_plain, bool is_first) = 0;
  virtual void on_word(std::string_view word, bool is_first) = 0;  // a number, true, false, null

 private:
  enum class Last { kNothing, kOpening, kValue, kComma, kColon };

  // How much of `rest` the token takes; 0: none belongs here.
  std::size_t take(std::string_view rest);
  bool close(char bracket);

  std::string open_;
  Last last_ = Last::kNothing;
};

// The text's end, from its first quote on: past its last quote; 0: it has none.
std::size_t end_of_text(std::string_view rest);

}  // namespace lbf::report
