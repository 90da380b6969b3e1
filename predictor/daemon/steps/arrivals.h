// Arrivals: how far the replay of a step is behind what came of it, for lbfd's metrics (http/metrics.h).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>

#include "base/units.h"

namespace lbf::daemon {

// Counts the bytes of stored batches. Streams are replayed in another order than they came in, so a time is that at
// which as much had come as is replayed now.
class Arrivals {
 public:
  using Clock = std::chrono::steady_clock;

  void came(Bytes bytes, Clock::time_point now) {
    came_ += bytes;
    if (marks_.empty() || (now - marks_.back().at >= kSpacing && marks_.size() < kMostMarks)) {
      marks_.push_back({now, came_});
    } else {
      marks_.back().until = came_;
    }
  }
  // BYTES of all that came are replayed.
  void replayed(Bytes bytes) {
    replayed_ = bytes;
    while (!marks_.empty() && marks_.front().until <= bytes) marks_.pop_front();
  }
  // What is not replayed waits for other relays, or is not replayed at all.
  void caught_up() { marks_.clear(); }

  // Since the oldest bytes came that lbfd has yet to replay; 0: there are none.
  Seconds lag_s(Clock::time_point now) const {
    return marks_.empty() ? 0 : std::chrono::duration<Seconds>(now - marks_.front().at).count();
  }
  Bytes backlog_bytes() const { return marks_.empty() ? 0 : came_ - std::min(came_, replayed_); }

 private:
  static constexpr std::chrono::seconds kSpacing{1};
  static constexpr std::size_t kMostMarks = 4096;
  struct Mark {
    Clock::time_point at;  // of the first of its bytes
    Bytes until = 0;
  };
  std::deque<Mark> marks_;
  Bytes came_ = 0;
  Bytes replayed_ = 0;
};

}  // namespace lbf::daemon
