// Localities, see localities.h.
#include "predictor/engine/replay/localities.h"

#include <unordered_set>
#include <utility>

namespace lbf::engine {

Localities::Localities(const Target& target) {
  const Network& network = *target.network;
  std::vector<const PathCost*> between;  // from near to far
  if (target.topology != nullptr) {
    // Some pair is exactly `level` hops apart where the switches of that level are fewer than those below.
    std::size_t switches_below = target.nodes;
    std::vector<std::uint32_t> switch_of_node(target.nodes);
    for (std::uint32_t level = 1; level <= target.topology->levels() && switches_below > 1; ++level) {
      for (std::uint32_t node = 0; node < target.nodes; ++node) {
        switch_of_node[node] = target.topology->switch_at(target.topology_node_of_node[node], level);
      }
      const std::unordered_set<std::uint32_t> different(switch_of_node.begin(), switch_of_node.end());
      const bool any_pair = different.size() < switches_below;
      switches_below = different.size();
      if (!any_pair) continue;
      const PathCost* const path = &network.path(level);
      if (between.empty() || between.back() != path) {
        between.push_back(path);
        groups_.push_back(switch_of_node);
      } else {
        groups_.back() = switch_of_node;
      }
    }
    const PathCost* const unconnected = &network.path(kUnknownHops);
    if (switches_below > 1 && (between.empty() || between.back() != unconnected)) {
      between.push_back(unconnected);
    } else if (!groups_.empty()) {
      groups_.pop_back();  // the farthest needs no group
    }
  }
  if (between.empty()) between.push_back(&network.path(kUnknownHops));
  paths_ = std::move(between);
  paths_.insert(paths_.begin() + kSelfNode, &network.path(0));
}

}  // namespace lbf::engine
