// Mapping by Scotch, see partition.h.
#include "advisor/mapping/partition.h"

#include <cstdint>
#include <cstdio>

// Scotch's header wants <stdio.h> and <stdint.h> before it.
#include <scotch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "advisor/mapping/local_search.h"

namespace lbf::advisor {
namespace {

// Scotch adds weights times distances up in 32 bits.
constexpr double kWeightSum = 2e7;
constexpr SCOTCH_Num kSeed = 1;

struct ScotchGraph {
  SCOTCH_Graph graph;
  ScotchGraph() { SCOTCH_graphInit(&graph); }
  ~ScotchGraph() { SCOTCH_graphExit(&graph); }
  ScotchGraph(const ScotchGraph&) = delete;
  ScotchGraph& operator=(const ScotchGraph&) = delete;
};
struct ScotchArch {
  SCOTCH_Arch arch;
  ScotchArch() { SCOTCH_archInit(&arch); }
  ~ScotchArch() { SCOTCH_archExit(&arch); }
  ScotchArch(const ScotchArch&) = delete;
  ScotchArch& operator=(const ScotchArch&) = delete;
};
struct ScotchStrategy {
  SCOTCH_Strat strategy;
  ScotchStrategy() { SCOTCH_stratInit(&strategy); }
  ~ScotchStrategy() { SCOTCH_stratExit(&strategy); }
  ScotchStrategy(const ScotchStrategy&) = delete;
  ScotchStrategy& operator=(const ScotchStrategy&) = delete;
};

// One thread, and random numbers of its own: the same mapping whatever else goes on.
struct ScotchContext {
  SCOTCH_Context context;
  ScotchContext() {
    SCOTCH_contextInit(&context);
    SCOTCH_contextRandomClone(&context);
    SCOTCH_contextRandomSeed(&context, kSeed);
    SCOTCH_contextRandomReset(&context);
    SCOTCH_contextThreadSpawn(&context, 1, nullptr);
  }
  ~ScotchContext() { SCOTCH_contextExit(&context); }
  ScotchContext(const ScotchContext&) = delete;
  ScotchContext& operator=(const ScotchContext&) = delete;
};

// A graph as Scotch reads it: arcs of all vertices one after the other, each edge twice.
struct Arrays {
  std::vector<SCOTCH_Num> first{0};
  std::vector<SCOTCH_Num> peers;
  std::vector<SCOTCH_Num> edge_weights;
  std::vector<SCOTCH_Num> vertex_weights;

