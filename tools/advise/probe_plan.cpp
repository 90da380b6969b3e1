#include "tools/advise/probe_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lbf::tools {
namespace {

constexpr double kSkeletonTimes[] = {5, 2, 1, 0.5};
constexpr std::size_t kLeastCandidates = 2;

double cost_of(const std::vector<ProbeCandidate>& candidates, std::size_t count, std::uint64_t factor, int repeat) {
  double cost = probe_run_node_s(candidates.front(), factor);
  for (std::size_t i = 0; i < count; ++i) cost += repeat * probe_run_node_s(candidates[i], factor);
  return cost;
}

}  // namespace

double probe_run_node_s(const ProbeCandidate& candidate, std::uint64_t factor) {
  return candidate.nodes * (candidate.replayed_s / static_cast<double>(factor) + kProbeStartS);
}

ProbePlan plan_probe(const std::vector<ProbeCandidate>& candidates, Seconds application_s, Seconds shortest_good_s,
                     double budget_node_s) {
  ProbePlan cheapest;
  if (candidates.size() < kLeastCandidates) {
    cheapest.why_not = "there is nothing to decide: replay leaves one placement";
    return cheapest;
  }
  for (const int repeat : {3, 2}) {
    for (std::size_t count = candidates.size(); count >= kLeastCandidates; --count) {
      for (const double wanted_s : kSkeletonTimes) {
        const double skeleton_s = std::min(std::max(wanted_s, shortest_good_s), application_s);
        const auto factor = static_cast<std::uint64_t>(std::max(1.0, std::floor(application_s / skeleton_s)));
        const double cost = cost_of(candidates, count, factor, repeat);
        if (cost <= budget_node_s) return {count, factor, repeat, cost, {}};
        cheapest.cost_node_s = cost;
      }
    }
  }
  cheapest.why_not = fmt::format(
      "the shortest probe of two placements takes about {:.0f} node-seconds, the budget is {:.0f} "
      "(--probe-budget, "
      "and the site's limit)",
      std::ceil(cheapest.cost_node_s), budget_node_s);
  return cheapest;
}

}  // namespace lbf::tools
