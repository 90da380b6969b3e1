// Candidates: the configurations that a cluster can really give a job, before anything is known of their
// times.
//
// A node set (partition, nodes, network) is made into one candidate for each distribution that fits its
// processors and memory; the mapping search (advisor/mapping) adds computed ones.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "advisor/candidate/cluster.h"
#include "base/result.h"
#include "predictor/engine/replay/target.h"

namespace lbf::advisor {

// Nodes of one partition and the network between them.
struct NodeSet {
  std::string partition;             // empty: none to be named
  std::vector<std::uint32_t> nodes;  // of the cluster
  // What makes Slurm give these nodes, or nodes that are like them: a feature that only they have, else their
  // names; both empty: every node of the partition is alike.
  std::string constraint;
  bool by_name = false;
  std::shared_ptr<const engine::Network> network;
};

struct Candidate {
  NodeSet set;
  std::vector<std::string> node_names;  // node i of the target
  engine::Target target;                // its placement is "block", "cyclic", "plane=K" or "map"
  bool overcommits = false;             // some node has more ranks than processors

  bool is_map() const { return target.placement == "map"; }
  // No option of srun asks for it: a map, or a distribution on nodes of different sizes that get more ranks than the
  // smallest one has processors.
  bool needs_host_file() const;
  // What it occupies while it runs `time_s`.
  double node_hours(Seconds time_s) const { return target.nodes * time_s / 3600; }
};

struct CandidateOptions {
  Rank ranks = 0;
  std::vector<std::uint32_t> node_counts;  // empty: chosen
  std::vector<std::string> partitions;     // empty: all that are up
  std::string first_partition;             // its node sets come first: of equal candidates the first is advised
  // Of the partitions that do not name theirs; at least one.
  std::vector<std::shared_ptr<const engine::Network>> networks;
  // By name, for the partitions that do.
  std::vector<std::shared_ptr<const engine::Network>> known_networks;
  std::uint64_t memory_per_rank_mib = 0;  // 0: not considered
  bool overcommit = false;                // more ranks than processors on a node, too
  bool fills_nodes = false;               // with as many threads of each rank as fill the nodes, else as many as ran
  bool block = true, cyclic = true, plane = true;
  engine::Waiting waiting = engine::Waiting::kYield;
  engine::MemoryDemand memory;
};

// By node. REQUIRES: a node for each rank.
std::vector<std::uint32_t> ranks_of_nodes(const engine::Target& target);
// Processors of the smallest node.
std::uint32_t least_cores(const engine::Target& target);
// The same ranks on each node, with as many threads, as fast, and as many processors as they can use.
bool computes_alike(const engine::Target& a, const engine::Target& b);

// Ranks that fit on a node: its processors (with overcommit: all), its memory. 0: none.
std::uint32_t capacity_of(const ClusterNode& node, const CandidateOptions& options);

// Every partition, kind of nodes, node count and network that can hold the ranks. Nodes are taken as near
// together as the topology allows, from those that take jobs, and stand in the cluster's order, as Slurm deals ranks to
// them. Errors: kNotFound: a partition that does not exist, kInvalidInput: nothing fits, with the reason.
Result<std::vector<NodeSet>> node_sets(const Cluster& cluster, const CandidateOptions& options);

// The target of a set without its placement.
engine::Target bare_target(const Cluster& cluster, const NodeSet& set, const CandidateOptions& options);
// Of a computed mapping; nodes that got no rank are left out. REQUIRES: a node of the set for each rank.
Candidate mapped_candidate(const Cluster& cluster, const NodeSet& set, const CandidateOptions& options,
                           std::vector<std::uint32_t> node_of_rank);
// block, cyclic and planes of a set, those that fit, no two of them alike.
std::vector<Candidate> distributed_candidates(const Cluster& cluster, const NodeSet& set,
                                              const CandidateOptions& options);

}  // namespace lbf::advisor
