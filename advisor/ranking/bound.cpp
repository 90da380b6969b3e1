// Bounds, see bound.h.
#include "advisor/ranking/bound.h"

#include <algorithm>
#include <vector>

#include "predictor/engine/replay/localities.h"
#include "predictor/engine/replay/memory_sharing.h"

namespace lbf::advisor {
namespace {

struct Work {
  std::vector<Seconds> of_node;
  Seconds longest_rank_s = 0;
};

// How fast a processor of the rank's node gets through recorded work, which is shorter with a memory domain for itself.
// THREADS: of the largest team that ran.
double speed_of(const engine::Target& target, Rank rank, std::uint32_t threads) {
  const double undisturbed =
      std::min(engine::undisturbed(target.memory, rank, 1), engine::undisturbed(target.memory, rank, threads));
  return target.speed_of(target.node_of_rank[static_cast<std::size_t>(rank)]) / undisturbed;
}

Work work_of(const engine::Target& target, const CommGraph& graph) {
  Work work{std::vector<Seconds>(target.nodes, 0), 0};
  const std::uint32_t ran_threads = graph.most_threads();
  for (Rank rank = 0; rank < graph.ranks(); ++rank) {
    const std::uint32_t node = target.node_of_rank[static_cast<std::size_t>(rank)];
    const double speed = speed_of(target, rank, ran_threads);
    const Seconds alone_s = graph.least_s(rank, target.threads) / speed;
    work.of_node[node] += graph.work_s(rank) / speed / target.cores_of(node);
    work.longest_rank_s = std::max(work.longest_rank_s, alone_s + graph.blocked_s(rank));
  }
  return work;
}

Seconds links_s(const engine::Target& target, const NodeTraffic& traffic) {
  const double bandwidth = target.network->contention_bytes_per_s();
  if (target.network->contention() == engine::Contention::kNone || !(bandwidth > 0)) return 0;
  if (target.network->contention() == engine::Contention::kBus) return static_cast<double>(traffic.between) / bandwidth;
  Bytes most = 0;
  for (std::uint32_t node = 0; node < target.nodes; ++node)
    most = std::max({most, traffic.out[node], traffic.in[node]});
  return static_cast<double>(most) / bandwidth;
}

}  // namespace

Seconds Bound::at_least_s() const {
  return std::max({processors_s, links_s, chain_s});
}

NodeTraffic traffic_of(const std::vector<std::uint32_t>& node_of_rank, std::uint32_t nodes, const CommGraph& graph) {
  NodeTraffic traffic{std::vector<Bytes>(nodes, 0), std::vector<Bytes>(nodes, 0), 0, 0};
  for (Rank rank = 0; rank < graph.ranks(); ++rank) {
    const std::uint32_t from = node_of_rank[static_cast<std::size_t>(rank)];
    for (const Arc& arc : graph.arcs(rank)) {
      const std::uint32_t to = node_of_rank[static_cast<std::size_t>(arc.peer)];
      if (from == to) {
        traffic.inside += arc.bytes_out;
        continue;
      }
      traffic.out[from] += arc.bytes_out;
      traffic.in[to] += arc.bytes_out;
      traffic.between += arc.bytes_out;
    }
  }
  return traffic;
}

Bound bound_of(const engine::Target& target, const CommGraph& graph, std::uint64_t chain_messages) {
  Bound bound;
  const Work work = work_of(target, graph);
  bound.processors_s = std::max(work.longest_rank_s, *std::max_element(work.of_node.begin(), work.of_node.end()));
  bound.links_s = links_s(target, traffic_of(target.node_of_rank, target.nodes, graph));

  const engine::Localities localities(target);
  Seconds least_flight_s = localities.path(engine::Localities::kSelfNode).flight.at(0);
  for (std::size_t locality = 0; locality < localities.count(); ++locality)
    least_flight_s = std::min(least_flight_s, localities.path(locality).flight.at(0));
  bound.chain_s = static_cast<double>(chain_messages) * least_flight_s;
  const std::uint32_t ran_threads = graph.most_threads();

  for (Rank rank = 0; rank < graph.ranks(); ++rank) {
    const std::uint32_t node = target.node_of_rank[static_cast<std::size_t>(rank)];
    Seconds sum =
        std::max(graph.least_s(rank, target.threads) / speed_of(target, rank, ran_threads), work.of_node[node]) +
        graph.blocked_s(rank);
    for (const Arc& arc : graph.arcs(rank)) {
      const std::uint32_t other = target.node_of_rank[static_cast<std::size_t>(arc.peer)];
      const engine::PathCost& path = localities.path(localities.of(node, other));
      const Bytes size = arc.bytes() / std::max<std::uint64_t>(arc.messages(), 1);
      sum += 0.5 * static_cast<double>(arc.messages()) *
             (path.flight.at(size) + path.send_cpu.at(size) + path.recv_cpu.at(size));
    }
    bound.estimate_s = std::max(bound.estimate_s, sum);
  }
  bound.estimate_s = std::max(bound.estimate_s, bound.at_least_s());
  return bound;
}

}  // namespace lbf::advisor
