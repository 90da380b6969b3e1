// Node sets and candidates.
#include "advisor/candidate/candidate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/advisor/fixture.h"

namespace lbf::advisor::candidate_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<NodeSet> sets_of(const Cluster& cluster, const CandidateOptions& options) {
  Result<std::vector<NodeSet>> sets = node_sets(cluster, options);
  EXPECT_TRUE(sets.ok()) << (sets.ok() ? "" : sets.error().message);
  return sets.ok() ? std::move(*sets) : std::vector<NodeSet>{};
}
std::vector<std::size_t> counts(const std::vector<NodeSet>& sets) {
  std::vector<std::size_t> list;
  for (const NodeSet& set : sets) list.push_back(set.nodes.size());
  return list;
}
std::string why_not(const Cluster& cluster, const CandidateOptions& options) {
  const Result<std::vector<NodeSet>> sets = node_sets(cluster, options);
  EXPECT_FALSE(sets.ok());
  return sets.ok() ? "" : sets.error().message;
}

TEST(NodeSets, NodeCountsThatHoldTheRanks) {
  const Cluster cluster = test::even_cluster(10, 4);
  // 12 ranks on 4 cores: at least 3 nodes; 4 and 6 divide 12, 8 is a power of two, 10 is all.
  EXPECT_THAT(counts(sets_of(cluster, test::options(12))), ElementsAre(3, 4, 6, 8, 10));
  CandidateOptions asked = test::options(12);
  asked.node_counts = {2, 5};
  EXPECT_THAT(counts(sets_of(cluster, asked)), ElementsAre(5)) << "2 nodes hold 8 ranks";
  asked.overcommit = true;
  EXPECT_THAT(counts(sets_of(cluster, asked)), ElementsAre(2, 5));
}

TEST(NodeSets, MemoryLimitsTheRanksOfANode) {
  Cluster cluster = test::even_cluster(4, 8);
  for (ClusterNode& node : cluster.nodes) node.memory_mib = 1000;
  CandidateOptions options = test::options(8);
  EXPECT_EQ(counts(sets_of(cluster, options)).front(), 1U);
  options.memory_per_rank_mib = 400;  // two ranks a node
  EXPECT_THAT(counts(sets_of(cluster, options)), ElementsAre(4));
  options.memory_per_rank_mib = 600;
  EXPECT_THAT(why_not(cluster, options),
              AllOf(HasSubstr("no candidate fits: 8 ranks"), HasSubstr("4 usable nodes for 4 ranks of 600 MiB")));
}

TEST(NodeSets, WhatIsDownOrTooSmallIsNotTaken) {
  Cluster cluster = test::even_cluster(4, 2);
  cluster.nodes[1].up = false;
  for (const NodeSet& set : sets_of(cluster, test::options(4))) {
    EXPECT_EQ(std::count(set.nodes.begin(), set.nodes.end(), 1U), 0);
  }
  cluster.partitions[0].max_nodes = 1;
  EXPECT_THAT(why_not(cluster, test::options(4)), HasSubstr("1 usable nodes for 2 ranks; --overcommit"));
  cluster.partitions[0].max_nodes = 0;
  cluster.partitions[0].up = false;
  EXPECT_THAT(why_not(cluster, test::options(4)), HasSubstr("no candidate fits"));
}

// Two partitions of the same nodes: the advice was the other one, though nothing was better there.
TEST(NodeSets, ThePartitionThatRanComesFirst) {
  const Cluster cluster = test::cluster(
      "[[node]]\nname = \"n[1-2]\"\ncores_per_socket = 2\n[[partition]]\nname = \"a\"\nnodes = \"n[1-2]\"\n"
      "[[partition]]\nname = \"b\"\nnodes = \"n[1-2]\"\n");
  CandidateOptions options = test::options(2);
  EXPECT_EQ(sets_of(cluster, options).front().partition, "a");
  options.first_partition = "b";
  const std::vector<NodeSet> sets = sets_of(cluster, options);
  EXPECT_EQ(sets.front().partition, "b");
  EXPECT_EQ(sets.back().partition, "a");
}

