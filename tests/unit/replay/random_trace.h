// Random programs for the comparison of engine and reference. A program is made in one global order of
// actions (every receive completes after its send in it), so it always can run to its end.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "event/event.h"
#include "tests/unit/replay/reference.h"

namespace lbf::random_trace {

struct Trace {
  Rank ranks = 0;
  std::vector<std::vector<Event>> events;         // of each rank
  std::deque<std::vector<std::uint64_t>> values;  // what Event::values point to
  reference::Program program;                     // the same, with the messages named
};
inline constexpr double kMaxBytes = 65536;  // of a message
enum class Regions { kNone, kSome };        // parallel ones
Trace make_trace(std::mt19937_64& random, Regions regions = Regions::kNone);

}  // namespace lbf::random_trace
