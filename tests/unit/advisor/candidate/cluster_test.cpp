// Cluster files.
#include "advisor/candidate/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_directory.h"
#include "tests/unit/advisor/fixture.h"

namespace lbf::advisor::cluster_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refused(const std::string& text, const std::string& file = "c.toml") {
  const Result<Cluster> parsed = parse_cluster(text, file);
  EXPECT_FALSE(parsed.ok()) << text;
  return parsed.ok() ? "" : parsed.error().message;
}

constexpr const char* kWhole = R"(
lbf_cluster = 1
topology = """
SwitchName=s0 Nodes=a[1-2]
SwitchName=s1 Nodes=b1
SwitchName=s2 Switches=s[0-1]
"""
[[node]]
name = "a[1-2]"
sockets = 2
cores_per_socket = 4
memory_mib = 1000
features = ["ib", "new"]
[[node]]
name = "b1"
speed = 0.5
up = false
[[partition]]
name = "all"
nodes = "b1,a[1-2]"
default = true
max_nodes = 2
max_time_s = 60
network = "lan"
[[partition]]
name = "empty"
)";

TEST(ClusterFile, EveryKey) {
  const Result<Cluster> parsed = parse_cluster(kWhole, "c.toml");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed->nodes.size(), 3U);
  EXPECT_EQ(parsed->nodes[0].name, "a1");
  EXPECT_EQ(parsed->nodes[1].cores(), 8U);
  EXPECT_EQ(parsed->nodes[1].memory_mib, 1000U);
  EXPECT_THAT(parsed->nodes[1].features, ElementsAre("ib", "new"));
  EXPECT_TRUE(parsed->nodes[0].up);
  EXPECT_FALSE(parsed->nodes[2].up);
  EXPECT_EQ(parsed->nodes[2].speed, 0.5);
  EXPECT_EQ(parsed->nodes[2].cores(), 1U);
  const Partition* const all = parsed->find_partition("all");
  ASSERT_NE(all, nullptr);
  EXPECT_THAT(all->nodes, ElementsAre(0, 1, 2));
  EXPECT_TRUE(all->is_default);
  EXPECT_EQ(all->max_nodes, 2U);
  EXPECT_EQ(all->max_time_s, 60);
  EXPECT_EQ(all->network, "lan");
  EXPECT_TRUE(parsed->find_partition("empty")->nodes.empty());
  EXPECT_EQ(parsed->find_partition("other"), nullptr);
  ASSERT_NE(parsed->topology, nullptr);
  EXPECT_EQ(parsed->topology->hops(parsed->topology_node_of_node[0], parsed->topology_node_of_node[1]), 1U);
  EXPECT_EQ(parsed->topology->hops(parsed->topology_node_of_node[0], parsed->topology_node_of_node[2]), 2U);
}

TEST(ClusterFile, JsonIsReadAlike) {
  const Result<Cluster> parsed =
      parse_cluster(R"({"lbf_cluster":1,"source":"slurm","node":[{"name":"x1","sockets":2,"features":[]}],)"
                    R"("partition":[{"name":"p","nodes":"x1"}]})",
                    "c.json");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->nodes[0].cores(), 2U);
  EXPECT_EQ(parsed->partitions[0].name, "p");
}

TEST(ClusterFile, WithoutPartitionsTheWholeClusterIsOne) {
  const Cluster cluster = test::even_cluster(3, 2);
  ASSERT_EQ(cluster.partitions.size(), 1U);
  EXPECT_EQ(cluster.partitions[0].name, "");
  EXPECT_THAT(cluster.partitions[0].nodes, ElementsAre(0, 1, 2));
}

