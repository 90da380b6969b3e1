// Memory sharing: which ranks of a target share a memory domain, and how fast they compute in it
// (docs/adr/0014-memory.md).
//
// The model is that of Afzal, Hager and Wellein, "An analytic performance model for overlapping execution of
// memory-bound loop kernels on multicore CPUs" (2020): who computes gets of a domain's bandwidth what it
// demands, or, once that is more than there is, a share in proportion to it. Ranks of one program have one demand.
//
// Place in the event's way: network file, target -> *memory sharing* -> SharedReplay.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "predictor/engine/network/network.h"
#include "predictor/engine/replay/target.h"

namespace lbf::engine {

// The demand is known, and so is what the target's domains have.
bool shares_memory(const Target& target);

// Groups of ranks that share processors: each node, or each of its memory domains. Processors and ranks of a node are
// dealt to its domains in turn, as Slurm does it by default, and stay there. A node has no more domains than
// processors.
class RankGroups {
 public:
  // REQUIRES: domains_per_node >= 1.
  RankGroups(const Target& target, std::uint32_t domains_per_node);

  std::size_t count() const { return node_.size(); }
  std::uint32_t of(Rank rank) const { return group_of_rank_[static_cast<std::size_t>(rank)]; }
  std::uint32_t node_of(std::size_t group) const { return node_[group]; }
  std::uint32_t cores_of(std::size_t group) const { return cores_[group]; }
  std::uint32_t ranks_of(std::size_t group) const { return ranks_[group]; }

 private:
  std::vector<std::uint32_t> group_of_rank_;
  std::vector<std::uint32_t> node_;   // by group
  std::vector<std::uint32_t> cores_;  // by group
  std::vector<std::uint32_t> ranks_;  // by group
};

// How fast COMPUTING processors of a domain are that demand DEMAND bytes/s each, relative to one that has the domain
// for itself. REQUIRES: memory.known(), computing > 0.
double memory_speed(const MemoryDomains& memory, double computing, double demand_bytes_per_s);

// The most ranks of RAN that one of MEMORY's domains has and that have a processor each. Threads do not count: whether
// there are parallel regions is known when they come.
std::uint32_t ranks_per_domain(const Target& ran, const MemoryDomains& memory);

// What is known of a program's demand.
struct KnownDemand {
  double bytes_per_s = 0;          // 0: not known, or so little that no run shows it
  double most_bytes_per_s = 1e30;  // it is not more
};

// The work of a rank in a run, by how many ranks its memory domains had.
struct DenseRun {
  std::uint32_t ranks_per_domain = 1;
  Seconds work_s = 0;
};
// From the two runs whose densities differ most. Work that grows by less than kLeastMemorySlowdown says that there is
// enough for the denser one.
inline constexpr double kLeastMemorySlowdown = 1.02;
KnownDemand fitted_demand(const MemoryDomains& memory, std::span<const DenseRun> runs);

// The demand of all ranks, for targets. They disturbed each other where RAN ran, all at the same time: so much less
// work each has with a domain for itself. REQUIRES: memory.known(), of where it ran.
MemoryDemand memory_demand(const Target& ran, const MemoryDomains& memory, double bytes_per_s);

// The same where each domain of MEMORY had RAN_PER_DOMAIN ranks that computed.
MemoryDemand memory_demand(Rank ranks, std::uint32_t ran_per_domain, const MemoryDomains& memory, double bytes_per_s);

// How much TARGET may be off, in percent of its predicted time, if the demand is the most that it may be and is not in
// the prediction. It ran with RAN_PER_DOMAIN ranks in each domain of RAN_IN. 0 where domains are not known.
double unknown_demand_percent(std::uint32_t ran_per_domain, const MemoryDomains& ran_in, const Target& target,
                              const KnownDemand& demand);

}  // namespace lbf::engine
