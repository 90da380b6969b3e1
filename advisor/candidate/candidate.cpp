// Candidates, see candidate.h.
#include "advisor/candidate/candidate.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "advisor/candidate/layout.h"
#include "advisor/candidate/node_choice.h"

namespace lbf::advisor {
namespace {

// Node counts tried of themselves: at most so many for each kind of nodes.
constexpr std::size_t kMostNodeCounts = 10;
constexpr std::uint32_t kMostPlaneSizes = 3;

// Kinds of nodes of a partition that are alike, and, where there are several, all together, fastest first.
struct Kind {
  std::vector<std::uint32_t> nodes;
  std::string constraint;
  bool by_name = false;
};

// A feature that all of `nodes` and no other node of the partition has; empty: there is none.
std::string own_feature(const Cluster& cluster, const std::vector<std::uint32_t>& nodes,
                        const std::vector<std::uint32_t>& partition) {
  const auto has = [&](std::uint32_t node, const std::string& feature) {
    const auto& features = cluster.nodes[node].features;
    return std::find(features.begin(), features.end(), feature) != features.end();
  };
  for (const std::string& feature : cluster.nodes[nodes.front()].features) {
    const bool all = std::all_of(nodes.begin(), nodes.end(), [&](auto node) { return has(node, feature); });
    const auto count = std::count_if(partition.begin(), partition.end(), [&](auto node) { return has(node, feature); });
    if (all && static_cast<std::size_t>(count) == nodes.size()) return feature;
  }
  return {};
}

std::vector<Kind> kinds_of(const Cluster& cluster, const Partition& partition) {
  std::vector<Kind> kinds;
  std::vector<std::uint32_t> up;
  for (const std::uint32_t node : partition.nodes) {
    if (!cluster.nodes[node].up) continue;
    up.push_back(node);
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& kind) {
      return cluster.nodes[kind.nodes.front()].is_like(cluster.nodes[node]);
    });
    if (same == kinds.end()) {
      kinds.push_back({{node}, "", false});
    } else {
      same->nodes.push_back(node);
    }
  }
  if (kinds.size() < 2) return kinds;
  for (Kind& kind : kinds) {
    kind.constraint = own_feature(cluster, kind.nodes, up);
    kind.by_name = kind.constraint.empty();
  }
  std::stable_sort(up.begin(), up.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto power = [&](std::uint32_t node) { return cluster.nodes[node].speed * cluster.nodes[node].cores(); };
    return power(a) > power(b);
  });
  kinds.push_back({std::move(up), "", true});
  return kinds;
}

// Node counts worth a look: the fewest that hold the ranks, those that divide them, powers of two, the most.
std::vector<std::uint32_t> counts_between(std::uint32_t least, std::uint32_t most, std::uint32_t ranks) {
  std::set<std::uint32_t> counts{least, most};
  for (std::uint32_t count = least; count <= most; ++count) {
    if (ranks % count == 0 || (count & (count - 1)) == 0) counts.insert(count);
  }
  std::vector<std::uint32_t> list(counts.begin(), counts.end());
  // Many: every second one in the middle goes, as often as needed.
  while (list.size() > kMostNodeCounts) {
    std::vector<std::uint32_t> fewer;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i % 2 == 0 || i + 1 == list.size()) fewer.push_back(list[i]);
    }
    list = std::move(fewer);
  }
  return list;
}

std::uint32_t saturating_sum(const std::vector<std::uint32_t>& capacities, std::size_t count) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += capacities[i];
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, ~std::uint32_t{0}));
}

class SetMaker {
 public:
  SetMaker(const Cluster& cluster, const CandidateOptions& options) : cluster_(cluster), options_(options) {}

