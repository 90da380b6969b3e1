// Slurm's topology.conf and topology.yaml.
#include "predictor/engine/network/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::topology_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

engine::Topology parsed(const std::string& text, const std::string& file = "topology.conf") {
  Result<engine::Topology> topology = engine::Topology::parse(text, file);
  EXPECT_TRUE(topology.ok()) << (topology.ok() ? "" : topology.error().message);
  return topology.ok() ? std::move(*topology) : engine::Topology();
}

std::string refused(const std::string& text, const std::string& file = "topology.conf") {
  const Result<engine::Topology> topology = engine::Topology::parse(text, file);
  EXPECT_FALSE(topology.ok()) << text;
  return topology.ok() ? "" : topology.error().message;
}

std::uint32_t hops(const engine::Topology& topology, const std::string& a, const std::string& b) {
  EXPECT_EQ(topology.hops(*topology.find(a), *topology.find(b)), topology.hops(*topology.find(b), *topology.find(a)));
  return topology.hops(*topology.find(a), *topology.find(b));
}

std::vector<std::string> names(const engine::Topology& topology, const Result<std::vector<std::uint32_t>>& nodes) {
  EXPECT_TRUE(nodes.ok()) << (nodes.ok() ? "" : nodes.error().message);
  std::vector<std::string> list;
  if (nodes.ok()) {
    for (const std::uint32_t node : *nodes) list.push_back(topology.node_name(node));
  }
  return list;
}

// The example of topology.conf(5).
constexpr const char* kManual =
    "##################################################################\n"
    "# Slurm's network topology configuration file for use with the\n"
    "# topology/tree plugin\n"
    "##################################################################\n"
    "SwitchName=s0 Nodes=dev[0-5]\n"
    "SwitchName=s1 Nodes=dev[6-11]\n"
    "SwitchName=s2 Nodes=dev[12-17]\n"
    "SwitchName=s3 Switches=s[0-2]\n";

TEST(TopologyConf, TheManualsTree) {
  const engine::Topology topology = parsed(kManual);
  EXPECT_EQ(topology.file(), "topology.conf");
  ASSERT_EQ(topology.nodes(), 18U);
  EXPECT_EQ(topology.node_name(17), "dev17");
  EXPECT_EQ(topology.levels(), 2U);
  EXPECT_EQ(hops(topology, "dev3", "dev3"), 0U);
  EXPECT_EQ(hops(topology, "dev0", "dev5"), 1U);
  EXPECT_EQ(hops(topology, "dev5", "dev6"), 2U);
  EXPECT_EQ(hops(topology, "dev0", "dev17"), 2U);
  EXPECT_FALSE(topology.find("dev18"));
}

TEST(TopologyConf, KeysInAnyCaseBlanksQuotesCommentsAndContinuedLines) {
  const engine::Topology topology = parsed(
      "  switchname = a\tNODES=n[1-2] LinkSpeed=100  # a comment with Nodes=x\r\n"
      "\n"
      "SwitchName=b \\\n"
      "   Nodes=\"n[3-4]\" \\  \n"
      "   linkspeed=7\n"
      "SWITCHNAME=top Switches=a,b");
  EXPECT_EQ(topology.nodes(), 4U);
  EXPECT_EQ(hops(topology, "n1", "n2"), 1U);
  EXPECT_EQ(hops(topology, "n2", "n3"), 2U);
}

TEST(TopologyConf, LevelsAreSlurmsAlsoWhereTheTreeIsUneven) {
  // top has level 3, because of middle: near's nodes are 3 levels from all others, as Slurm counts.
  const engine::Topology topology = parsed(
      "SwitchName=top Switches=middle,near\n"
      "SwitchName=middle Switches=a,b\n"
      "SwitchName=a Nodes=a[1-2]\nSwitchName=b Nodes=b1\nSwitchName=near Nodes=c[1-2]\nSwitchName=empty\n");
  EXPECT_EQ(topology.levels(), 3U);
  EXPECT_EQ(hops(topology, "a1", "a2"), 1U);
  EXPECT_EQ(hops(topology, "a1", "b1"), 2U);
  EXPECT_EQ(hops(topology, "c1", "c2"), 1U);
  EXPECT_EQ(hops(topology, "a1", "c1"), 3U);
}

