// StepRemarks: why a step's picture is not whole, and what people should know of it; each line once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace lbf::daemon {

class StepRemarks {
 public:
  // Makes the step partial.
  void add_reason(std::string reason) { changed_ |= add(reasons_, std::move(reason)); }
  void add_note(std::string note) { changed_ |= add(notes_, std::move(note)); }

  const std::vector<std::string>& reasons() const { return reasons_; }
  const std::vector<std::string>& notes() const { return notes_; }

  // Since the last mark_published().
  bool has_changed() const { return changed_; }
  void mark_changed() { changed_ = true; }
  void mark_published() { changed_ = false; }

 private:
  static constexpr std::size_t kMost = 64;  // a hostile stream could give one per batch
  static constexpr std::size_t kMostBytes = 500;

  static bool add(std::vector<std::string>& remarks, std::string remark) {
    if (remark.size() > kMostBytes) remark.resize(kMostBytes);
    if (remarks.size() >= kMost || std::find(remarks.begin(), remarks.end(), remark) != remarks.end()) return false;
    remarks.push_back(std::move(remark));
    return true;
  }

  std::vector<std::string> reasons_;
  std::vector<std::string> notes_;
  bool changed_ = true;
};

}  // namespace lbf::daemon
