// WindowClocks: how long each capture window took, all ranks together: in the run that was captured, and on
// each target of a replay.
//
// Place in the event's way: a part of *replay*, read by predictor/metric (extrapolation.h). Windows are named
// by index as ops name them (op.h: kWindowOpen, kWindowClose); index 0 began with the run. So are blocks, parts of the
// first few windows (op.h: kBlockEnd).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/units.h"
#include "predictor/engine/match/op.h"

namespace lbf::engine {

class WindowClocks {
 public:
  // Sums over ranks of what passed between open and close.
  struct Window {
    Seconds measured_s = 0;
    std::vector<Seconds> predicted_s;  // [K]
  };

  // The rank's clocks on the K targets and its measured time when the window opens, AWAY_S after the last one closed,
  // and when it closes.
  void open(std::size_t rank, Seconds measured_s, std::span<const Seconds> clock_s, Seconds away_s) {
    Start& start = start_of(rank);
    start.measured_s = measured_s;
    start.clock_s.assign(clock_s.begin(), clock_s.end());
    start.block_measured_s = measured_s;
    start.block_clock_s = start.clock_s;
    start.away_s += away_s;
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
  // A block of the rank ends: what passed since the one before it, or since its window opened.
  void end_block(std::size_t rank, std::uint32_t block, Seconds measured_s, std::span<const Seconds> clock_s) {
    Start& start = start_of(rank);
    if (blocks_.size() <= block) blocks_.resize(block + std::size_t{1});
    blocks_[block].measured_s += measured_s - start.block_measured_s;
    std::vector<Seconds>& predicted_s = blocks_[block].predicted_s;
    predicted_s.resize(clock_s.size());
    for (std::size_t k = 0; k < clock_s.size(); ++k) {
      predicted_s[k] += clock_s[k] - (start.block_clock_s.empty() ? 0 : start.block_clock_s[k]);
    }
    start.block_measured_s = measured_s;
    start.block_clock_s.assign(clock_s.begin(), clock_s.end());
  }
  // Did the rank ever close a window? If not all that it did is in the first.
  bool closed_once(std::size_t rank) const { return rank < starts_.size() && starts_[rank].closed_once; }
  const std::vector<Window>& windows() const { return windows_; }
  // Parts of windows, by index as ops name them (blocks.h).
  const std::vector<Window>& blocks() const { return blocks_; }
  // Measured time of the rank between its windows, of which nothing else is known.
  Seconds away_s(std::size_t rank) const { return rank < starts_.size() ? starts_[rank].away_s : 0; }

  Bytes memory_bytes() const {
    const auto targets = [](const std::vector<Window>& some) {
      return some.empty() ? 0 : some.back().predicted_s.size();
    };
    const Bytes clocks = sizeof(Seconds) * std::max(targets(windows_), targets(blocks_));
    return starts_.size() * (sizeof(Start) + 2 * clocks) +
           (windows_.size() + blocks_.size()) * (sizeof(Window) + clocks);
  }

  // Only these targets, ascending, stay.
  void drop_targets_except(const std::vector<std::size_t>& kept) {
    for (Start& start : starts_) {
      drop_values_except(start.clock_s, kept);
      drop_values_except(start.block_clock_s, kept);
    }
    for (Window& window : windows_) drop_values_except(window.predicted_s, kept);
    for (Window& block : blocks_) drop_values_except(block.predicted_s, kept);
  }

 private:
  struct Start {
    Seconds measured_s = 0;
    std::vector<Seconds> clock_s;  // empty: 0
    Seconds block_measured_s = 0;
    std::vector<Seconds> block_clock_s;  // empty: 0
    Seconds away_s = 0;
    bool closed_once = false;
  };
  Start& start_of(std::size_t rank) {
    if (starts_.size() <= rank) starts_.resize(rank + 1);
    return starts_[rank];
  }
  static void drop_values_except(std::vector<Seconds>& values, const std::vector<std::size_t>& kept) {
    if (values.empty()) return;
    for (std::size_t i = 0; i < kept.size(); ++i) values[i] = values[kept[i]];
    values.resize(kept.size());
  }

  std::vector<Start> starts_;  // by rank
  std::vector<Window> windows_;
  std::vector<Window> blocks_;
};

}  // namespace lbf::engine
