// Which ranks of a communicator share a node, for algorithms that first collect on the nodes.
//
// Place in the event's way: match (the matcher makes one for each communicator, collective_layered.cpp goes
// by it).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace lbf::engine {

// Nodes count in the order of their first ranks. Immutable: any number of threads may read it.
class NodeLayout {
 public:
  // `node_of_rank`: any number for the node of each rank of the communicator. REQUIRES: not empty.
  explicit NodeLayout(std::span<const std::uint32_t> node_of_rank);

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(first_of_node_.size() - 1); }
  std::uint32_t node_of(std::uint32_t rank) const { return node_of_[rank]; }
  // Place of the rank among the ranks of its node, in rank order.
  std::uint32_t local_rank_of(std::uint32_t rank) const { return local_rank_of_[rank]; }
  // The ranks of a node, in order.
  std::span<const std::uint32_t> ranks_of_node(std::uint32_t node) const {
    return std::span(by_node_).subspan(first_of_node_[node], first_of_node_[node + 1] - first_of_node_[node]);
  }
  // The ranks with this place on their nodes, in order; nodes with fewer ranks have none.
  std::span<const std::uint32_t> ranks_at(std::uint32_t local_rank) const {
    return std::span(by_local_rank_)
        .subspan(first_of_local_rank_[local_rank],
                 first_of_local_rank_[local_rank + 1] - first_of_local_rank_[local_rank]);
  }
  // Place of the rank in ranks_at() of its own place.
  std::uint32_t place_among_peers(std::uint32_t rank) const { return place_among_peers_[rank]; }
  std::uint32_t most_per_node() const { return static_cast<std::uint32_t>(first_of_local_rank_.size() - 1); }
  Bytes memory_bytes() const {
    const std::size_t numbers = node_of_.capacity() + local_rank_of_.capacity() + place_among_peers_.capacity() +
                                by_node_.capacity() + first_of_node_.capacity() + by_local_rank_.capacity() +
                                first_of_local_rank_.capacity();
    return numbers * sizeof(std::uint32_t);
  }
  // Every node has equally many ranks.
  bool is_balanced() const { return nodes() * most_per_node() == node_of_.size(); }

 private:
  std::vector<std::uint32_t> node_of_, local_rank_of_, place_among_peers_;  // by rank
  std::vector<std::uint32_t> by_node_, first_of_node_;                      // ranks, sorted by node
  std::vector<std::uint32_t> by_local_rank_, first_of_local_rank_;          // ranks, sorted by local rank
};

}  // namespace lbf::engine
