// MappingProblem: ranks that exchange messages, nodes with room for some of them, and what it costs when two
// ranks are on the same node, near together or far apart.
//
// Its cost is the cheap objective of the search: the sum over all pairs of what their messages take (TSE
// Sec. 2.2: flight and the protocol processing at both ends) on the path between their nodes, as if one
// message came after the other. It ignores when messages travel: whether a mapping is really faster, the
// replay says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "advisor/mapping/comm_graph.h"
#include "base/units.h"
#include "predictor/engine/replay/localities.h"
#include "predictor/engine/replay/target.h"

namespace lbf::advisor {

class MappingProblem {
 public:
  // `capacity`: ranks that each node of `nodes` can hold. REQUIRES: `graph` outlives it; their sum is at
  // least the graph's ranks; `nodes` has a network (its placement is not looked at).
  MappingProblem(const CommGraph& graph, engine::Target nodes, std::vector<std::uint32_t> capacity);

  const CommGraph& graph() const { return graph_; }
  const engine::Target& target() const { return target_; }
  Rank ranks() const { return graph_.ranks(); }
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(capacity_.size()); }
  std::uint32_t capacity(std::uint32_t node) const { return capacity_[node]; }
  const engine::Localities& localities() const { return localities_; }

  // Of the arc-th of graph().arcs(rank), between two nodes; the peer's arc costs the same.
  double cost(Rank rank, std::size_t arc, std::uint32_t node_a, std::uint32_t node_b) const {
    const std::size_t first = first_arc_[static_cast<std::size_t>(rank)];
    return cost_[(first + arc) * localities_.count() + localities_.of(node_a, node_b)];
  }
  // Of all pairs. REQUIRES: a node for each rank.
  double cost(std::span<const std::uint32_t> node_of_rank) const;
  // Every pair of ranks exchanges about the same: no mapping with equally full nodes is better than another.
  bool is_uniform() const;

 private:
  const CommGraph& graph_;
  engine::Target target_;
  std::vector<std::uint32_t> capacity_;
  engine::Localities localities_;
  std::vector<std::size_t> first_arc_;  // by rank
  std::vector<double> cost_;            // arcs * localities
};

}  // namespace lbf::advisor
