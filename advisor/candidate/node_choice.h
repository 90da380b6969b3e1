// Which nodes a job of some size would get: as near together as the switches allow.
#pragma once

#include <cstdint>
#include <vector>

#include "advisor/candidate/cluster.h"

namespace lbf::advisor {

// `count` of `usable`, in the order of `usable`. With a topology those below the lowest switch that has so
// many (the one with the fewest usable nodes), full leaf switches first, as topology/tree does on an idle
// cluster; without one the first of them. Empty: no switch has so many.
std::vector<std::uint32_t> choose_nodes(const Cluster& cluster, const std::vector<std::uint32_t>& usable,
                                        std::uint32_t count);

}  // namespace lbf::advisor
