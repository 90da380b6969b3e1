// Random machines for the comparison of engine and reference: nodes, placement, topology and network, as both have
// them.
#pragma once

#include <random>

#include "base/units.h"
#include "predictor/engine/replay/target.h"
#include "tests/unit/replay/reference.h"

namespace lbf::random_trace {

struct Configuration {
  engine::Target target;       // for the engine
  reference::Machine machine;  // the same for the reference
};
Configuration make_configuration(std::mt19937_64& random, Rank ranks);
// Says how many threads regions have, or that they have as many as ran.
void choose_threads(std::mt19937_64& random, Configuration& configuration);

}  // namespace lbf::random_trace
