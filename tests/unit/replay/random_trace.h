// Random programs for the comparison of engine and reference. A program is made in one global order of
// actions (every receive completes after its send in it), so it always can run to its end.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "event/event.h"
#include "predictor/engine/replay/target.h"
#include "tests/unit/replay/reference.h"

namespace lbf::random_trace {

struct Trace {
  Rank ranks = 0;
  std::vector<std::vector<Event>> events;         // of each rank
  std::deque<std::vector<std::uint64_t>> values;  // what Event::values point to
  reference::Program program;                     // the same, with the messages named
};
enum class Regions { kNone, kSome };  // parallel ones
Trace make_trace(std::mt19937_64& random, Regions regions = Regions::kNone);

struct Configuration {
  engine::Target target;       // for the engine
  reference::Machine machine;  // the same for the reference
};
Configuration make_configuration(std::mt19937_64& random, Rank ranks);
// Says how many threads regions have, or that they have as many as ran.
void choose_threads(std::mt19937_64& random, Configuration& configuration);

}  // namespace lbf::random_trace
