// Target: a configuration to predict: where each rank runs, how fast the processors are, which network.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "predictor/engine/network/network.h"
#include "predictor/engine/network/topology.h"

namespace lbf::engine {

// What a process does while it waits for a message: it polls and gives its processor away each time that it
// polled in vain, which takes turns (Open MPI's mpi_yield_when_idle; PathCost::turn_s); it gives it away and
// costs nothing (the papers); or it polls and keeps its share, as MPI libraries do that do not yield.
enum class Waiting : std::uint8_t { kYield, kBlock, kSpin };

// "yield", "block", "spin"
std::string_view waiting_name(Waiting waiting);
std::optional<Waiting> parse_waiting(std::string_view name);

// Whether other programs have the processors for the times that the events tell (kPreempted).
enum class OtherPrograms : std::uint8_t { kLeftOut, kAsTheyRan };

struct RanMemory;  // memory_sharing.h

// What every rank's work wants of memory (docs/adr/0014-memory.md).
struct MemoryDemand {
  double bytes_per_s = 0;                // of a rank with a domain for itself; 0: not known, domains are not shared
  std::shared_ptr<const RanMemory> ran;  // who had the domains where it ran; nullptr: each rank one for itself
};

struct Target {
  std::vector<std::uint32_t> node_of_rank;  // process groups: the ranks with the same number (TSE Sec. 2)
  std::uint32_t nodes = 1;
  std::uint32_t cores_per_node = 1;  // processors of one node
  double speed = 1.0;                // of each processor, relative to the one that ran
  std::uint32_t threads = 0;         // of each rank's parallel regions; 0: as many as ran
  // Nodes that are not alike (heterogeneous partitions): by node; empty: all have the two values above.
  std::vector<std::uint32_t> cores_of_node;
  std::vector<double> speed_of_node;
  Waiting waiting = Waiting::kYield;
  OtherPrograms other_programs = OtherPrograms::kLeftOut;
  MemoryDemand memory;
  std::shared_ptr<const Network> network;
  std::string placement;  // "block", "cyclic", "plane=2", "map=0,0,1"
  // Which switches are between the nodes; nullptr: not known, every message between nodes costs `remote`.
  std::shared_ptr<const Topology> topology;
  std::vector<std::uint32_t> topology_node_of_node;  // with `topology`: the number of each node in it
  std::uint32_t scenario = 0;  // of the predictor's ProcedurePlan, counted from 1; 0: procedures run where they ran

  std::uint32_t cores_of(std::uint32_t node) const {
    return cores_of_node.empty() ? cores_per_node : cores_of_node[node];
  }
  double speed_of(std::uint32_t node) const { return speed_of_node.empty() ? speed : speed_of_node[node]; }
  // As Network::path() wants them. REQUIRES: nodes below `nodes`.
  std::uint32_t hops(std::uint32_t node_a, std::uint32_t node_b) const {
    if (node_a == node_b) return 0;
    if (topology == nullptr) return kUnknownHops;
    return topology->hops(topology_node_of_node[node_a], topology_node_of_node[node_b]);
  }
};

// Some node has more ranks than processors, or more threads of them. THREADS: of a rank's regions, where the target has
// as many as ran.
bool is_oversubscribed(const Target& target, std::uint32_t threads = 1);

// TARGET is the configuration RAN: every rank on the same node, the same processors and network, and as many threads.
bool is_configuration(const Target& target, const Target& ran);

// What other programs took is known of the configuration that RAN alone: it is replayed beside them, all other TARGETS
// are without them. lbfd, lbf-whatif and lbf-advise decide by this.
void set_other_programs(const Target& ran, std::vector<Target>& targets);

// So many threads of each rank fill the nodes: the fullest one's processors by its ranks, at least 1.
std::uint32_t filling_threads(const Target& target);

// PLACEMENT: "block" (Slurm's: ranks spread as evenly as possible, the first nodes get the extra ones),
// "cyclic", "plane=K", "map=N0,N1,..." (node of each rank). Errors say what is wrong and what would be right.
Result<std::vector<std::uint32_t>> place_ranks(std::string_view placement, Rank ranks, std::uint32_t nodes);

// Ranks times targets of default_targets() at most: memory of a step before anything of it has run.
inline constexpr std::size_t kMostDefaultPlaces = std::size_t{1} << 24;

// The targets that lbfd predicts without being asked: the configuration that ran (first, beside the other programs that
// ran there), then the same ranks on every node count that divides them evenly, on every network. There their parallel
// regions have as many threads as fill the nodes; where more than THREADS fill those that ran (0: not known), the last
// target is what ran with so many. Where the topology of the one that ran is known they use its nodes, and with another
// node count those that Topology::choose() gives; without any where it has too few. Those beyond kMostDefaultPlaces are
// left out.
std::vector<Target> default_targets(const Target& ran, const std::vector<std::shared_ptr<const Network>>& networks,
                                    std::uint32_t threads = 0);

}  // namespace lbf::engine
