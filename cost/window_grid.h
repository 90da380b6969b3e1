// WindowGrid: when capture windows open, the same on every node of a step without asking anybody.
//
// Place in the cost system: *window grid* -> regulator of each node. Real time is cut into cells of one
// length; the window of a cell opens at an instant inside it that a hash of the step's seed and the cell's
// number gives (stratified sampling: a program with the period of a cell is not always seen in the same
// phase). Nodes that can afford fewer windows take every 2nd, 4th, 8th ... cell, so the windows of the one
// with the fewest are windows of all. Nodes agree as far as their clocks do: docs/cost-system.md, "Windows".
#pragma once

#include <cstdint>

#include "base/units.h"

namespace lbf::cost {

class WindowGrid {
 public:
  // `seed` is the step's own, alike on all its nodes. REQUIRES: cell_ns > 0.
  WindowGrid(Nanoseconds cell_ns, std::uint64_t seed) : cell_ns_(cell_ns), seed_(seed) {}

  Nanoseconds cell_ns() const { return cell_ns_; }

  // When the window of cell `cell` opens: CLOCK_REALTIME, in [cell, cell + 1) cells.
  Nanoseconds opening_ns(std::int64_t cell) const;

  // The first opening after `now_ns` (CLOCK_REALTIME, >= 0) of a cell whose number is a multiple of
  // 2^thinning. REQUIRES: thinning <= kMostThinning.
  Nanoseconds next_opening_ns(Nanoseconds now_ns, unsigned thinning) const;

  static constexpr unsigned kMostThinning = 12;

 private:
  Nanoseconds cell_ns_;
  std::uint64_t seed_;
};

}  // namespace lbf::cost