TEST(TopologyConf, NodesThatNoSwitchConnects) {
  const engine::Topology topology = parsed("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n3\n");
  EXPECT_EQ(hops(topology, "n1", "n2"), 1U);
  EXPECT_EQ(hops(topology, "n1", "n3"), engine::kUnknownHops);
  EXPECT_THAT(names(topology, topology.choose(2)), ElementsAre("n1", "n2"));
  EXPECT_THAT(topology.choose(3).error().message,
              HasSubstr("topology.conf: no switch connects 3 nodes, the largest has 2"));
}

TEST(TopologyConf, BlocksAreLeaves) {
  const engine::Topology topology = parsed("BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2,4\n");
  EXPECT_EQ(topology.levels(), 2U);
  EXPECT_EQ(hops(topology, "n1", "n2"), 1U);
  EXPECT_EQ(hops(topology, "n2", "n3"), 2U);
  EXPECT_EQ(parsed("BlockName=b1 Nodes=n[1-2]\n").levels(), 1U);
}

TEST(TopologyConf, SameSwitchUpToALevelMeansSoManyHopsAtMost) {
  const engine::Topology topology = parsed(
      "SwitchName=top Switches=m,c\nSwitchName=m Switches=a,b\nSwitchName=a Nodes=a[1-2]\nSwitchName=b "
      "Nodes=b1\n"
      "SwitchName=c Nodes=c1\nSwitchName=alone Nodes=d1\n");
  for (std::uint32_t a = 0; a < topology.nodes(); ++a) {
    for (std::uint32_t b = 0; b < topology.nodes(); ++b) {
      for (std::uint32_t level = 1; level <= 4; ++level) {
        EXPECT_EQ(topology.switch_at(a, level) == topology.switch_at(b, level), topology.hops(a, b) <= level)
            << topology.node_name(a) << " " << topology.node_name(b) << " level " << level;
      }
    }
  }
}

// Slurm warns of these and goes on.
TEST(TopologyConf, WhatSlurmTakesWithAWarning) {
  const engine::Topology topology = parsed(
      "SwitchName=s1 Nodes=c[001-010]\nSwitchName=s2 Nodes=c[011-020]\nSwitchName=s3 Nodes=c[021-030],c011\n"
      "SwitchName=s4 Nodes=c[012-014,031]\n");
  EXPECT_THAT(
      topology.warnings(),
      ElementsAre("topology.conf:3: node 'c011' is on 's3' and in line 2 on 's2': the first one counts",
                  "topology.conf:4: nodes 'c[012-014]' are on 's4' and in line 2 on 's2': the first one counts"));
  EXPECT_EQ(topology.nodes(), 31U);
  EXPECT_EQ(hops(topology, "c011", "c012"), 1U);
  EXPECT_EQ(hops(topology, "c011", "c021"), engine::kUnknownHops);
  EXPECT_TRUE(topology.is_on_several_switches(*topology.find("c011")));
  EXPECT_FALSE(topology.is_on_several_switches(*topology.find("c031")));

  const engine::Topology twice = parsed("SwitchName=a Nodes=n9 Nodes=n[1-2]\nSwitchName=b Nodes=\"n3\" LinkSpeed=\n");
  EXPECT_THAT(twice.warnings(), ElementsAre("topology.conf:1: 'Nodes=' appears twice: the last one counts"));
  EXPECT_EQ(twice.nodes(), 3U);
}

// Two spines above the same leaves: as near as below one of them. Slurm's levels count all children.
TEST(TopologyConf, OfSeveralParentsTheFirstCounts) {
  const engine::Topology topology = parsed(
      "SwitchName=a Nodes=a[1-2]\nSwitchName=b Nodes=b1\nSwitchName=c Nodes=c1\n"
      "SwitchName=spine1 Switches=a,b\nSwitchName=spine2 Switches=a,b\nSwitchName=core Switches=spine2,c,spine1\n");
  EXPECT_EQ(topology.warnings().size(), 2U);
  EXPECT_THAT(topology.warnings()[0],
              HasSubstr("topology.conf:5: switch 'a' is below 'spine2' and in line 4 below 'spine1': the first one"));
  EXPECT_EQ(topology.levels(), 3U);
  EXPECT_EQ(hops(topology, "a1", "b1"), 2U);
  EXPECT_EQ(hops(topology, "a1", "c1"), 3U);
}

