// DearPart: what it takes to record a call that is dear (thousands of requests, a new communicator).
//
// Place in the event's way: inside *capture*, beside the samples (sampling.h), which meet such calls too seldom, take a
// long one for a thread that lost its processor, or take one for all calls.
#pragma once

#include <cstdint>

#include "spank_plugin/capture/recorder.h"

namespace lbf::capture {

// Times the part of CALL in which it lives, where it is for many requests or members. noexcept.
class DearPart {
 public:
  static constexpr std::uint32_t kAlways = 256;  // of calls that are dear whatever they are for
  DearPart(Call& call, std::uint32_t parts) noexcept : call_(call), parts_(parts) {
    if (is_dear()) begin_ = ticks_now();
  }
  ~DearPart() {
    if (is_dear()) [[unlikely]]
      call_.add_dear(ticks_now() - begin_, parts_);
  }
  DearPart(const DearPart&) = delete;
  DearPart& operator=(const DearPart&) = delete;

 private:
  bool is_dear() const noexcept { return parts_ >= kManyParts; }
  static constexpr std::uint32_t kManyParts = 64;
  Call& call_;
  std::uint32_t parts_;
  std::uint64_t begin_ = 0;
};

}  // namespace lbf::capture
