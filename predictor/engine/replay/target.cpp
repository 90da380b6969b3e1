// Placements and default targets (docs/engine.md, "Targets").
#include "predictor/engine/replay/target.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/number.h"
#include "base/quoted.h"

namespace lbf::engine {
namespace {

Result<std::vector<std::uint32_t>> place_by_map(std::string_view list, Rank ranks, std::uint32_t nodes) {
  std::vector<std::uint32_t> node_of_rank;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    const std::string_view item = list.substr(at, comma - at);
    const std::optional<std::uint32_t> node = parse_number<std::uint32_t>(item);
    if (!node) {
      return invalid_input("placement map: " + quoted(item) +
                           " is no node number: give one for each rank, as in map=0,0,1");
    }
    if (*node >= nodes) {
      return invalid_input("placement map: rank " + std::to_string(node_of_rank.size()) + " is on node " +
                           std::to_string(*node) + ", but there are " + std::to_string(nodes) +
                           " nodes (numbered from 0)");
    }
    node_of_rank.push_back(*node);
    at = comma + 1;
  }
  if (node_of_rank.size() != static_cast<std::size_t>(ranks)) {
    return invalid_input("placement map: names " + std::to_string(node_of_rank.size()) + " nodes for " +
                         std::to_string(ranks) + " ranks: give one node for each rank");
  }
  return node_of_rank;
}

}  // namespace

static constexpr std::pair<Waiting, std::string_view> kWaitingNames[] = {
    {Waiting::kYield, "yield"}, {Waiting::kBlock, "block"}, {Waiting::kSpin, "spin"}};

std::string_view waiting_name(Waiting waiting) {
  for (const auto& [value, name] : kWaitingNames) {
    if (value == waiting) return name;
  }
  return {};
}

std::optional<Waiting> parse_waiting(std::string_view name) {
  for (const auto& [value, known] : kWaitingNames) {
    if (known == name) return value;
  }
  return std::nullopt;
}

bool is_oversubscribed(const Target& target, std::uint32_t threads) {
  const std::uint64_t each = std::max(1U, target.threads != 0 ? target.threads : threads);
  std::vector<std::uint64_t> threads_on_node(target.nodes, 0);
  return std::any_of(target.node_of_rank.begin(), target.node_of_rank.end(),
                     [&](std::uint32_t node) { return (threads_on_node[node] += each) > target.cores_of(node); });
}

static bool is_same_network(const Network* network, const Network* ran) {
  if (network == nullptr || ran == nullptr) return network == ran;
  return network->name() == ran->name() && network->contention() == ran->contention();
}

bool is_configuration(const Target& target, const Target& ran) {
  const bool has_its_threads = target.threads == 0 || target.threads == ran.threads;
  if (target.nodes != ran.nodes || !has_its_threads || !is_same_network(target.network.get(), ran.network.get()))
    return false;
  for (std::uint32_t node = 0; node < ran.nodes; ++node) {
    if (target.cores_of(node) != ran.cores_of(node) || target.speed_of(node) != ran.speed_of(node)) return false;
  }
  return target.node_of_rank == ran.node_of_rank;
}

void set_other_programs(const Target& ran, std::vector<Target>& targets) {
  for (Target& target : targets)
    target.other_programs = is_configuration(target, ran) ? OtherPrograms::kAsTheyRan : OtherPrograms::kLeftOut;
}

std::uint32_t filling_threads(const Target& target) {
  std::vector<std::uint32_t> ranks_on_node(target.nodes, 0);
  for (const std::uint32_t node : target.node_of_rank) ++ranks_on_node[node];
  std::optional<std::uint32_t> least;
  for (std::uint32_t node = 0; node < target.nodes; ++node) {
    if (ranks_on_node[node] == 0) continue;
    const std::uint32_t each = target.cores_of(node) / ranks_on_node[node];
    least = std::min(least.value_or(each), each);
  }
  return std::max(1U, least.value_or(1));
}