TEST(TopologyConf, ANodeThatIsNamedTwiceOnOneSwitchIsOneNode) {
  const engine::Topology topology =
      parsed("SwitchName=s1 Nodes=n[1-3],n2\nSwitchName=s2 Nodes=n4\nSwitchName=top Switches=s[1-2],s1\n");
  EXPECT_THAT(topology.warnings(), testing::IsEmpty());
  EXPECT_EQ(topology.nodes(), 4U);
  EXPECT_EQ(hops(topology, "n2", "n3"), 1U);
  EXPECT_EQ(hops(topology, "n2", "n4"), 2U);
}

TEST(TopologyConf, StrayCommasBlanksInQuotesAndValuesOverLines) {
  const engine::Topology topology = parsed(
      "SwitchName=s1 Nodes=n1,n2,\nSwitchName=s2 Nodes=n3,,\\\nn4\nSwitchName=s3 Nodes=\"n5, n6\"\n"
      "SwitchName=s4 Nodes=\"\"\nSwitchName=s5 Nodes=,\nSwitchName=top Switches=s1,s2,s[3-5],");
  EXPECT_EQ(topology.nodes(), 6U);
  EXPECT_EQ(hops(topology, "n3", "n4"), 1U);
  EXPECT_EQ(hops(topology, "n5", "n6"), 1U);
  EXPECT_EQ(hops(topology, "n1", "n6"), 2U);
}

// `scontrol show topology`, of 22.05 and of 25.05 with a leaf that has no node.
TEST(TopologyConf, WhatScontrolPrints) {
  const engine::Topology topology = parsed(
      "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-1]\nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=n2, n3,\n"
      "SwitchName=s2 Level=0 LinkSpeed=1 Nodes=\n"
      "SwitchName=s3 Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=s[0-2]\n"
      "SwitchName=s4 Level=1 LinkSpeed=1 Nodes= Switches=s2\n");
  EXPECT_EQ(topology.nodes(), 4U);
  EXPECT_EQ(hops(topology, "n0", "n1"), 1U);
  EXPECT_EQ(hops(topology, "n0", "n3"), 2U);
  const engine::Topology blocks = parsed(
      "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2\n"
      "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4\n");
  EXPECT_EQ(blocks.nodes(), 4U);
  EXPECT_EQ(hops(blocks, "n1", "n3"), 2U);
}

