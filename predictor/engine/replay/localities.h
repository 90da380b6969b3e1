// Localities: which of the network's paths serves each pair of a target's nodes.
//
// Pairs whose hops share a path are one locality, so a target whose nodes are all equally far apart, or whose
// topology nobody knows, has two: between nodes and inside one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "predictor/engine/replay/target.h"

namespace lbf::engine {

class Localities {
 public:
  static constexpr std::size_t kSelfNode = 1;

  // The network must outlive it.
  explicit Localities(const Target& target);

  // 0: the nearest nodes; 1 (kSelfNode): inside a node; from 2 on: farther ones, ascending.
  std::size_t count() const { return paths_.size(); }
  const PathCost& path(std::size_t locality) const { return *paths_[locality]; }
  // REQUIRES: nodes of the target.
  std::size_t of(std::uint32_t node_a, std::uint32_t node_b) const {
    if (node_a == node_b) return kSelfNode;
    std::size_t locality = 0;
    for (const std::vector<std::uint32_t>& group_of_node : groups_) {
      if (group_of_node[node_a] == group_of_node[node_b]) return locality;
      locality = locality == 0 ? 2 : locality + 1;
    }
    return locality;
  }

 private:
  std::vector<const PathCost*> paths_;  // by locality
  // For each distance but the farthest, from near to far: nodes of one group are no farther apart.
  std::vector<std::vector<std::uint32_t>> groups_;
};

}  // namespace lbf::engine