  Result<void> add(const Partition& partition) {
    Result<std::vector<std::shared_ptr<const engine::Network>>> networks = networks_of(partition);
    if (!networks) return networks.error();
    note_room(partition, 0, 0);
    for (const Kind& kind : kinds_of(cluster_, partition)) {
      for (const std::vector<std::uint32_t>& nodes : choices(partition, kind)) {
        for (const auto& network : *networks) {
          sets_.push_back({partition.name, nodes, kind.constraint, kind.by_name, network});
        }
      }
    }
    return {};
  }
  std::vector<NodeSet> take() { return std::move(sets_); }
  // Why nothing fits: of the partition that can hold the most ranks.
  std::string why_not() const {
    std::string text = "no candidate fits: " + std::to_string(options_.ranks) + " ranks";
    if (!options_.node_counts.empty()) text += " on the node counts asked for";
    text += ", but partition '" + roomiest_ + "', the one with the most room, has " + std::to_string(most_nodes_) +
            " usable nodes for " + std::to_string(most_room_) + " ranks";
    if (options_.memory_per_rank_mib > 0) text += " of " + std::to_string(options_.memory_per_rank_mib) + " MiB";
    if (!options_.overcommit) text += "; --overcommit lets ranks share processors";
    return text;
  }

 private:
  Result<std::vector<std::shared_ptr<const engine::Network>>> networks_of(const Partition& partition) const {
    if (partition.network.empty()) return options_.networks;
    for (const auto& network : options_.known_networks) {
      if (network->name() == partition.network) return std::vector{network};
    }
    return Error{ErrorCode::kNotFound, "partition '" + partition.name + "' has the network '" + partition.network +
                                           "', which has no network file"};
  }

  // Nodes for each node count that holds the ranks.
  std::vector<std::vector<std::uint32_t>> choices(const Partition& partition, const Kind& kind) {
    std::vector<std::uint32_t> usable;
    for (const std::uint32_t node : kind.nodes) {
      if (capacity_of(cluster_.nodes[node], options_) > 0) usable.push_back(node);
    }
    const auto ranks = static_cast<std::uint32_t>(options_.ranks);
    auto most = static_cast<std::uint32_t>(std::min<std::size_t>(usable.size(), ranks));
    if (partition.max_nodes > 0) most = std::min(most, partition.max_nodes);
    std::vector<std::vector<std::uint32_t>> found;
    std::vector<std::uint32_t> capacities;
    for (const std::uint32_t node : usable) capacities.push_back(capacity_of(cluster_.nodes[node], options_));
    std::sort(capacities.rbegin(), capacities.rend());
    note_room(partition, saturating_sum(capacities, most), most);
    std::uint32_t least = 1;
    while (least <= most && saturating_sum(capacities, least) < ranks) ++least;
    std::vector<std::uint32_t> counts = options_.node_counts;
    if (counts.empty() && least <= most) counts = counts_between(least, most, ranks);
    for (const std::uint32_t count : counts) {
      if (count < least || count > most) continue;
      std::vector<std::uint32_t> nodes = choose_nodes(cluster_, usable, count);
      if (nodes.size() != count || !holds(nodes)) continue;
      // Different ones come strongest first, to be chosen; Slurm deals ranks to them in its own order.
      std::sort(nodes.begin(), nodes.end());
      found.push_back(std::move(nodes));
    }
    return found;
  }
  bool holds(const std::vector<std::uint32_t>& nodes) const {
    std::vector<std::uint32_t> capacities;
    for (const std::uint32_t node : nodes) capacities.push_back(capacity_of(cluster_.nodes[node], options_));
    return saturating_sum(capacities, capacities.size()) >= static_cast<std::uint32_t>(options_.ranks);
  }
  void note_room(const Partition& partition, std::uint32_t room, std::uint32_t nodes) {
    if (!roomiest_.empty() && room <= most_room_) return;
    roomiest_ = partition.name;
    most_room_ = room;
    most_nodes_ = nodes;
  }

  const Cluster& cluster_;
  const CandidateOptions& options_;
  std::vector<NodeSet> sets_;
  std::string roomiest_;
  std::uint32_t most_room_ = 0;
  std::uint32_t most_nodes_ = 0;
};

