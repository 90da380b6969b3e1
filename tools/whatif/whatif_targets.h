// The targets that the options of lbf-whatif ask for: every combination of node count, placement and network.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/network_name.h"
#include "base/result.h"
#include "predictor/engine/replay/memory_sharing.h"
#include "predictor/engine/replay/target.h"
#include "report/step.h"

namespace lbf::tools {

// What is known of how a program uses memory (docs/adr/0014-memory.md).
struct KnownMemory {
  engine::KnownDemand demand;
  std::uint32_t ranks_per_domain = 0;  // where it ran; 0: not known
  std::string network;                 // whose domains these were; empty: each target's
};

struct WhatIfOptions {
  std::vector<std::uint32_t> nodes;     // empty: as many as map=... names
  std::vector<std::uint32_t> cores{1};  // of every node, or by node
  std::vector<std::uint32_t> threads;   // of each rank's parallel regions; empty: as many as ran
  KnownMemory memory;
  std::vector<std::string> placements{"block"};
  std::vector<std::string> networks{std::string(kNoNetwork)};
  std::vector<double> speeds{1.0};  // of every node, or by node
  engine::Waiting waiting = engine::Waiting::kYield;
  std::string contention;  // empty: what the network file says
  std::string networks_dir;
  std::string topology;  // Slurm's topology.conf or topology.yaml (engine::TopologyFile::load); empty: none
  // Hostlist: node i of a target is the i-th of these; empty: those that the topology chooses. REQUIRES: only
  // with `topology`.
  std::string nodelist;
};

// A network by name (NAME.toml in `networks_dir`, else in its folder nominal; `zero` is built in) or by file
// (has a '/' or ends in .toml).
Result<std::shared_ptr<const engine::Network>> find_network(const std::string& name_or_file,
                                                            const std::string& networks_dir);

// The memory domains where a trace ran, by MEMORY.network; not known() without it, or where its file is not here.
engine::MemoryDomains domains_that_ran(const KnownMemory& memory, const std::string& networks_dir);

// NOTES get what is assumed of the topology. Errors: kInvalidInput names the option; those of find_network, place_ranks
// and TopologyFile.
Result<std::vector<engine::Target>> make_targets(const WhatIfOptions& options, Rank ranks,
                                                 std::vector<std::string>& notes);

// engine::set_other_programs for the configuration that ran, as lbfd's prediction SELF of it describes it.
void set_other_programs(const report::TargetPrediction& self, std::vector<engine::Target>& targets);

}  // namespace lbf::tools
