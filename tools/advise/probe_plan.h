// How a budget of node-seconds is spent on probes: which placements, how long a skeleton, how many runs of
// each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace lbf::tools {

// A placement on the short list, as replay sees it.
struct ProbeCandidate {
  Seconds replayed_s = 0;  // predicted time of the application there
  std::uint32_t nodes = 1;
};

struct ProbePlan {
  std::size_t candidates = 0;  // the first of the list are probed; 0: the budget allows nothing that would decide
  std::uint64_t factor = 1;    // K
  int repeat = 0;
  double cost_node_s = 0;  // expected
  std::string why_not;     // where nothing is probed
};

// What srun adds to a run, of all its nodes.
inline constexpr Seconds kProbeStartS = 1.5;

// As many of `candidates` as the budget allows, at least two, then skeletons of 5, 2, 1, 0.5 s, but none
// below `shortest_good_s`, then 3, 2 runs. One run more, on the first, measures the processor's rate.
// REQUIRES: application_s > 0.
ProbePlan plan_probe(const std::vector<ProbeCandidate>& candidates, Seconds application_s, Seconds shortest_good_s,
                     double budget_node_s);
// Expected node-seconds of one run of a skeleton with this K.
double probe_run_node_s(const ProbeCandidate& candidate, std::uint64_t factor);

}  // namespace lbf::tools
