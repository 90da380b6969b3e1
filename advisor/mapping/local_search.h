// Local search: a mapping made better by moving ranks and exchanging pairs of them (Kernighan and Lin 1970),
// on the cheap objective of MappingProblem.
#pragma once

#include <cstdint>
#include <vector>

#include "advisor/mapping/problem.h"

namespace lbf::advisor {

// One rank goes to another node (`other` < 0), or two ranks change places.
struct Step {
  Rank rank = 0;
  Rank other = -1;
  std::uint32_t to = 0;  // node of `rank` after it
  double change = 0;     // of the cost; below 0: better
};

struct SearchLimits {
  // Arcs looked at, all in all: the bound on time, the same on every machine.
  std::uint64_t arcs = 200'000'000;
};

// Ranks of nodes beyond their capacity move to where they cost least. REQUIRES: there is room for all.
void respect_capacities(const MappingProblem& problem, std::vector<std::uint32_t>& node_of_rank);

// Never worse, never beyond a capacity; the cost afterwards. REQUIRES: no node beyond its capacity.
double improve(const MappingProblem& problem, std::vector<std::uint32_t>& node_of_rank, SearchLimits limits = {});

// The `count` steps that change the cost for the best, or least for the worse, best first: what is worth a
// replay where the cheap objective sees no gain any more. `ranks`: those that must take part in each (empty:
// any).
std::vector<Step> best_steps(const MappingProblem& problem, const std::vector<std::uint32_t>& node_of_rank,
                             const std::vector<Rank>& ranks, std::size_t count);
void apply(const Step& step, std::vector<std::uint32_t>& node_of_rank);

}  // namespace lbf::advisor
