// Topology: which nodes are on which switch, from the file in which Slurm's administrator says so
// (topology.conf(5), topology.yaml(5) of Slurm; docs/formats/network-v1.md, "Hops").
//
// A file of Slurm, not of lbf: what Slurm means by it is the contract, and Slurm is not needed to read it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "predictor/engine/network/network.h"

namespace lbf::engine {

struct TopologyDescription;

class Topology {
 public:
  static constexpr std::size_t kMaxNodes = 1 << 18;
  static constexpr std::size_t kMaxSwitches = 1 << 16;  // that are children of others
  static constexpr std::uint32_t kMaxLevels = 20;       // Slurm's own bound

  // The cluster's default topology in a text without Include (else: topology_file.h). Switches form trees: where a
  // switch has several parents, or a node several leaves, the first in the file counts, and warnings() says so. Blocks
  // (topology/block) are leaves below one common switch; block sizes above the base block are planning, not levels.
  // Errors (kInvalidInput, kLimit) name file, line and remedy.
  static Result<Topology> parse(std::string_view text, const std::string& file_name);
  static Result<Topology> build(const TopologyDescription& description);

  // What Slurm warns of, too. Each is one line with file and line.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // "topology.conf"; "topology.yaml#NAME" where the file has several.
  const std::string& file() const { return file_; }
  // Nodes are numbered from 0 in the order of the file's leaf switches.
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(names_.size()); }
  const std::string& node_name(std::uint32_t node) const { return names_[node]; }
  std::optional<std::uint32_t> find(const std::string& name) const;
  bool is_on_several_switches(std::uint32_t node) const { return on_several_switches_.contains(node); }
  // Those that a hostlist names, in its order. Errors (kNotFound, kInvalidInput): a node that is not in the
  // file, or named twice.
  Result<std::vector<std::uint32_t>> find_all(std::string_view hostlist) const;

  // Levels of the highest switch. A leaf switch has level 1, any other one more than its highest child:
  // Slurm's levels, from 1.
  std::uint32_t levels() const { return levels_; }
  // Level of the lowest switch that has both nodes below it; 0: it is one node; kUnknownHops: no switch
  // connects them. REQUIRES: both < nodes().
  std::uint32_t hops(std::uint32_t node_a, std::uint32_t node_b) const;
  // The highest switch up to `level` that `node` is below: nodes are at most `level` hops apart if and only
  // if it is the same one for both. REQUIRES: node < nodes(), level > 0.
  std::uint32_t switch_at(std::uint32_t node, std::uint32_t level) const;

  // The nodes that topology/tree gives an exclusive job of `count` nodes on an idle cluster: below the lowest
  // switch that has so many (the one with the fewest nodes, then the first in the file), from the leaf with
  // the fewest nodes that has all that are still missing, else from the one with the most. Ascending, as a
  // job's nodes are numbered. What other jobs have, weights, features and reservations are not considered.
  // Errors (kInvalidInput): no switch has `count` nodes.
  Result<std::vector<std::uint32_t>> choose(std::uint32_t count) const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Switch {
    std::uint32_t parent = kNone;
    std::uint32_t level = 0;
    std::uint32_t nodes = 0;  // below it
  };
  friend class TopologyBuilder;

  std::string file_;
  std::vector<std::string> warnings_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> node_of_name_;
  std::vector<std::uint32_t> leaf_of_node_;
  std::unordered_set<std::uint32_t> on_several_switches_;
  std::vector<Switch> switches_;
  std::uint32_t levels_ = 0;
};

}  // namespace lbf::engine
