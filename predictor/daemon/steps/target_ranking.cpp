// The order of targets, see target_ranking.h.
#include "predictor/daemon/steps/target_ranking.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace lbf::daemon {

std::vector<engine::Target> ranked_targets(std::vector<engine::Target> targets,
                                           const std::vector<std::string>& asked_networks) {
  if (targets.empty()) return targets;
  const engine::Target ran = targets.front();
  const auto key = [&](const engine::Target& target) {
    const bool asked =
        std::find(asked_networks.begin(), asked_networks.end(), target.network->name()) != asked_networks.end();
    const bool network = target.network->name() != ran.network->name();
    const bool nodes = target.nodes != ran.nodes;
    const bool placement = !nodes && target.node_of_rank != ran.node_of_rank;
    const bool threads = !network && !nodes && !placement && target.threads != ran.threads;
    const double ratio = std::fabs(std::log(static_cast<double>(target.nodes) / ran.nodes));
    return std::make_tuple(threads, !asked, int{network} + int{nodes} + int{placement}, network, ratio);
  };
  std::stable_sort(targets.begin() + 1, targets.end(),
                   [&](const engine::Target& a, const engine::Target& b) { return key(a) < key(b); });
  return targets;
}

}  // namespace lbf::daemon