TEST(TopologyConf, ErrorsNameFileLineAndRemedy) {
  EXPECT_THAT(refused(""), HasSubstr("topology.conf: has no switch and no block"));
  EXPECT_THAT(refused("# nothing\n"), HasSubstr("has no switch"));
  EXPECT_THAT(refused("SwitchName=a\n"), HasSubstr("leaf switches need Nodes="));
  EXPECT_THAT(refused("\nNodeName=n1\n"), AllOf(HasSubstr("topology.conf:2: "), HasSubstr("use SwitchName=")));
  EXPECT_THAT(refused("RingName=r Nodes=n[1-4]\n"), HasSubstr("topology/ring"));
  EXPECT_THAT(refused("SwitchName\n"), HasSubstr(":1: 'SwitchName' is no Key=Value"));
  EXPECT_THAT(refused("=x\n"), HasSubstr(":1: '=x' is no Key=Value"));
  EXPECT_THAT(refused("SwitchName= \n"), HasSubstr("'SwitchName=' has no value"));
  EXPECT_THAT(refused("SwitchName=a Nodes=\"n1\n"), HasSubstr(":1: a '\"' has no second one"));
  EXPECT_THAT(refused("SwitchName=a Nodez=n1\n"), HasSubstr("unknown key 'Nodez': known are SwitchName"));
  EXPECT_THAT(refused("BlockName=a Switches=b\n"), HasSubstr("unknown key 'Switches': known are BlockName, Nodes"));
  EXPECT_THAT(refused("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n"), HasSubstr(":2: switches and blocks"));
  EXPECT_THAT(refused("SwitchName=a Nodes=n1 Switches=b\nSwitchName=b Nodes=n2\n"),
              HasSubstr("'a' has both child switches and nodes"));
  EXPECT_THAT(refused("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n"),
              HasSubstr(":2: switch 'a' is defined twice, first in line 1"));
  EXPECT_THAT(refused("SwitchName=a Nodes=n[2-1]\n"), HasSubstr(":1: the range '2-1' ends before it begins"));
  EXPECT_THAT(refused("SwitchName=t Switches=a\n"), HasSubstr("child 'a', which no line defines"));
  EXPECT_THAT(refused("Include racks.conf\n"), HasSubstr(":1: Include is for files"));
  EXPECT_THAT(refused("SwitchName=a Switches=b\nSwitchName=b Switches=a\n"), HasSubstr("'a' is below itself"));
  EXPECT_THAT(refused("SwitchName=a Switches=a\n"), HasSubstr("'a' is below itself"));
  EXPECT_THAT(refused("SwitchName=" + std::string(65, 's') + " Nodes=n1\n"), HasSubstr("1 to 64 bytes"));
  EXPECT_THAT(refused(std::string("SwitchName=a\0 Nodes=n1", 22)), HasSubstr("zero byte"));
}

TEST(TopologyConf, NothingIsLargerThanItMayBe) {
  EXPECT_THAT(refused("SwitchName=a Nodes=n[1-262145]\n"), HasSubstr("more than 262144 nodes"));
  EXPECT_THAT(refused("SwitchName=a Nodes=n[1-262144]\nSwitchName=b Nodes=m\n"),
              HasSubstr(":2: there are more than 262144 nodes"));
  EXPECT_THAT(refused("SwitchName=a Switches=s[0-999999999]\n"), HasSubstr("more than 65536 names"));
  EXPECT_THAT(refused(std::string((1 << 20) + 1, '#')), HasSubstr("over 1 MiB"));
  std::string deep = "SwitchName=s0 Nodes=n0\n";
  for (int i = 1; i < 21; ++i) {
    deep += "SwitchName=s" + std::to_string(i) + " Switches=s" + std::to_string(i - 1) + "\n";
  }
  EXPECT_THAT(refused(deep), HasSubstr(":21: more than 20 levels"));
}

TEST(TopologyYaml, TheManualsFile) {
  const std::string text =
      "---\n"
      "- topology: topo1\n"
      "  cluster_default: True\n"
      "  tree:\n"
      "    switches:\n"
      "    - switch: sw_root\n"
      "      children: s[1-2]\n"
      "    - switch: s1\n"
      "      nodes: node[01-02]\n"
      "    - switch: s2\n"
      "      nodes: node[03-04]\n"
      "- topology: topo2\n"
      "  cluster_default: False\n"
      "  block:\n"
      "    block_sizes:\n"
      "      - 4\n"
      "      - 16\n"
      "    blocks:\n"
      "    - block: b1\n"
      "      nodes: node[01-04]\n"
      "    - block: b2\n"
      "      nodes: node[05-08]\n"
      "- topology: topo3\n"
      "  cluster_default: False\n"
      "  flat: True\n";
  const engine::Topology tree = parsed(text, "topology.yaml");
  EXPECT_EQ(tree.nodes(), 4U);
  EXPECT_EQ(hops(tree, "node01", "node02"), 1U);
  EXPECT_EQ(hops(tree, "node01", "node03"), 2U);
  // The first default is taken, else the first.
  std::string other = text;
  other.replace(other.find("True"), 4, "False");
  EXPECT_EQ(parsed(other, "t.yml").nodes(), 4U);
  other.replace(other.find("False", other.find("topo2")), 5, "true");
  const engine::Topology blocks = parsed(other, "t.yml");
  EXPECT_EQ(blocks.nodes(), 8U);
  EXPECT_EQ(hops(blocks, "node01", "node03"), 1U);
  EXPECT_EQ(hops(blocks, "node01", "node05"), 2U);
}