std::vector<std::uint32_t> cores_of(const Cluster& cluster, const NodeSet& set) {
  std::vector<std::uint32_t> cores;
  for (const std::uint32_t node : set.nodes) cores.push_back(cluster.nodes[node].cores());
  return cores;
}

bool fits(const Cluster& cluster, const NodeSet& set, const CandidateOptions& options,
          const std::vector<std::uint32_t>& node_of_rank) {
  std::vector<std::uint32_t> capacities;
  for (const std::uint32_t node : set.nodes) capacities.push_back(capacity_of(cluster.nodes[node], options));
  return most_beyond(node_of_rank, capacities) == 0;
}

Candidate candidate(const Cluster& cluster, const NodeSet& set, const CandidateOptions& options, std::string placement,
                    std::vector<std::uint32_t> node_of_rank) {
  Candidate made{set, {}, bare_target(cluster, set, options), false};
  for (const std::uint32_t node : set.nodes) made.node_names.push_back(cluster.nodes[node].name);
  made.overcommits = most_beyond(node_of_rank, cores_of(cluster, set)) > 0;
  made.target.node_of_rank = std::move(node_of_rank);
  made.target.placement = std::move(placement);
  if (options.fills_nodes) made.target.threads = engine::filling_threads(made.target);
  return made;
}

}  // namespace

bool Candidate::needs_host_file() const {
  if (is_map()) return true;
  const std::vector<std::uint32_t>& cores = target.cores_of_node;
  const std::uint32_t least = least_cores(target);
  if (std::all_of(cores.begin(), cores.end(), [least](std::uint32_t one) { return one == least; })) return false;
  // --ntasks-per-node would want so many processors on each node, and --overcommit deals by those that it gets.
  const std::vector<std::uint32_t> ranks = ranks_of_nodes(target);
  return overcommits || *std::max_element(ranks.begin(), ranks.end()) > least;
}

std::vector<std::uint32_t> ranks_of_nodes(const engine::Target& target) {
  std::vector<std::uint32_t> counts(target.nodes, 0);
  for (const std::uint32_t node : target.node_of_rank) ++counts[node];
  return counts;
}

std::uint32_t least_cores(const engine::Target& target) {
  const std::vector<std::uint32_t>& cores = target.cores_of_node;
  return cores.empty() ? target.cores_per_node : *std::min_element(cores.begin(), cores.end());
}

bool computes_alike(const engine::Target& a, const engine::Target& b) {
  if (a.nodes != b.nodes || a.node_of_rank != b.node_of_rank || a.threads != b.threads) return false;
  const std::vector<std::uint32_t> ranks = ranks_of_nodes(a);
  for (std::uint32_t node = 0; node < a.nodes; ++node) {
    if (a.speed_of(node) != b.speed_of(node)) return false;
    const std::uint32_t most = ranks[node] * std::max(a.threads, 1U);
    if (std::min(a.cores_of(node), most) != std::min(b.cores_of(node), most)) return false;
  }
  return true;
}

std::uint32_t capacity_of(const ClusterNode& node, const CandidateOptions& options) {
  std::uint64_t room = options.overcommit ? ~std::uint32_t{0} : node.cores();
  if (options.memory_per_rank_mib > 0 && node.memory_mib > 0)
    room = std::min<std::uint64_t>(room, node.memory_mib / options.memory_per_rank_mib);
  return static_cast<std::uint32_t>(room);
}

Result<std::vector<NodeSet>> node_sets(const Cluster& cluster, const CandidateOptions& options) {
  SetMaker maker(cluster, options);
  for (const std::string& name : options.partitions) {
    const Partition* const partition = cluster.find_partition(name);
    if (partition == nullptr) {
      std::string known;
      for (const Partition& other : cluster.partitions) known += (known.empty() ? "" : ", ") + other.name;
      return Error{ErrorCode::kNotFound, "no partition '" + name + "' in " + cluster.source + ": there are " +
                                             (known.empty() ? "none" : known)};
    }
    if (Result<void> added = maker.add(*partition); !added) return added.error();
  }
  for (const Partition& partition : cluster.partitions) {
    if (!options.partitions.empty() || !partition.up) continue;
    if (Result<void> added = maker.add(partition); !added) return added.error();
  }
  std::vector<NodeSet> sets = maker.take();
  if (sets.empty()) return invalid_input(maker.why_not());
  std::ranges::stable_partition(sets, [&](const NodeSet& set) { return set.partition == options.first_partition; });
  return sets;
}