TEST(ClusterFile, WhatIsWrongIsNamed) {
  const std::string node = "[[node]]\nname = \"n1\"\n";
  EXPECT_THAT(refused("lbf_cluster = 1\n"), HasSubstr("there is no node"));
  EXPECT_THAT(refused(node), HasSubstr("lbf_cluster"));
  EXPECT_THAT(refused("lbf_cluster = 2\n" + node), HasSubstr("lbf_cluster"));
  EXPECT_THAT(refused("lbf_cluster = 1\n" + node + "cores = 4\n"),
              AllOf(HasSubstr("c.toml, node 1"), HasSubstr("'cores' is not known")));
  EXPECT_THAT(refused("lbf_cluster = 1\n" + node + "sockets = 0\n"), HasSubstr("'sockets' is no whole number"));
  EXPECT_THAT(refused("lbf_cluster = 1\n" + node + "sockets = -1\n"), HasSubstr("'sockets' is no whole number"));
  EXPECT_THAT(refused("lbf_cluster = 1\n" + node + "sockets = 1024\ncores_per_socket = 65536\n"),
              HasSubstr("more than 65536 cores"));
  EXPECT_THAT(refused("lbf_cluster = 1\n" + node + "speed = 0.0\n"), HasSubstr("'speed' is no number above 0"));
  EXPECT_THAT(refused("lbf_cluster = 1\n" + node + "speed = nan\n"), HasSubstr("c.toml"));
  EXPECT_THAT(refused("lbf_cluster = 1\n" + node + "up = 1\n"), HasSubstr("'up' is neither true nor false"));
  EXPECT_THAT(refused("lbf_cluster = 1\n" + node + "features = [1]\n"), HasSubstr("no text"));
  EXPECT_THAT(refused("lbf_cluster = 1\n" + node + node), HasSubstr("named twice"));
  EXPECT_THAT(refused("lbf_cluster = 1\n[[node]]\nname = \"n[1-\"\n"), HasSubstr("'name'"));
  EXPECT_THAT(refused("lbf_cluster = 1\n[[node]]\nname = \"n[1-999999999]\"\n"), HasSubstr("node 1"));
  EXPECT_THAT(refused("lbf_cluster = 1\n" + node + "[[partition]]\nname = \"p\"\nnodes = \"n2\"\n"),
              HasSubstr("node 'n2' is not described"));
  EXPECT_THAT(refused("lbf_cluster = 1\n" + node + "[[partition]]\nnodes = \"n1\"\n"), HasSubstr("has no 'name'"));
  EXPECT_THAT(refused("lbf_cluster = 1\n" + node + "[[partition]]\nname = \"p\"\n[[partition]]\nname = \"p\"\n"),
              HasSubstr("two of the name"));
  EXPECT_THAT(refused("lbf_cluster = 1\ntopology = \"SwitchName=s Nodes=n2\"\n" + node),
              HasSubstr("does not have node 'n1'"));
  // Slurm goes on with such a topology, so nobody can be told to mend it here.
  const Result<Cluster> by_slurm =
      parse_cluster("lbf_cluster = 1\nsource = \"slurm\"\ntopology = \"SwitchName=s Nodes=n2\"\n" + node, "c.toml");
  ASSERT_TRUE(by_slurm.ok());
  EXPECT_EQ(by_slurm->topology, nullptr);
  EXPECT_THAT(by_slurm->notes, testing::ElementsAre(HasSubstr("does not have node 'n1'")));
  EXPECT_THAT(refused("lbf_cluster = [\n"), HasSubstr("c.toml:"));
  EXPECT_THAT(refused("{", "c.json"), HasSubstr("no JSON"));
  EXPECT_THAT(refused("[1]", "c.json"), HasSubstr("no table"));
  EXPECT_THAT(refused(R"({"lbf_cluster":1,"node":{"name":"n1"}})", "c.json"), HasSubstr("'node' is no list"));
}

TEST(ClusterFile, CutOffAnywhereIsAnErrorOrAClusterNeverACrash) {
  const std::string whole = kWhole;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Result<Cluster> parsed = parse_cluster(whole.substr(0, length), "c.toml");
    if (parsed.ok()) {
      EXPECT_FALSE(parsed->nodes.empty()) << length;
    }
    (void)parse_cluster(whole.substr(0, length), "c.json");
  }
}

TEST(ClusterFile, FromDisk) {
  const lbf::test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/c.toml";
  EXPECT_EQ(load_cluster(path).error().code, ErrorCode::kNotFound);
  std::ofstream(path) << kWhole;
  const Result<Cluster> loaded = load_cluster(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->source, path);
}

}  // namespace
}  // namespace lbf::advisor::cluster_test