// WholeLines: text that comes in pieces of any size, given on in lines.
#pragma once

#include <string>
#include <string_view>

namespace lbf::report {

class WholeLines {
 public:
  // Calls `take(line)` for every line that `piece` ends, without its end. A line is valid during the call only.
  template <typename Take>
  void add(std::string_view piece, const Take& take) {
    for (std::size_t end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
      if (begun_.empty()) {
        take(piece.substr(0, end));
      } else {
        begun_ += piece.substr(0, end);
        take(std::string_view(begun_));
        begun_.clear();
      }
      piece.remove_prefix(end + 1);
    }
    begun_ += piece;
  }
  // What no line end came after.
  std::string_view rest() const { return begun_; }

 private:
  std::string begun_;
};

}  // namespace lbf::report
