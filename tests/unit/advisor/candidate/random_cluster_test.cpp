// Properties of candidates and computed mappings on random clusters: whatever is asked, no limit is broken.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "advisor/mapping/local_search.h"
#include "advisor/mapping/partition.h"
#include "advisor/ranking/ranking.h"
#include "tests/unit/advisor/fixture.h"

namespace lbf::advisor::random_cluster_test {
namespace {

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}
  std::uint32_t from(std::uint32_t least, std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(least, most)(random_);
  }

 private:
  std::mt19937 random_;
};

Cluster random_cluster(Draw& draw) {
  Cluster cluster;
  std::string conf;
  const std::uint32_t switches = draw.from(0, 3);
  const std::uint32_t nodes = draw.from(1, 12);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    ClusterNode made;
    made.name = "n" + std::to_string(node);
    made.sockets = draw.from(1, 2);
    made.cores_per_socket = draw.from(1, 4);
    made.memory_mib = draw.from(0, 1) * draw.from(100, 1000);
    made.up = draw.from(0, 5) > 0;
    cluster.nodes.push_back(made);
  }
  for (std::uint32_t which = 0; which < switches; ++which) {
    std::string names;
    for (std::uint32_t node = which; node < nodes; node += switches)
      names += (names.empty() ? "" : ",") + cluster.nodes[node].name;
    if (!names.empty()) conf += "SwitchName=s" + std::to_string(which) + " Nodes=" + names + "\n";
  }
  if (switches > 1 && nodes >= switches) conf += "SwitchName=top Switches=s[0-" + std::to_string(switches - 1) + "]\n";
  if (!conf.empty()) {
    cluster.topology = std::make_shared<const engine::Topology>(*engine::Topology::parse(conf, "topology.conf"));
    for (const ClusterNode& node : cluster.nodes)
      cluster.topology_node_of_node.push_back(*cluster.topology->find(node.name));
  }
  for (std::uint32_t p = 0; p < 2; ++p) {
    Partition partition;
    partition.name = "p" + std::to_string(p);
    partition.max_nodes = draw.from(0, 1) * draw.from(1, 6);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      if (draw.from(0, 3) > 0) partition.nodes.push_back(node);
    }
    cluster.partitions.push_back(partition);
  }
  return cluster;
}

CommGraph random_graph(Draw& draw, Rank ranks) {
  CommGraphBuilder builder(ranks);
  const auto most = static_cast<std::uint32_t>(ranks - 1);
  for (std::uint32_t i = draw.from(0, 4 * most + 1); i > 0; --i) {
    builder.add_message(static_cast<Rank>(draw.from(0, most)), static_cast<Rank>(draw.from(0, most)),
                        draw.from(0, 5000));
  }
  return builder.finish();
}

void check(const Cluster& cluster, const CandidateOptions& options, const Candidate& candidate) {
  const Partition* const partition = cluster.find_partition(candidate.set.partition);
  ASSERT_NE(partition, nullptr);
  if (partition->max_nodes > 0) {
    EXPECT_LE(candidate.target.nodes, partition->max_nodes);
  }
  ASSERT_EQ(candidate.target.node_of_rank.size(), static_cast<std::size_t>(options.ranks));
  ASSERT_EQ(candidate.set.nodes.size(), candidate.target.nodes);
  std::vector<std::uint32_t> ranks_of_node(candidate.target.nodes, 0);
  for (const std::uint32_t node : candidate.target.node_of_rank) {
    ASSERT_LT(node, candidate.target.nodes);
    ++ranks_of_node[node];
  }
  for (std::uint32_t i = 0; i < candidate.target.nodes; ++i) {
    const ClusterNode& node = cluster.nodes[candidate.set.nodes[i]];
    EXPECT_TRUE(node.up);
    EXPECT_TRUE(std::binary_search(partition->nodes.begin(), partition->nodes.end(), candidate.set.nodes[i]));
    EXPECT_EQ(candidate.node_names[i], node.name);
    EXPECT_EQ(candidate.target.cores_of(i), node.cores());
    EXPECT_GT(ranks_of_node[i], 0U) << "Slurm's -N wants every node used";
    if (!options.overcommit) {
      EXPECT_LE(ranks_of_node[i], node.cores());
    }
    if (options.memory_per_rank_mib > 0 && node.memory_mib > 0) {
      EXPECT_LE(ranks_of_node[i] * options.memory_per_rank_mib, node.memory_mib);
    }
  }
}

TEST(RandomClusters, NoLimitIsBroken) {
  std::uint32_t candidates = 0;
  std::uint32_t mappings = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    const Cluster cluster = random_cluster(draw);
    CandidateOptions options = test::options(static_cast<Rank>(draw.from(1, 24)));
    options.memory_per_rank_mib = draw.from(0, 1) * draw.from(50, 300);
    options.overcommit = draw.from(0, 2) == 0;
    const CommGraph graph = random_graph(draw, options.ranks);
    const Result<std::vector<NodeSet>> sets = node_sets(cluster, options);
    if (!sets) continue;
    for (const NodeSet& set : *sets) {
      for (const Candidate& one : distributed_candidates(cluster, set, options)) {
        check(cluster, options, one);
        ++candidates;
      }
      const MappingProblem problem(graph, bare_target(cluster, set, options),
                                   mapping_capacities(cluster, set, options));
      Result<std::vector<std::uint32_t>> mapping = partition(problem);
      ASSERT_TRUE(mapping.ok()) << mapping.error().message;
      const double before = problem.cost(*mapping);
      const double after = improve(problem, *mapping);
      EXPECT_LE(after, before * (1 + 1e-9));
      check(cluster, options, mapped_candidate(cluster, set, options, *mapping));
      ++mappings;
    }
  }
  EXPECT_GT(candidates, 300U);
  EXPECT_GT(mappings, 200U);
}

}  // namespace
}  // namespace lbf::advisor::random_cluster_test