  bool build(ScotchGraph& into) const {
    const auto vertices = static_cast<SCOTCH_Num>(first.size() - 1);
    return SCOTCH_graphBuild(&into.graph, 0, vertices, first.data(), first.data() + 1, vertex_weights.data(), nullptr,
                             static_cast<SCOTCH_Num>(peers.size()), peers.data(), edge_weights.data()) == 0;
  }
};

// Edge weights: what a pair saves by being on one node instead of two.
Arrays program_of(const MappingProblem& problem) {
  Arrays arrays;
  std::vector<double> savings;
  for (Rank rank = 0; rank < problem.ranks(); ++rank) {
    const auto arcs = problem.graph().arcs(rank);
    for (std::size_t arc = 0; arc < arcs.size(); ++arc) {
      arrays.peers.push_back(arcs[arc].peer);
      savings.push_back(problem.nodes() < 2 ? 1 : problem.cost(rank, arc, 0, 1) - problem.cost(rank, arc, 0, 0));
    }
    arrays.first.push_back(static_cast<SCOTCH_Num>(arrays.peers.size()));
    arrays.vertex_weights.push_back(1);
  }
  double sum = 0;
  for (const double saving : savings) sum += std::max(saving, 0.0);
  for (const double saving : savings) {
    const double weight = sum > 0 ? std::max(saving, 0.0) / sum * kWeightSum : 1;
    arrays.edge_weights.push_back(std::max<SCOTCH_Num>(1, static_cast<SCOTCH_Num>(std::lround(weight))));
  }
  return arrays;
}

// How many ranks each node is meant to get: as its capacity, but no more than there are.
std::vector<SCOTCH_Num> shares_of(const MappingProblem& problem) {
  std::vector<SCOTCH_Num> shares;
  for (std::uint32_t node = 0; node < problem.nodes(); ++node) {
    shares.push_back(static_cast<SCOTCH_Num>(std::max<std::uint32_t>(
        1, std::min<std::uint32_t>(problem.capacity(node), static_cast<std::uint32_t>(problem.ranks())))));
  }
  return shares;
}

// Nodes and switches as a tree of vertices, nodes first. Empty: no topology, or not one tree.
Arrays switches_of(const MappingProblem& problem, const std::vector<SCOTCH_Num>& shares) {
  const engine::Target& target = problem.target();
  if (target.topology == nullptr || problem.localities().count() < 3) return {};
  const engine::Topology& topology = *target.topology;
  std::vector<std::vector<SCOTCH_Num>> neighbours(problem.nodes());
  std::vector<SCOTCH_Num> top(problem.nodes());
  for (std::uint32_t node = 0; node < problem.nodes(); ++node) top[node] = static_cast<SCOTCH_Num>(node);
  for (std::uint32_t level = 1; level <= topology.levels(); ++level) {
    std::map<std::uint32_t, SCOTCH_Num> vertex_of_switch;
    for (std::uint32_t node = 0; node < problem.nodes(); ++node) {
      const std::uint32_t number = topology.switch_at(target.topology_node_of_node[node], level);
      const auto [at, is_new] = vertex_of_switch.emplace(number, static_cast<SCOTCH_Num>(neighbours.size()));
      if (is_new) neighbours.emplace_back();
      auto& below = neighbours[static_cast<std::size_t>(at->second)];
      if (std::find(below.begin(), below.end(), top[node]) == below.end()) {
        below.push_back(top[node]);
        neighbours[static_cast<std::size_t>(top[node])].push_back(at->second);
      }
      top[node] = at->second;
    }
    if (vertex_of_switch.size() == 1) break;
  }
  if (std::any_of(top.begin(), top.end(), [&](SCOTCH_Num vertex) { return vertex != top.front(); })) return {};
  Arrays arrays;
  for (std::size_t vertex = 0; vertex < neighbours.size(); ++vertex) {
    for (const SCOTCH_Num peer : neighbours[vertex]) {
      arrays.peers.push_back(peer);
      arrays.edge_weights.push_back(1);
    }
    arrays.first.push_back(static_cast<SCOTCH_Num>(arrays.peers.size()));
    arrays.vertex_weights.push_back(vertex < shares.size() ? shares[vertex] : 1);
  }
  return arrays;
}

// Nodes that are equally far apart, or a tree of switches.
bool build_architecture(const MappingProblem& problem, ScotchContext& context, ScotchStrategy& strategy,
                        ScotchArch& arch) {
  const std::vector<SCOTCH_Num> shares = shares_of(problem);
  const auto nodes = static_cast<SCOTCH_Num>(shares.size());
  const Arrays tree = switches_of(problem, shares);
  if (tree.peers.empty()) return SCOTCH_archCmpltw(&arch.arch, nodes, shares.data()) == 0;
  ScotchGraph graph;
  ScotchGraph bound;
  std::vector<SCOTCH_Num> terminals;
  for (SCOTCH_Num node = 0; node < nodes; ++node) terminals.push_back(node);
  return tree.build(graph) && SCOTCH_contextBindGraph(&context.context, &graph.graph, &bound.graph) == 0 &&
         SCOTCH_archBuild(&arch.arch, &bound.graph, nodes, terminals.data(), &strategy.strategy) == 0;
}

}  // namespace

Result<std::vector<std::uint32_t>> partition(const MappingProblem& problem) {
  std::vector<std::uint32_t> node_of_rank(static_cast<std::size_t>(problem.ranks()), 0);
  if (problem.nodes() > 1) {
    ScotchContext context;
    const Arrays program = program_of(problem);
    ScotchGraph graph;
    ScotchGraph bound;
    ScotchArch arch;
    ScotchStrategy for_arch;
    ScotchStrategy for_map;
    std::vector<SCOTCH_Num> mapped(node_of_rank.size());
    const auto nodes = static_cast<SCOTCH_Num>(problem.nodes());
    const bool done = program.build(graph) &&
                      SCOTCH_contextBindGraph(&context.context, &graph.graph, &bound.graph) == 0 &&
                      build_architecture(problem, context, for_arch, arch) &&
                      SCOTCH_stratGraphMapBuild(&for_map.strategy, SCOTCH_STRATQUALITY, nodes, 0.01) == 0 &&
                      SCOTCH_graphMap(&bound.graph, &arch.arch, &for_map.strategy, mapped.data()) == 0;
    if (!done) return Error{ErrorCode::kInternal, "Scotch cannot map the communication graph"};
    for (std::size_t rank = 0; rank < mapped.size(); ++rank)
      node_of_rank[rank] = std::min(static_cast<std::uint32_t>(mapped[rank]), problem.nodes() - 1);
  }
  respect_capacities(problem, node_of_rank);
  return node_of_rank;
}

}  // namespace lbf::advisor