// As Slurm's data.c and data_parser: these are true; unknown keys are left out; the last of a key counts.
TEST(TopologyYaml, WhatSlurmTakes) {
  for (const std::string word : {"true", "True", "yes", "on", "y", "t", "YES", "\"on\""}) {
    const engine::Topology second = parsed(
        "- topology: a\n  cluster_default: off\n  tree: {switches: [{switch: s, nodes: n1}]}\n"
        "- topology: b\n  cluster_default: " +
            word + "\n  tree: {switches: [{switch: s, nodes: m1}]}\n",
        "t.yaml");
    EXPECT_EQ(second.node_name(0), "m1") << word;
    EXPECT_EQ(second.file(), "t.yaml#b");
  }
  const engine::Topology loose = parsed(
      "topology: a\nflat: false\ntree:\n  switches:\n    switch: s\n    nodez: x\n    nodes: n1\n"
      "    nodes: n[1-2],\n    children: t\n",
      "t.yaml");
  EXPECT_EQ(loose.nodes(), 2U);
  EXPECT_EQ(loose.file(), "t.yaml");
  EXPECT_THAT(loose.warnings(),
              ElementsAre("t.yaml:6: unknown key 'nodez' is left out, as by Slurm",
                          "t.yaml:8: 'nodes' appears twice: the last one counts",
                          "t.yaml:5: switch 's' has both children and nodes: its children are left out, as by Slurm"));
  EXPECT_EQ(parsed("- topology: a\n  tree:\n    switches:\n    - switch: s\n      nodes:\n    - switch: t\n"
                   "      nodes: n1\n",
                   "t.yaml")
                .nodes(),
            1U);
}

TEST(TopologyYaml, ErrorsNameFileLineAndRemedy) {
  const auto yaml = [](const std::string& text) { return refused(text, "t.yaml"); };
  EXPECT_THAT(yaml(""), HasSubstr("t.yaml: must be a list of topologies"));
  EXPECT_THAT(yaml("[]"), HasSubstr("must be a list"));
  EXPECT_THAT(yaml("a: 1\n"), HasSubstr("t.yaml:1: must be a list"));
  EXPECT_THAT(yaml("- topology: [\n"), HasSubstr("t.yaml:"));
  EXPECT_THAT(yaml("- x\n"), HasSubstr("t.yaml:1: a topology must be a mapping"));
  EXPECT_THAT(yaml("\n- topology: a\n  flat: true\n"), AllOf(HasSubstr("t.yaml:2: "), HasSubstr("leave the topology")));
  EXPECT_THAT(yaml("- topology: a\n  tree:\n    switches: []\n  block:\n    blocks: []\n"), HasSubstr("one of"));
  EXPECT_THAT(yaml("- topology: a\n  tree: 3\n"), HasSubstr(":2: a mapping with 'switches'"));
  EXPECT_THAT(yaml("- topology: a\n  tree:\n    swiches: []\n"), HasSubstr("'switches' must be a list"));
  EXPECT_THAT(yaml("- topology: a\n  tree:\n    switches: 4\n"), HasSubstr(":3: 'switches' must be a list"));
  EXPECT_THAT(yaml("- topology: a\n  tree:\n    switches: [4]\n"), HasSubstr(":3: each of 'switches'"));
  EXPECT_THAT(yaml("- topology: a\n  tree:\n    switches: []\n"), HasSubstr("has no switch"));
  const std::string tree = "- topology: a\n  tree:\n    switches:\n    - ";
  EXPECT_THAT(yaml(tree + "nodes: n1\n"), HasSubstr("t.yaml:4: 'switch' is missing"));
  EXPECT_THAT(yaml("- topology: a\n  cluster_default: perhaps\n"), HasSubstr(":2: 'cluster_default' must be true"));
  EXPECT_THAT(yaml(tree + "switch: s\n      nodes: [n1]\n"), HasSubstr(":5: 'nodes' must be a name or a hostlist"));
  EXPECT_THAT(yaml(tree + "switch: s\n      nodes: n[1\n"), HasSubstr(":4: 'n[1' has a '['"));
  EXPECT_THAT(yaml("- topology: a\n  ring:\n    rings: []\n"), HasSubstr("t.yaml:1: topology 'a' has none of"));
  EXPECT_THAT(yaml(std::string(5000, '[')), HasSubstr("t.yaml"));
  EXPECT_THAT(yaml(std::string(5000, '-')), HasSubstr("t.yaml"));
  EXPECT_THAT(yaml("&a [*a]"), HasSubstr("t.yaml"));
}

