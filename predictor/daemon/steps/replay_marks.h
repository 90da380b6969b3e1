// ReplayMarks: which steps are being replayed, where the next start of lbfd finds it.
//
// A step whose replay ends lbfd (a fault of the engine, memory that the kernel takes back) would do so again at each
// start. A mark is a write to memory that the kernel keeps when the process ends, so there can be one for every turn.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lbf::daemon {

class ReplayMarks {
 public:
  // The file PATH, made where there is none. Errors: kLimit, kIo.
  static Result<std::unique_ptr<ReplayMarks>> open(const std::string& path);
  ~ReplayMarks();
  ReplayMarks(const ReplayMarks&) = delete;
  ReplayMarks& operator=(const ReplayMarks&) = delete;

  // The steps that were being replayed when the process before this one ended, and what was at hand of each.
  const std::map<std::string, std::string>& found() const { return found_; }

  // STEP, a word without blanks, is being replayed while it lives. Thread-safe. Beyond kSlots at a time: not marked.
  class Mark {
   public:
    Mark(ReplayMarks& marks, std::string_view step);
    ~Mark();
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;
    void set_at_hand(std::string_view what);

   private:
    ReplayMarks& marks_;
    std::size_t slot_;
    std::size_t step_bytes_ = 0;
  };
  static constexpr std::size_t kSlots = 128;
  static constexpr std::size_t kSlotBytes = 192;

 private:
  explicit ReplayMarks(char* memory);
  char* const memory_;  // kSlots times kSlotBytes: "STEP WHAT", ends in 0
  std::map<std::string, std::string> found_;
  std::atomic<bool> taken_[kSlots] = {};
};

}  // namespace lbf::daemon
