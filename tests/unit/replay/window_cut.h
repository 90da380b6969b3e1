// Cuts capture windows into a trace, as the capture does it (docs/adr/0010-capture-windows.md): what lies
// between two windows of a rank becomes counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "event/event.h"
#include "tests/unit/replay/random_trace.h"

namespace lbf::random_trace {

struct CutEvent {
  Event event;
  std::size_t original = 0;  // its number in the rank's trace; of those that the cut made: kMade
};
inline constexpr std::size_t kMade = ~std::size_t{0};

struct CutTrace {
  std::vector<std::vector<CutEvent>> events;      // of each rank
  std::deque<std::vector<std::uint64_t>> values;  // what Event::values point to
};

// Random windows, each rank's of its own length: its window number n begins and ends near the same share of
// its events as those of the others. `share`: of the events that stay, about. `ending`: of the ranks whose capture ends
// for good somewhere, each at a place of its own.
CutTrace cut_windows(const Trace& trace, double share, std::mt19937_64& random, double ending = 0);

}  // namespace lbf::random_trace
