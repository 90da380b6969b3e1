// What is known of a target's time without replaying it.
#pragma once

#include <cstdint>
#include <vector>

#include "advisor/mapping/comm_graph.h"
#include "base/units.h"
#include "predictor/engine/replay/target.h"

namespace lbf::advisor {

// No replay of the target ends before any of the three: they are lower bounds of the engine's model
// (docs/engine.md, "The model").
struct Bound {
  Seconds processors_s = 0;  // load balance: the rank with the most work, and each node's work on its processors
  Seconds links_s = 0;       // cut: bytes through the busiest link over its bandwidth (contention bus and nic)
  Seconds chain_s = 0;       // latency: the longest chain of messages, each at the least flight there is
  // For the order in which replays are made, no bound: the busiest rank's work and, one after the other, the
  // messages that it takes part in.
  Seconds estimate_s = 0;

  Seconds at_least_s() const;
};

// `chain_messages`: messages of the longest chain in the program (0: not known).
Bound bound_of(const engine::Target& target, const CommGraph& graph, std::uint64_t chain_messages);

// Bytes that leave and enter each node.
struct NodeTraffic {
  std::vector<Bytes> out;
  std::vector<Bytes> in;
  Bytes between = 0;  // all that goes from one node to another
  Bytes inside = 0;   // all that stays on its node
};
NodeTraffic traffic_of(const std::vector<std::uint32_t>& node_of_rank, std::uint32_t nodes, const CommGraph& graph);

}  // namespace lbf::advisor
