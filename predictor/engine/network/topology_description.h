// What a file of Slurm says of one topology, before it is a tree: between the readers of topology.conf and
// topology.yaml and Topology.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predictor/engine/network/slurm_conf.h"

namespace lbf::engine {

// One switch or block.
struct TopologyEntry {
  std::string name;
  std::string file;
  std::size_t line = 0;
  std::string nodes;     // hostlists; empty: none
  std::string switches;  // children
};

struct TopologyDescription {
  enum class Kind : std::uint8_t {
    kTree,
    kBlock,
    kFlat,   // no switches
    kOther,  // does not say which nodes share a switch
  };

  std::string file;
  std::size_t line = 0;
  std::string name;   // in topology.yaml
  std::string label;  // the file, and which of its topologies: "topology.yaml#NAME"
  bool is_cluster_default = false;
  Kind kind = Kind::kTree;
  std::vector<TopologyEntry> entries;
  std::vector<std::string> warnings;  // each one line: what is left out or assumed, as Slurm does

  // The first few are kept.
  void warn(const std::string& warned_file, std::size_t warned_line, const std::string& what);
};

// `lines`: of the file `file_name`. Also what `scontrol show topology` prints. Errors: kInvalidInput.
Result<TopologyDescription> read_topology_conf(const std::vector<SlurmLine>& lines, const std::string& file_name);

// At least one, in the file's order. Errors: kInvalidInput.
Result<std::vector<TopologyDescription>> read_topology_yaml(std::string_view text, const std::string& file_name);

bool is_yaml(std::string_view file_name);

// By either of them. `folder`: of parse_slurm_conf. Errors: kInvalidInput, kLimit.
Result<std::vector<TopologyDescription>> read_topologies(std::string_view text, const std::string& file_name,
                                                         const std::string& folder);
// The first that is, else the first. REQUIRES: there is one.
const TopologyDescription& cluster_default(const std::vector<TopologyDescription>& topologies);

}  // namespace lbf::engine
