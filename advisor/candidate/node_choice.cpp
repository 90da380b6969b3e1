// Choice of nodes, see node_choice.h.
#include "advisor/candidate/node_choice.h"

#include <algorithm>
#include <map>

namespace lbf::advisor {
namespace {

using Nodes = std::vector<std::uint32_t>;

// From the leaf that has the fewest nodes and all that are still missing, else from the fullest one.
Nodes from_leaves(std::map<std::uint32_t, Nodes> leaves, std::uint32_t count) {
  Nodes chosen;
  while (chosen.size() < count) {
    const std::size_t missing = count - chosen.size();
    auto best = leaves.end();
    for (auto leaf = leaves.begin(); leaf != leaves.end(); ++leaf) {
      if (best == leaves.end()) {
        best = leaf;
        continue;
      }
      const bool holds = leaf->second.size() >= missing;
      const bool best_holds = best->second.size() >= missing;
      const bool better = holds == best_holds ? (holds ? leaf->second.size() < best->second.size()
                                                       : leaf->second.size() > best->second.size())
                                              : holds;
      if (better) best = leaf;
    }
    const std::size_t taken = std::min(missing, best->second.size());
    chosen.insert(chosen.end(), best->second.begin(), best->second.begin() + static_cast<std::ptrdiff_t>(taken));
    leaves.erase(best);
  }
  return chosen;
}

}  // namespace

std::vector<std::uint32_t> choose_nodes(const Cluster& cluster, const std::vector<std::uint32_t>& usable,
                                        std::uint32_t count) {
  if (usable.size() < count) return {};
  if (cluster.topology == nullptr) return {usable.begin(), usable.begin() + count};
  const engine::Topology& topology = *cluster.topology;
  for (std::uint32_t level = 1; level <= topology.levels(); ++level) {
    std::map<std::uint32_t, Nodes> below;
    for (const std::uint32_t node : usable) {
      below[topology.switch_at(cluster.topology_node_of_node[node], level)].push_back(node);
    }
    const Nodes* fewest = nullptr;
    for (const auto& [number, nodes] : below) {
      if (nodes.size() >= count && (fewest == nullptr || nodes.size() < fewest->size())) fewest = &nodes;
    }
    if (fewest == nullptr) continue;
    std::map<std::uint32_t, Nodes> leaves;
    for (const std::uint32_t node : *fewest) {
      leaves[topology.switch_at(cluster.topology_node_of_node[node], 1)].push_back(node);
    }
    const Nodes chosen = from_leaves(std::move(leaves), count);
    Nodes ordered;
    for (const std::uint32_t node : usable) {
      if (std::find(chosen.begin(), chosen.end(), node) != chosen.end()) ordered.push_back(node);
    }
    return ordered;
  }
  return {};
}

}  // namespace lbf::advisor
