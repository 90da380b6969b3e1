#include "predictor/engine/replay/memory_sharing.h"

#include <cmath>
#include <memory>

namespace lbf::engine {
namespace {

// Of the fullest domain.
double most_computing(const Target& target, const MemoryDomains& memory, std::uint32_t threads) {
  const SharingGroups groups(target, memory.per_node);
  double most = 1;
  for (std::size_t group = 0; group < groups.count(); ++group)
    most = std::max(most, groups[group].all_computing(threads));
  return most;
}

// A domain of which only its ranks are known. It has as many processors as were measured, at least one for each.
SharingGroup domain_of(std::uint32_t ranks, const MemoryDomains& memory) {
  return {0, std::max(ranks, memory.known() ? memory.bytes_per_s.points().back().first : ranks), ranks, 1};
}

MemoryDemand demand_beside(RanMemory ran, double bytes_per_s) {
  ran.undisturbed.reserve(ran.group_of_rank.size());
  for (const SharingGroup& group : ran.group_of_rank)
    ran.undisturbed.push_back(memory_speed(ran.domains, group.all_computing(1), bytes_per_s));
  return {bytes_per_s, std::make_shared<const RanMemory>(std::move(ran))};
}

}  // namespace

SharingGroups::SharingGroups(const Target& target, std::uint32_t domains_per_node) {
  std::vector<std::uint32_t> ranks(target.nodes);
  for (const std::uint32_t node : target.node_of_rank) ++ranks[node];
  std::vector<std::uint32_t> first(target.nodes);
  std::vector<std::uint32_t> count(target.nodes);
  for (std::uint32_t node = 0; node < target.nodes; ++node) {
    const std::uint32_t cores = target.cores_of(node);
    const std::uint32_t domains = std::min(domains_per_node, cores);
    first[node] = static_cast<std::uint32_t>(groups_.size());
    count[node] = std::min(domains, std::max(ranks[node], 1U));
    for (std::uint32_t i = 0; i < count[node]; ++i) {
      groups_.push_back({node, cores / count[node] + (i < cores % count[node] ? 1 : 0), 0,
                         static_cast<double>(domains) / count[node]});
    }
  }
  std::vector<std::uint32_t> dealt(target.nodes, 0);
  group_of_rank_.reserve(target.node_of_rank.size());
  for (const std::uint32_t node : target.node_of_rank) {
    const std::uint32_t group = first[node] + dealt[node]++ % count[node];
    group_of_rank_.push_back(group);
    ++groups_[group].ranks;
  }
}

const MemoryDomains* memory_domains(const Target& target) {
  if (target.network->memory().known()) return &target.network->memory();
  return target.memory.ran != nullptr && target.memory.ran->domains.known() ? &target.memory.ran->domains : nullptr;
}

bool shares_memory(const Target& target) {
  return target.memory.bytes_per_s > 0 && memory_domains(target) != nullptr;
}

double memory_speed(const MemoryDomains& memory, double computing, double demand_bytes_per_s) {
  return std::min(1.0, memory.bytes_per_s.at(computing) / (computing * demand_bytes_per_s));
}

double undisturbed(const MemoryDemand& demand, Rank rank, std::uint32_t threads) {
  if (demand.ran == nullptr) return 1;
  const auto index = static_cast<std::size_t>(rank);
  if (threads <= 1) return demand.ran->undisturbed[index];
  return memory_speed(demand.ran->domains, demand.ran->group_of_rank[index].all_computing(threads), demand.bytes_per_s);
}

std::uint32_t ranks_per_domain(const Target& ran, const MemoryDomains& memory) {
  return static_cast<std::uint32_t>(most_computing(ran, memory, 1));
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
  const double demand = grown * share(*dense);
  if (demand < share(*sparse)) return {demand, demand};
  return {share(*sparse), KnownDemand::kAny};
}

MemoryDemand memory_demand(const Target& ran, const MemoryDomains& memory, double bytes_per_s) {
  if (!(bytes_per_s > 0)) return {};
  const SharingGroups groups(ran, memory.per_node);
  RanMemory made{memory, {}, {}};
  made.group_of_rank.reserve(ran.node_of_rank.size());
  for (Rank rank = 0; rank < static_cast<Rank>(ran.node_of_rank.size()); ++rank)
    made.group_of_rank.push_back(groups[groups.of(rank)]);
  return demand_beside(std::move(made), bytes_per_s);
}

MemoryDemand memory_demand(Rank ranks, std::uint32_t ran_per_domain, const MemoryDomains& memory, double bytes_per_s) {
  if (!(bytes_per_s > 0)) return {};
  return demand_beside({memory, {static_cast<std::size_t>(ranks), domain_of(ran_per_domain, memory)}, {}}, bytes_per_s);
}

RanDensity ran_density(const Target& ran, std::uint32_t threads) {
  const MemoryDomains& memory = ran.network->memory();
  return {memory, most_computing(ran, memory, std::max(threads, 1U)), threads};
}

RanDensity ran_density(std::uint32_t ranks_per_domain, const MemoryDomains& domains, std::uint32_t threads) {
  return {domains, domain_of(ranks_per_domain, domains).all_computing(std::max(threads, 1U)), threads};
}

double unknown_demand_percent(const RanDensity& ran, const Target& target, const KnownDemand& demand) {
  const MemoryDomains& own = target.network->memory();
  const MemoryDomains& there = own.known() ? own : ran.domains;
  const MemoryDomains& here = ran.domains.known() ? ran.domains : own;
  if (!there.known() || demand.most_bytes_per_s <= demand.bytes_per_s) return 0;
  const std::uint32_t threads = target.threads != 0 ? target.threads : ran.threads;
  const double computing = most_computing(target, there, ran.threads == 0 ? 1 : threads);
  const auto slower = [&](double bytes_per_s) {
    return memory_speed(here, ran.computing, bytes_per_s) / memory_speed(there, computing, bytes_per_s);
  };
  // Nobody demands more than one processor gets.
  const double most = slower(std::min(demand.most_bytes_per_s, here.bytes_per_s.at(1)));
  const double predicted = demand.bytes_per_s > 0 ? slower(demand.bytes_per_s) : 1;
  return 100 * std::fabs(most / predicted - 1);
}

}  // namespace lbf::engine
