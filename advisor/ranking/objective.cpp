// Objectives, see objective.h.
#include "advisor/ranking/objective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lbf::advisor {

std::string Objective::text() const {
  std::string out = goal == Goal::kTime ? "time" : "node-hours";
  if (std::isfinite(node_hours_limit)) out += fmt::format(" within {:g} node-hours", node_hours_limit);
  if (std::isfinite(deadline_s)) out += fmt::format(" within {:g} s", deadline_s);
  return out;
}

std::vector<bool> pareto_front(std::span<const Outcome> outcomes) {
  std::vector<std::size_t> order(outcomes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (outcomes[a].time_s != outcomes[b].time_s) return outcomes[a].time_s < outcomes[b].time_s;
    return outcomes[a].node_hours < outcomes[b].node_hours;
  });
  std::vector<bool> on_front(outcomes.size(), false);
  double fewest = std::numeric_limits<double>::infinity();
  for (const std::size_t i : order) {
    if (!(outcomes[i].node_hours < fewest)) continue;
    on_front[i] = true;
    fewest = outcomes[i].node_hours;
  }
  return on_front;
}

}  // namespace lbf::advisor
