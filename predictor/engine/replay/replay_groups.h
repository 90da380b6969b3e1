// Targets in groups, each replayed by a thread of its own: what costs a replay each is spread over them.
#pragma once

#include <cstddef>
#include <vector>

#include "predictor/engine/replay/target.h"

namespace lbf::engine {

// Targets by number, for at most so many threads: at least one group, none empty. Targets that share processors, links
// or memory cost a replay each; up to 16 others cost half of one together, and stay together. Of many ranks there are
// fewer groups, for each holds all ranks.
std::vector<std::vector<std::size_t>> replay_groups(const std::vector<Target>& targets, std::size_t threads);

}  // namespace lbf::engine
