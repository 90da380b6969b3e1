// Memory sharing: which ranks of a target share a memory domain, and how fast they compute in it
// (docs/adr/0014-memory.md).
//
// The model is that of Afzal, Hager and Wellein, "An analytic performance model for overlapping execution of
// memory-bound loop kernels on multicore CPUs" (2020): who computes gets of a domain's bandwidth what it
// demands, or, once that is more than there is, a share in proportion to it. Ranks of one program have one demand.
//
// Place in the event's way: network file, target -> *memory sharing* -> SharedReplay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "predictor/engine/network/network.h"
#include "predictor/engine/replay/target.h"

namespace lbf::engine {

// Ranks that share processors: those of a node, or of one of its memory domains.
struct SharingGroup {
  std::uint32_t node = 0;
  std::uint32_t cores = 0;
  std::uint32_t ranks = 0;
  double domains = 1;  // more than one where the node has fewer ranks than domains

  // Processors of one of its domains that compute where `processors` of the group do. One is in one domain.
  double computing(double processors) const { return std::max(processors / domains, std::min(processors, 1.0)); }
  // The same while all ranks compute, each with so many threads.
  double all_computing(std::uint32_t threads) const {
    return computing(std::min(static_cast<double>(ranks) * threads, static_cast<double>(cores)));
  }
};

// The groups of a target. Processors and ranks of a node are dealt to its domains in turn, as Slurm does it by default,
// and stay there. A node with fewer ranks than domains gives each rank, for its threads, several of them.
class SharingGroups {
 public:
  // REQUIRES: domains_per_node >= 1.
  SharingGroups(const Target& target, std::uint32_t domains_per_node);

  std::size_t count() const { return groups_.size(); }
  std::uint32_t of(Rank rank) const { return group_of_rank_[static_cast<std::size_t>(rank)]; }
  const SharingGroup& operator[](std::size_t group) const { return groups_[group]; }

 private:
  std::vector<SharingGroup> groups_;
  std::vector<std::uint32_t> group_of_rank_;
};

// The memory domains where it ran.
struct RanMemory {
  MemoryDomains domains;
  std::vector<SharingGroup> group_of_rank;
  std::vector<double> undisturbed;  // by rank: undisturbed() with one thread
};

// Domains of the target's network, else of where it ran: a network file need not have them. nullptr: not known.
const MemoryDomains* memory_domains(const Target& target);

// The demand is known, and so is what the target's domains have.
bool shares_memory(const Target& target);

// How fast COMPUTING processors of a domain are that demand DEMAND bytes/s each, relative to one that has the domain
// for itself. REQUIRES: memory.known(), computing > 0.
double memory_speed(const MemoryDomains& memory, double computing, double demand_bytes_per_s);

// So much of its recorded work a rank would have with a domain for itself, where it ran with so many threads: all
// ranks are taken to have computed at the same time.
double undisturbed(const MemoryDemand& demand, Rank rank, std::uint32_t threads);

// The most ranks of RAN that one of MEMORY's domains has and that have a processor each.
std::uint32_t ranks_per_domain(const Target& ran, const MemoryDomains& memory);

// What is known of a program's demand.
struct KnownDemand {
  static constexpr double kAny = 1e30;
  double bytes_per_s = 0;          // 0: not known, or so little that no run shows it
  double most_bytes_per_s = kAny;  // it is not more
};

// The work of a rank in a run, by how many ranks its memory domains had.
struct DenseRun {
  std::uint32_t ranks_per_domain = 1;
  Seconds work_s = 0;
};
// From the two runs whose densities differ most. Work that grows by less than kLeastMemorySlowdown says that there is
// enough for the denser one; where the sparser one had too little, the demand may be more.
inline constexpr double kLeastMemorySlowdown = 1.02;
KnownDemand fitted_demand(const MemoryDomains& memory, std::span<const DenseRun> runs);

// The demand of all ranks, for targets. They disturbed each other where RAN ran: so much less work each has with a
// domain for itself. REQUIRES: memory.known(), of where it ran.
MemoryDemand memory_demand(const Target& ran, const MemoryDomains& memory, double bytes_per_s);

// The same where each domain of MEMORY had RAN_PER_DOMAIN ranks, and as many processors as MEMORY knows, or as ranks.
MemoryDemand memory_demand(Rank ranks, std::uint32_t ran_per_domain, const MemoryDomains& memory, double bytes_per_s);

// How dense a run was, for unknown_demand_percent().
struct RanDensity {
  MemoryDomains domains;      // where it ran; not known(): as of each target
  double computing = 1;       // processors of the fullest one
  std::uint32_t threads = 0;  // of the largest team of a parallel region; 0: there was none
};
RanDensity ran_density(const Target& ran, std::uint32_t threads);
// The same where each of DOMAINS had so many ranks.
RanDensity ran_density(std::uint32_t ranks_per_domain, const MemoryDomains& domains, std::uint32_t threads);

// How much TARGET may be off, in percent of its predicted time, if the demand is the most that it may be. 0 where
// domains are not known.
double unknown_demand_percent(const RanDensity& ran, const Target& target, const KnownDemand& demand);

}  // namespace lbf::engine
