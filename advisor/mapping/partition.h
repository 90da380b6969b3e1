// Static mapping by dual recursive bipartitioning, by Scotch (Pellegrini): the communication graph onto the
// nodes and the switches between them.
#pragma once

#include <cstdint>
#include <vector>

#include "advisor/mapping/problem.h"
#include "base/result.h"

namespace lbf::advisor {

// The node of each rank; no node has more than its capacity (ranks beyond are moved where they cost least).
// The same for the same problem, whatever was mapped before. Errors (kInternal): Scotch refused the graph.
Result<std::vector<std::uint32_t>> partition(const MappingProblem& problem);

}  // namespace lbf::advisor
