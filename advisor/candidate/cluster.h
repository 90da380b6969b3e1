// Cluster: what a cluster has (nodes, partitions, switches), as the advisor looks for places in it.
//
// Read from a cluster file, version 1 (docs/formats/cluster-v1.md): written by hand, or by
// lbf-cluster-inventory from what Slurm says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "predictor/engine/network/topology.h"

namespace lbf::advisor {

struct ClusterNode {
  std::string name;
  std::uint32_t sockets = 1;
  std::uint32_t cores_per_socket = 1;
  std::uint64_t memory_mib = 0;  // 0: not known
  double speed = 1.0;            // of each processor, relative to those that ran
  bool up = true;                // takes jobs
  std::vector<std::string> features;

  std::uint32_t cores() const { return sockets * cores_per_socket; }
  // No placement can tell the two apart.
  bool is_like(const ClusterNode& other) const {
    return sockets == other.sockets && cores_per_socket == other.cores_per_socket && memory_mib == other.memory_mib &&
           speed == other.speed;
  }
};

struct Partition {
  std::string name;                  // empty: the file names no partition, this is the whole cluster
  std::vector<std::uint32_t> nodes;  // indices of Cluster::nodes, ascending
  bool is_default = false;
  bool up = true;
  std::uint32_t max_nodes = 0;  // of one job; 0: no limit
  Seconds max_time_s = 0;       // of one job; 0: no limit
  std::string network;          // name of its network file; empty: not said
};

struct Cluster {
  static constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMaxNodes = std::size_t{1} << 18;
  static constexpr std::uint32_t kMaxCores = 1 << 16;  // of one node

  std::string source;        // the file that it was read from
  std::string cluster_name;  // ClusterName; empty: not said
  std::vector<ClusterNode> nodes;
  std::vector<Partition> partitions;                 // at least one
  std::shared_ptr<const engine::Topology> topology;  // nullptr: all nodes are equally far apart
  // With `topology`: the number of each node in it. Every node is in it.
  std::vector<std::uint32_t> topology_node_of_node;
  std::vector<std::string> notes;  // what is assumed of the topology, or why a cluster that Slurm described has none

  // nullptr: there is none of that name.
  const Partition* find_partition(std::string_view name) const;
};

// A file whose name ends in .toml is TOML, every other one JSON. Errors (kInvalidInput, kLimit) name file and
// key: an unknown key, a value of another type or out of range, a node that is named twice or in no group, a
// partition of unknown nodes, a node that the topology does not have.
Result<Cluster> parse_cluster(std::string_view text, const std::string& file_name);
// Errors: also kNotFound and kIo.
Result<Cluster> load_cluster(const std::string& path);

}  // namespace lbf::advisor