Result<std::vector<std::uint32_t>> place_ranks(std::string_view placement, Rank ranks, std::uint32_t nodes) {
  if (ranks < 1) return invalid_input("there is no rank to place");
  if (nodes < 1) return invalid_input("a target needs at least one node");
  constexpr std::string_view kMap = "map=";
  constexpr std::string_view kPlane = "plane=";
  if (placement.starts_with(kMap)) return place_by_map(placement.substr(kMap.size()), ranks, nodes);

  const std::uint32_t count = static_cast<std::uint32_t>(ranks);
  if (nodes > count) {
    return invalid_input("placement " + quoted(placement) + " of " + std::to_string(ranks) + " ranks on " +
                         std::to_string(nodes) + " nodes leaves nodes empty: use at most " + std::to_string(ranks));
  }
  std::vector<std::uint32_t> node_of_rank(count);
  if (placement == "block") {
    const std::uint32_t each = count / nodes;
    const std::uint32_t extra = count % nodes;
    std::uint32_t rank = 0;
    for (std::uint32_t node = 0; node < nodes; ++node) {
      for (std::uint32_t i = 0; i < each + (node < extra ? 1 : 0); ++i) node_of_rank[rank++] = node;
    }
    return node_of_rank;
  }
  if (placement == "cyclic") {
    for (std::uint32_t rank = 0; rank < count; ++rank) node_of_rank[rank] = rank % nodes;
    return node_of_rank;
  }
  if (placement.starts_with(kPlane)) {
    const std::optional<std::uint32_t> size = parse_number<std::uint32_t>(placement.substr(kPlane.size()));
    if (!size || *size == 0) {
      return invalid_input("placement " + quoted(placement) + ": plane=K needs K, the ranks in one plane, 1 or more");
    }
    for (std::uint32_t rank = 0; rank < count; ++rank) node_of_rank[rank] = rank / *size % nodes;
    return node_of_rank;
  }
  return invalid_input("unknown placement " + quoted(placement) + ": use block, cyclic, plane=K or map=N0,N1,...");
}

// The nodes of `ran` where there are as many, else the topology's choice.
static void use_topology_of(const Target& ran, Target& target) {
  if (ran.topology == nullptr) return;
  if (target.nodes == ran.nodes) {
    target.topology_node_of_node = ran.topology_node_of_node;
  } else if (auto chosen = ran.topology->choose(target.nodes); chosen.ok()) {
    target.topology_node_of_node = std::move(*chosen);
  } else {
    return;
  }
  target.topology = ran.topology;
}

static std::vector<Target> targets_beside(const Target& ran,
                                          const std::vector<std::shared_ptr<const Network>>& networks,
                                          std::uint32_t threads) {
  std::vector<Target> targets{ran};
  const auto add = [&targets](Target target) {
    for (const Target& other : targets) {
      const bool same_network = other.network != nullptr && other.network->name() == target.network->name();
      if (same_network && other.node_of_rank == target.node_of_rank) return;
    }
    targets.push_back(std::move(target));
  };
  const Rank ranks = static_cast<Rank>(ran.node_of_rank.size());
  std::vector<std::shared_ptr<const Network>> all;
  if (ran.network != nullptr) all.push_back(ran.network);
  for (const auto& network : networks) {
    if (std::none_of(all.begin(), all.end(), [&](const auto& other) { return other->name() == network->name(); })) {
      all.push_back(network);
    }
  }
  for (const auto& network : all) {
    Target same = ran;
    same.network = network;
    add(std::move(same));  // the networking factor alone (TSE Sec. 3)
    for (Rank nodes = 1; nodes <= ranks; ++nodes) {
      if (ranks % nodes != 0) continue;
      if ((targets.size() + 1) * static_cast<std::size_t>(ranks) > kMostDefaultPlaces) return targets;
      Result<std::vector<std::uint32_t>> placed = place_ranks("block", ranks, static_cast<std::uint32_t>(nodes));
      if (!placed) continue;
      Target target;
      target.node_of_rank = std::move(*placed);
      target.nodes = static_cast<std::uint32_t>(nodes);
      target.cores_per_node = ran.cores_per_node;
      target.speed = ran.speed;
      target.memory = ran.memory;
      target.network = network;
      target.placement = "block";
      target.threads = filling_threads(target);
      use_topology_of(ran, target);
      add(std::move(target));
    }
  }
  if (const std::uint32_t filling = filling_threads(ran); threads != 0 && filling > threads) {
    targets.push_back(ran);
    targets.back().threads = filling;
  }
  return targets;
}

std::vector<Target> default_targets(const Target& ran, const std::vector<std::shared_ptr<const Network>>& networks,
                                    std::uint32_t threads) {
  std::vector<Target> targets = targets_beside(ran, networks, threads);
  set_other_programs(ran, targets);
  return targets;
}

}  // namespace lbf::engine