TEST(NodeSets, UnknownPartition) {
  const Cluster cluster = test::cluster(
      "[[node]]\nname = \"n1\"\n[[partition]]\nname = \"short\"\nnodes = \"n1\"\n[[partition]]\nname = "
      "\"long\"\n");
  CandidateOptions options = test::options(1);
  options.partitions = {"shrt"};
  const Result<std::vector<NodeSet>> sets = node_sets(cluster, options);
  ASSERT_FALSE(sets.ok());
  EXPECT_EQ(sets.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(sets.error().message, AllOf(HasSubstr("'shrt'"), HasSubstr("short, long")));
  options.partitions = {"long"};
  EXPECT_THAT(why_not(cluster, options), HasSubstr("'long'"));
}

TEST(NodeSets, KindsOfNodesAreAskedForByTheirFeatureOrName) {
  const Cluster cluster = test::cluster(
      "[[node]]\nname = \"fat[1-2]\"\ncores_per_socket = 8\nfeatures = [\"all\", \"big\"]\n"
      "[[node]]\nname = \"thin[1-2]\"\ncores_per_socket = 2\nfeatures = [\"all\"]\n");
  const std::vector<NodeSet> sets = sets_of(cluster, test::options(4));
  std::set<std::string> ways;
  for (const NodeSet& set : sets) {
    bool fat = false;
    bool thin = false;
    for (const std::uint32_t node : set.nodes) (node < 2 ? fat : thin) = true;
    if (fat && thin) {
      EXPECT_TRUE(set.by_name);
    }
    if (fat && !thin && !set.by_name) {
      EXPECT_EQ(set.constraint, "big");
    }
    if (thin && !fat) {
      EXPECT_TRUE(set.by_name) << "no feature is theirs alone";
    }
    ways.insert(fat && thin ? "mixed" : fat ? "fat" : "thin");
  }
  EXPECT_THAT(ways, ElementsAre("fat", "mixed", "thin"));
}

TEST(NodeSets, TheStrongestOfDifferentNodesInTheClustersOrder) {
  const Cluster cluster = test::cluster(
      "[[node]]\nname = \"thin[1-2]\"\ncores_per_socket = 2\n[[node]]\nname = \"fat[1-2]\"\ncores_per_socket = 8\n");
  CandidateOptions options = test::options(12);
  options.node_counts = {3};
  const std::vector<NodeSet> sets = sets_of(cluster, options);
  ASSERT_EQ(sets.size(), 1U);
  EXPECT_THAT(sets[0].nodes, ElementsAre(0, 2, 3)) << "both fat ones, behind the thin one";
  const std::vector<Candidate> made = distributed_candidates(cluster, sets[0], options);
  ASSERT_FALSE(made.empty());
  EXPECT_THAT(made[0].node_names, ElementsAre("thin1", "fat1", "fat2"));
  // Dealt: two on the thin one, five on each of the others.
  EXPECT_THAT(made[0].target.node_of_rank, ElementsAre(0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2));
  EXPECT_TRUE(made[0].needs_host_file());
}

TEST(NodeSets, NearNodesFirst) {
  // Three usable nodes are below s1 alone; two are on either.
  Cluster cluster = test::cluster(
      "topology = \"SwitchName=s0 Nodes=n[1-2]\\nSwitchName=s1 Nodes=n[3-5]\\nSwitchName=top "
      "Switches=s[0-1]\"\n"
      "[[node]]\nname = \"n[1-5]\"\n");
  CandidateOptions options = test::options(3);
  options.node_counts = {2, 3};
  std::vector<NodeSet> sets = sets_of(cluster, options);
  ASSERT_EQ(sets.size(), 1U);
  EXPECT_THAT(sets[0].nodes, ElementsAre(2, 3, 4));
  cluster.nodes[3].up = false;
  sets = sets_of(cluster, options);
  ASSERT_EQ(sets.size(), 1U);
  EXPECT_THAT(sets[0].nodes, ElementsAre(0, 1, 2)) << "two from one leaf, one from the other";
}

TEST(NodeSets, APartitionsOwnNetwork) {
  Cluster cluster = test::cluster(
      "[[node]]\nname = \"n[1-2]\"\n[[partition]]\nname = \"p\"\nnodes = \"n[1-2]\"\nnetwork = \"own\"\n");
  CandidateOptions options = test::options(2);
  EXPECT_THAT(why_not(cluster, options), HasSubstr("'own', which has no network file"));
  options.known_networks = {test::network("name = \"own\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 1.0]]\n")};
  EXPECT_EQ(sets_of(cluster, options).front().network->name(), "own");
}

TEST(Candidates, DistributionsThatDiffer) {
  const Cluster cluster = test::even_cluster(2, 8);
  CandidateOptions options = test::options(16);
  const std::vector<NodeSet> sets = sets_of(cluster, options);
  ASSERT_EQ(sets.size(), 1U);
  std::vector<std::string> placements;
  for (const Candidate& one : distributed_candidates(cluster, sets[0], options)) {
    placements.push_back(one.target.placement);
    EXPECT_EQ(one.target.cores_per_node, 8U);
    EXPECT_FALSE(one.overcommits);
    EXPECT_THAT(one.node_names, ElementsAre("n1", "n2"));
  }
  EXPECT_THAT(placements, ElementsAre("block", "cyclic", "plane=4", "plane=2"));
  EXPECT_EQ(distributed_candidates(cluster, sets[0], options).front().target.threads, 0U);
  // With one rank a node they are all the same.
  options.ranks = 2;
  options.node_counts = {2};
  EXPECT_EQ(distributed_candidates(cluster, sets_of(cluster, options)[0], options).size(), 1U);
  options.fills_nodes = true;
  EXPECT_EQ(distributed_candidates(cluster, sets_of(cluster, options)[0], options).front().target.threads, 8U);
}

TEST(Candidates, NodesWithoutRanksAreLeftOutOfAMap) {
  const Cluster cluster = test::even_cluster(3, 4);
  CandidateOptions options = test::options(4);
  options.node_counts = {3};
  const Candidate made = mapped_candidate(cluster, sets_of(cluster, options)[0], options, {2, 0, 2, 0});
  EXPECT_TRUE(made.is_map());
  EXPECT_EQ(made.target.nodes, 2U);
  EXPECT_THAT(made.target.node_of_rank, ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(made.node_names, ElementsAre("n1", "n3"));
  EXPECT_DOUBLE_EQ(made.node_hours(1800), 1.0);
}

TEST(Candidates, ComputeAlikeWhereNoReplayTellsThemApart) {
  engine::Target one;
  one.nodes = 2;
  one.node_of_rank = {0, 0, 1};
  one.cores_per_node = 2;
  engine::Target other = one;
  EXPECT_TRUE(computes_alike(one, other));
  other.cores_per_node = 8;
  EXPECT_TRUE(computes_alike(one, other)) << "six processors are idle";
  other.cores_of_node = {2, 1};
  other.speed_of_node = {1, 1};
  EXPECT_TRUE(computes_alike(one, other));
  other.cores_of_node = {1, 2};
  EXPECT_FALSE(computes_alike(one, other)) << "two ranks share one";
  other.cores_of_node = {2, 1};
  other.speed_of_node = {1, 2};
  EXPECT_FALSE(computes_alike(one, other));
  other = one;
  other.node_of_rank = {0, 1, 1};
  EXPECT_FALSE(computes_alike(one, other));
  one.threads = 2;
  other = one;
  other.cores_per_node = 3;
  EXPECT_FALSE(computes_alike(one, other)) << "two ranks of two threads";
  other = one;
  other.threads = 1;
  EXPECT_FALSE(computes_alike(one, other));
}

TEST(Candidates, UnlikeNodesHaveTheirOwnProcessorsAndSpeeds) {
  const Cluster cluster =
      test::cluster("[[node]]\nname = \"a\"\ncores_per_socket = 2\nspeed = 2.0\n[[node]]\nname = \"b\"\n");
  CandidateOptions options = test::options(3);
  const std::vector<NodeSet> sets = sets_of(cluster, options);
  ASSERT_EQ(sets.size(), 1U);
  const engine::Target target = bare_target(cluster, sets[0], options);
  EXPECT_THAT(target.cores_of_node, ElementsAre(2, 1));
  EXPECT_THAT(target.speed_of_node, ElementsAre(2.0, 1.0));
}

}  // namespace
}  // namespace lbf::advisor::candidate_test