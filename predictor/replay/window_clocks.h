// WindowClocks: how long each capture window took, all ranks together: in the run that was captured, and on
// each target of a replay.
//
// Place in the event's way: a part of *replay*, read by predictor/metric (extrapolation.h). Windows are named
// by index as ops name them (op.h: kWindowOpen, kWindowClose); index 0 began with the run.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/units.h"
#include "predictor/match/op.h"

namespace lbf {

class WindowClocks {
 public:
  // Sums over ranks of what passed between open and close.
  struct Window {
    Seconds measured_s = 0;
    std::vector<Seconds> predicted_s;  // [K]
  };

  // The rank's clocks on the K targets and its measured time when the window opens, and when it closes.
  void open(std::size_t rank, Seconds measured_s, std::span<const Seconds> clock_s) {
    Start& start = start_of(rank);
    start.measured_s = measured_s;
    start.clock_s.assign(clock_s.begin(), clock_s.end());
  }
  void close(std::size_t rank, std::uint32_t window, Seconds measured_s, std::span<const Seconds> clock_s) {
    const Start& start = start_of(rank);
    if (windows_.size() <= window) windows_.resize(window + std::size_t{1});
    windows_[window].measured_s += measured_s - start.measured_s;
    std::vector<Seconds>& predicted_s = windows_[window].predicted_s;
    predicted_s.resize(clock_s.size());
    for (std::size_t k = 0; k < clock_s.size(); ++k) {
      predicted_s[k] += clock_s[k] - (start.clock_s.empty() ? 0 : start.clock_s[k]);
    }
    starts_[rank].closed_once = true;
  }
  // Did the rank ever close a window? If not all that it did is in the first.
  bool closed_once(std::size_t rank) const { return rank < starts_.size() && starts_[rank].closed_once; }
  const std::vector<Window>& windows() const { return windows_; }

  // Only these targets, ascending, stay.
  void keep(const std::vector<std::size_t>& kept) {
    for (Start& start : starts_) keep(start.clock_s, kept);
    for (Window& window : windows_) keep(window.predicted_s, kept);
  }

 private:
  struct Start {
    Seconds measured_s = 0;
    std::vector<Seconds> clock_s;  // empty: 0
    bool closed_once = false;
  };
  Start& start_of(std::size_t rank) {
    if (starts_.size() <= rank) starts_.resize(rank + 1);
    return starts_[rank];
  }
  static void keep(std::vector<Seconds>& values, const std::vector<std::size_t>& kept) {
    if (values.empty()) return;
    for (std::size_t i = 0; i < kept.size(); ++i) values[i] = values[kept[i]];
    values.resize(kept.size());
  }

  std::vector<Start> starts_;  // by rank
  std::vector<Window> windows_;
};

}  // namespace lbf