TEST(Topology, TheNodesOfAJobAsSlurmWouldTakeThem) {
  // Leaves with 2, 4, 3 and 5 nodes; a and b below left, c and d below right.
  const engine::Topology topology = parsed(
      "SwitchName=a Nodes=a[1-2]\nSwitchName=b Nodes=b[1-4]\nSwitchName=c Nodes=c[1-3]\nSwitchName=d "
      "Nodes=d[1-5]\n"
      "SwitchName=left Switches=a,b\nSwitchName=right Switches=c,d\nSwitchName=top Switches=left,right\n");
  const auto chosen = [&](std::uint32_t count) { return names(topology, topology.choose(count)); };
  // One leaf has enough: the one with the fewest nodes.
  EXPECT_THAT(chosen(1), ElementsAre("a1"));
  EXPECT_THAT(chosen(3), ElementsAre("c1", "c2", "c3"));
  EXPECT_THAT(chosen(5), ElementsAre("d1", "d2", "d3", "d4", "d5"));
  // left (6 nodes) rather than right (8): b is the largest leaf, then a has the two that are missing.
  EXPECT_THAT(chosen(6), ElementsAre("a1", "a2", "b1", "b2", "b3", "b4"));
  // right: d has 5, 2 of c's.
  EXPECT_THAT(chosen(7), ElementsAre("c1", "c2", "d1", "d2", "d3", "d4", "d5"));
  // top: d (5), b (4), then one is missing: a is the tightest fit.
  EXPECT_THAT(chosen(10), ElementsAre("a1", "b1", "b2", "b3", "b4", "d1", "d2", "d3", "d4", "d5"));
  EXPECT_EQ(chosen(14).size(), 14U);
  EXPECT_THAT(topology.choose(15).error().message, HasSubstr("ask for fewer nodes"));
}

TEST(Topology, NodesByName) {
  const engine::Topology topology = parsed(kManual);
  EXPECT_THAT(*topology.find_all("dev[7,0-1]"), ElementsAre(7U, 0U, 1U));
  EXPECT_EQ(topology.find_all("dev[17-18]").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(topology.find_all("dev[17-18]").error().message,
              HasSubstr("node 'dev18' is not in topology.conf: there are dev0, dev1, dev2, dev3, dev4, dev5, dev6, "
                        "dev7, ..."));
  EXPECT_THAT(topology.find_all("dev1,dev1").error().message, HasSubstr("'dev1' is named twice"));
  EXPECT_THAT(topology.find_all("dev[0-18]").error().message, HasSubstr("more nodes than topology.conf has: 18"));
  EXPECT_THAT(topology.find_all("dev[1").error().message, HasSubstr("without its ']'"));
}

// Found by fuzz_topology: an error had the file's control characters, and as many of them as there were.
TEST(Topology, ErrorsAreOneShortLine) {
  const std::string long_key(5000, 'k');
  const std::pair<std::string, std::string> broken[] = {{"SwitchName=s \x03Nodes=\n", "topology.conf"},
                                                        {"SwitchName=s " + long_key + "=\n", "topology.conf"},
                                                        {"\"\\\x04\"", "topology.yaml"}};
  for (const auto& [text, file] : broken) {
    const Result<engine::Topology> topology = engine::Topology::parse(text, file);
    ASSERT_FALSE(topology.ok()) << file;
    const std::string& message = topology.error().message;
    EXPECT_LT(message.size(), 200u) << message;
    for (const char c : message) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << message;
  }
}

}  // namespace
}  // namespace lbf::topology_test