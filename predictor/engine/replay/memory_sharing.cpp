#include "predictor/engine/replay/memory_sharing.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace lbf::engine {
namespace {

// Of work whose domain has so many processors that compute. Nobody demands more than one processor gets.
double slowdown(std::uint32_t computing, const MemoryDomains& memory, double demand_bytes_per_s) {
  return 1 / memory_speed(memory, computing, std::min(demand_bytes_per_s, memory.bytes_per_s.at(1)));
}

}  // namespace

bool shares_memory(const Target& target) {
  return target.memory.bytes_per_s > 0 && target.network->memory().known();
}

RankGroups::RankGroups(const Target& target, std::uint32_t domains_per_node) {
  std::vector<std::uint32_t> first(target.nodes);
  std::vector<std::uint32_t> groups(target.nodes);
  for (std::uint32_t node = 0; node < target.nodes; ++node) {
    const std::uint32_t cores = target.cores_of(node);
    first[node] = static_cast<std::uint32_t>(node_.size());
    groups[node] = std::min(domains_per_node, cores);
    for (std::uint32_t i = 0; i < groups[node]; ++i) {
      node_.push_back(node);
      cores_.push_back(cores / groups[node] + (i < cores % groups[node] ? 1 : 0));
    }
  }
  ranks_.resize(node_.size(), 0);
  std::vector<std::uint32_t> dealt(target.nodes, 0);
  group_of_rank_.reserve(target.node_of_rank.size());
  for (const std::uint32_t node : target.node_of_rank) {
    const std::uint32_t group = first[node] + dealt[node]++ % groups[node];
    group_of_rank_.push_back(group);
    ++ranks_[group];
  }
}

double memory_speed(const MemoryDomains& memory, double computing, double demand_bytes_per_s) {
  return std::min(1.0, memory.bytes_per_s.at(computing) / (computing * demand_bytes_per_s));
}

std::uint32_t ranks_per_domain(const Target& ran, const MemoryDomains& memory) {
  const RankGroups groups(ran, memory.per_node);
  std::uint32_t most = 1;
  for (std::size_t group = 0; group < groups.count(); ++group)
    most = std::max(most, std::min(groups.ranks_of(group), groups.cores_of(group)));
  return most;
}

KnownDemand fitted_demand(const MemoryDomains& memory, std::span<const DenseRun> runs) {
  const auto by_density = [](const DenseRun& a, const DenseRun& b) { return a.ranks_per_domain < b.ranks_per_domain; };
  const auto [sparse, dense] = std::minmax_element(runs.begin(), runs.end(), by_density);
  if (runs.empty() || sparse->ranks_per_domain == dense->ranks_per_domain || !(sparse->work_s > 0)) return {};
  const auto share = [&](const DenseRun& run) {
    return memory.bytes_per_s.at(run.ranks_per_domain) / run.ranks_per_domain;
  };
  const double grown = dense->work_s / sparse->work_s;
  if (grown < kLeastMemorySlowdown) return {0, share(*dense)};
  const double demand = std::min(grown * share(*dense), share(*sparse));
  return {demand, demand};
}

MemoryDemand memory_demand(const Target& ran, const MemoryDomains& memory, double bytes_per_s) {
  if (!(bytes_per_s > 0)) return {};
  const RankGroups groups(ran, memory.per_node);
  auto undisturbed = std::make_shared<std::vector<double>>();
  undisturbed->reserve(ran.node_of_rank.size());
  for (Rank rank = 0; rank < static_cast<Rank>(ran.node_of_rank.size()); ++rank) {
    const std::uint32_t group = groups.of(rank);
    const std::uint32_t computing = std::min(groups.ranks_of(group), groups.cores_of(group));
    undisturbed->push_back(memory_speed(memory, computing, bytes_per_s));
  }
  return {bytes_per_s, std::move(undisturbed)};
}

MemoryDemand memory_demand(Rank ranks, std::uint32_t ran_per_domain, const MemoryDomains& memory, double bytes_per_s) {
  if (!(bytes_per_s > 0)) return {};
  const double undisturbed = memory_speed(memory, ran_per_domain, bytes_per_s);
  return {bytes_per_s, std::make_shared<const std::vector<double>>(static_cast<std::size_t>(ranks), undisturbed)};
}

double unknown_demand_percent(std::uint32_t ran_per_domain, const MemoryDomains& ran_in, const Target& target,
                              const KnownDemand& demand) {
  const MemoryDomains& memory = target.network->memory();
  if (demand.bytes_per_s > 0 || !memory.known() || !ran_in.known()) return 0;
  const double there = slowdown(ranks_per_domain(target, memory), memory, demand.most_bytes_per_s);
  return 100 * std::fabs(there / slowdown(ran_per_domain, ran_in, demand.most_bytes_per_s) - 1);
}

}  // namespace lbf::engine
