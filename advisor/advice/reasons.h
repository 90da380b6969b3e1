// Why one placement is faster than another: the facts that carry the advice, in words.
#pragma once

#include <string>
#include <vector>

#include "advisor/mapping/comm_graph.h"
#include "advisor/ranking/ranking.h"

namespace lbf::advisor {

// At most three sentences without a full stop, the weightiest first; each is a count over the trace and the
// two targets, none a guess. Empty: nothing that can be counted tells them apart.
std::vector<std::string> reasons(const Ranked& chosen, const Ranked& now, const CommGraph& graph);

}  // namespace lbf::advisor