engine::Target bare_target(const Cluster& cluster, const NodeSet& set, const CandidateOptions& options) {
  engine::Target target;
  target.nodes = static_cast<std::uint32_t>(set.nodes.size());
  target.network = set.network;
  target.waiting = options.waiting;
  target.memory = options.memory;
  const ClusterNode& first = cluster.nodes[set.nodes.front()];
  target.cores_per_node = first.cores();
  target.speed = first.speed;
  bool alike = true;
  for (const std::uint32_t node : set.nodes) alike = alike && cluster.nodes[node].is_like(first);
  for (const std::uint32_t node : set.nodes) {
    if (!alike) {
      target.cores_of_node.push_back(cluster.nodes[node].cores());
      target.speed_of_node.push_back(cluster.nodes[node].speed);
    }
    if (cluster.topology != nullptr) target.topology_node_of_node.push_back(cluster.topology_node_of_node[node]);
  }
  target.topology = cluster.topology;
  return target;
}

Candidate mapped_candidate(const Cluster& cluster, const NodeSet& set, const CandidateOptions& options,
                           std::vector<std::uint32_t> node_of_rank) {
  std::vector<bool> used(set.nodes.size(), false);
  for (const std::uint32_t node : node_of_rank) used[node] = true;
  NodeSet kept = set;
  kept.nodes.clear();
  std::vector<std::uint32_t> new_number(set.nodes.size(), 0);
  for (std::uint32_t node = 0; node < set.nodes.size(); ++node) {
    new_number[node] = static_cast<std::uint32_t>(kept.nodes.size());
    if (used[node]) kept.nodes.push_back(set.nodes[node]);
  }
  for (std::uint32_t& node : node_of_rank) node = new_number[node];
  return candidate(cluster, kept, options, "map", std::move(node_of_rank));
}

std::vector<Candidate> distributed_candidates(const Cluster& cluster, const NodeSet& set,
                                              const CandidateOptions& options) {
  std::vector<std::string> placements;
  if (options.block) placements.emplace_back("block");
  if (options.cyclic && set.nodes.size() > 1) placements.emplace_back("cyclic");
  const auto nodes = static_cast<std::uint32_t>(set.nodes.size());
  const std::uint32_t per_node = (static_cast<std::uint32_t>(options.ranks) + nodes - 1) / nodes;
  std::uint32_t plane = 1;
  while (plane * 2 < per_node) plane *= 2;
  for (std::uint32_t tried = 0; options.plane && nodes > 1 && plane > 1 && tried < kMostPlaneSizes; ++tried) {
    placements.push_back("plane=" + std::to_string(plane));
    plane /= 2;
  }
  std::vector<Candidate> made;
  const std::vector<std::uint32_t> cores = cores_of(cluster, set);
  for (std::string& placement : placements) {
    Result<std::vector<std::uint32_t>> placed = lay_out(placement, options.ranks, cores);
    if (!placed || !fits(cluster, set, options, *placed)) continue;
    const bool known = std::any_of(made.begin(), made.end(),
                                   [&](const Candidate& other) { return other.target.node_of_rank == *placed; });
    // Slurm's -N wants every node used.
    std::vector<bool> used(nodes, false);
    for (const std::uint32_t node : *placed) used[node] = true;
    if (known || std::find(used.begin(), used.end(), false) != used.end()) continue;
    made.push_back(candidate(cluster, set, options, std::move(placement), std::move(*placed)));
  }
  return made;
}

}  // namespace lbf::advisor
