// Pace: how fast a relay may send, when the administrator bounds it (network_limit_kBps of plugstack.conf).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace lbf::relay {

// A bucket of one second. What is sent goes at once, however long it is; the next one waits until it is earned, so
// that in any t seconds at most bytes_per_s * (t + 1) and one batch are sent. Times are CLOCK_MONOTONIC.
class Pace {
 public:
  // 0: no bound.
  explicit Pace(double bytes_per_s) : bytes_per_s_(bytes_per_s), left_bytes_(bytes_per_s) {}

  double bytes_per_s() const { return bytes_per_s_; }

  void sent(Bytes bytes, std::uint64_t now_ns) {
    if (!(bytes_per_s_ > 0)) return;
    earn(now_ns);
    left_bytes_ -= static_cast<double>(bytes);
  }

  // When the next one may be sent; not after NOW_NS: now.
  std::uint64_t free_ns(std::uint64_t now_ns) {
    if (!(bytes_per_s_ > 0)) return now_ns;
    earn(now_ns);
    if (left_bytes_ >= 0) return now_ns;
    return now_ns + static_cast<std::uint64_t>(-left_bytes_ / bytes_per_s_ * 1e9) + 1;
  }

 private:
  void earn(std::uint64_t now_ns) {
    if (last_ns_ > 0 && now_ns > last_ns_) {
      left_bytes_ = std::min(left_bytes_ + bytes_per_s_ * static_cast<double>(now_ns - last_ns_) * 1e-9, bytes_per_s_);
    }
    last_ns_ = std::max(last_ns_, now_ns);
  }

  double bytes_per_s_;
  double left_bytes_;
  std::uint64_t last_ns_ = 0;
};

}  // namespace lbf::relay
