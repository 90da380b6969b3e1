// Load: each node's work on its processors, which the cost of MappingProblem does not know. It matters where
// ranks share processors or nodes differ in speed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "advisor/mapping/local_search.h"
#include "advisor/mapping/problem.h"

namespace lbf::advisor {

// Two mappings with as many ranks on each node may differ in their busiest processor's work: some node may
// get more ranks than processors or speeds differ, and the ranks' process times do.
bool load_matters(const MappingProblem& problem);

// How long the busiest node computes at least: its ranks' work spread evenly over its processors, or its
// busiest rank's alone. REQUIRES: a node for each rank.
Seconds busiest_s(const MappingProblem& problem, std::span<const std::uint32_t> node_of_rank);

// Longest process time first, each to the node that ends first with it and has room (Graham 1969: at most 4/3
// of the least). Of nodes that are equally good the one with whose ranks it exchanges most.
std::vector<std::uint32_t> balanced(const MappingProblem& problem);

// The `count` steps that take most from the busiest node, best first; none that makes another one as busy.
// Their `change` is that of busiest_s().
std::vector<Step> balancing_steps(const MappingProblem& problem, const std::vector<std::uint32_t>& node_of_rank,
                                  std::size_t count);

}  // namespace lbf::advisor
