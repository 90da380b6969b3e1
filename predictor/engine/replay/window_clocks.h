// WindowClocks: how long each capture window took, all ranks together: in the run that was captured, and on
// each target of a replay.
//
// A rank closes its window with its next call. One that sits in a long call records on when the others have closed
// theirs: what it waits for there nobody saw, and the replay takes it for there at once. Such a part of a window is
// *unshared* and counts as not seen.
//
// Place in the event's way: a part of *replay*, read by predictor/metric (extrapolation.h). Windows are named
// by index as ops name them (op.h: kWindowOpen, kWindowClose); index 0 began with the run. So are blocks, parts of the
// first few windows (op.h: kBlockEnd).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "predictor/engine/match/op.h"

namespace lbf::engine {

class WindowClocks {
 public:
  // In the run that was captured, and on one target.
  struct Times {
    Seconds measured_s = 0;
    Seconds predicted_s = 0;
  };
  // Sums over ranks.
  struct Sums {
    Seconds measured_s = 0;
    std::vector<Seconds> predicted_s;  // [K]

    Times times(std::size_t k) const { return {measured_s, predicted_s.empty() ? 0 : predicted_s[k]}; }
  };

  // How a rank came to the close: out of a call, or most of the window is the work just before it, of which nothing is
  // to be doubted; or the rank's times are without what it did outside of the program's scope, and so are not to be
  // compared with those of others.
  enum class Closing : std::uint8_t { kAfterCall, kInWork, kScoped };
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
  void close(std::size_t rank, std::uint32_t window, Seconds measured_s, std::span<const Seconds> clock_s,
             Closing closing) {
    Start& start = start_of(rank);
    if (windows_.size() <= window) windows_.resize(window + std::size_t{1});
    Part part{rank, start.measured_s, measured_s, {clock_s.begin(), clock_s.end()}, closing};
    for (std::size_t k = 0; k < start.clock_s.size(); ++k) part.predicted_s[k] -= start.clock_s[k];
    start.closed_once = true;
    if (closing == Closing::kScoped) return settle_scoped(windows_[window], part);
    windows_[window].note_close(part.begin_s, part.end_s);
    windows_[window].parts.push_back(std::move(part));
    for (; windows_.size() > settled_ + kUnsettledWindows; ++settled_) settle(windows_[settled_]);
    if (window < settled_) settle(windows_[window]);
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
  std::size_t windows() const { return windows_.size(); }
  // Of the ranks that recorded it together, on target K.
  Times seen(std::size_t window, std::size_t k) const {
    Times sum = windows_[window].settled.times(k);
    for (const Part& part : windows_[window].parts) {
      if (windows_[window].is_unshared(part)) continue;
      sum.measured_s += part.end_s - part.begin_s;
      sum.predicted_s += part.predicted_s[k];
    }
    return sum;
  }
  // Whether a rank records window 0 on when another one closed it long ago: it is at MEASURED_S.
  bool is_unshared_start(Seconds measured_s) const {
    return !windows_.empty() && windows_.front().is_unshared({0, 0, measured_s, {}, Closing::kAfterCall});
  }
  // Its blocks do not stand for it: not all of it was recorded together.
  bool has_unshared(std::size_t window) const {
    const Window& of = windows_[window];
    return of.any_unshared || of.any_scoped ||
           std::any_of(of.parts.begin(), of.parts.end(), [&of](const Part& part) { return of.is_unshared(part); });
  }
  // By rank, in windows that it closed; ranks behind the last one have none.
  std::vector<Times> unshared(std::size_t k) const {
    std::vector<Times> out(starts_.size());
    for (std::size_t rank = 0; rank < starts_.size(); ++rank) out[rank] = starts_[rank].unshared.times(k);
    for (std::size_t window = settled_; window < windows_.size(); ++window) {
      for (const Part& part : windows_[window].parts) {
        if (!windows_[window].is_unshared(part)) continue;
        out[part.rank].measured_s += part.end_s - part.begin_s;
        out[part.rank].predicted_s += part.predicted_s[k];
      }
    }
    return out;
  }
  // Parts of windows, by index as ops name them (blocks.h).
  const std::vector<Sums>& blocks() const { return blocks_; }
  // Measured time of the rank between its windows, of which nothing else is known.
  Seconds away_s(std::size_t rank) const { return rank < starts_.size() ? starts_[rank].away_s : 0; }

  Bytes memory_bytes() const {
    std::size_t targets = blocks_.empty() ? 0 : blocks_.back().predicted_s.size();
    std::size_t parts = 0;
    for (const Window& window : windows_) {
      targets = std::max(targets, window.settled.predicted_s.size());
      parts += window.parts.capacity();
    }
    const Bytes clocks = sizeof(Seconds) * targets;
    return starts_.size() * (sizeof(Start) + 2 * clocks) + parts * (sizeof(Part) + clocks) +
           windows_.size() * (sizeof(Window) + clocks) + blocks_.size() * (sizeof(Sums) + clocks);
  }

  // Only these targets, ascending, stay.
  void drop_targets_except(const std::vector<std::size_t>& kept) {
    for (Start& start : starts_) {
      drop_values_except(start.clock_s, kept);
      drop_values_except(start.block_clock_s, kept);
      drop_values_except(start.unshared.predicted_s, kept);
    }
    for (Window& window : windows_) {
      drop_values_except(window.settled.predicted_s, kept);
      for (Part& part : window.parts) drop_values_except(part.predicted_s, kept);
    }
    for (Sums& block : blocks_) drop_values_except(block.predicted_s, kept);
  }

 private:
  struct Start {
    Seconds measured_s = 0;
    std::vector<Seconds> clock_s;  // empty: 0
    Seconds block_measured_s = 0;
    std::vector<Seconds> block_clock_s;  // empty: 0
    Seconds away_s = 0;
    Sums unshared;  // in windows that are settled
    bool closed_once = false;
  };
  // One rank in one window, on its own measured time.
  struct Part {
    std::size_t rank = 0;
    Seconds begin_s = 0;
    Seconds end_s = 0;
    std::vector<Seconds> predicted_s;  // [K]
    Closing closing = Closing::kAfterCall;
  };
  struct Window {
    // Of the rank that closed it first; the shortest of those that did at the same time.
    Seconds first_end_s = kNeverS;
    Seconds first_length_s = kNeverS;
    std::vector<Part> parts;  // not settled yet
    Sums settled;
    bool any_unshared = false;  // of those that are settled
    bool any_scoped = false;

    void note_close(Seconds begin_s, Seconds end_s) {
      const Seconds length_s = end_s - begin_s;
      if (end_s > first_end_s || (end_s == first_end_s && length_s >= first_length_s)) return;
      first_end_s = end_s;
      first_length_s = length_s;
    }
    // More of it lies behind the first close than before. Ranks do not begin their times at the very same moment, and
    // some notice late that a window opened: so it must also be much longer than what closed first.
    bool is_unshared(const Part& part) const {
      const Seconds length_s = part.end_s - part.begin_s;
      return part.closing == Closing::kAfterCall && 2 * (part.end_s - first_end_s) > length_s &&
             length_s > 2 * first_length_s;
    }
  };
  // Which rank closes a window first is known soon: of older ones only sums are kept.
  static constexpr std::size_t kUnsettledWindows = 4;
  void settle(Window& window) {
    for (const Part& part : window.parts) {
      const bool unshared = window.is_unshared(part);
      window.any_unshared = window.any_unshared || unshared;
      add(part, unshared ? starts_[part.rank].unshared : window.settled);
    }
    window.parts = {};
  }
  // A rank may have any number of parts in such a window.
  static void settle_scoped(Window& window, const Part& part) {
    window.any_scoped = true;
    add(part, window.settled);
  }
  static void add(const Part& part, Sums& sums) {
    sums.measured_s += part.end_s - part.begin_s;
    sums.predicted_s.resize(part.predicted_s.size());
    for (std::size_t k = 0; k < part.predicted_s.size(); ++k) sums.predicted_s[k] += part.predicted_s[k];
  }
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
  std::size_t settled_ = 0;  // windows below it are
  std::vector<Sums> blocks_;
};

}  // namespace lbf::engine
