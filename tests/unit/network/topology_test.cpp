// Slurm's topology.conf and topology.yaml.
#include "predictor/engine/network/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_directory.h"

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
  EXPECT_THAT(refused("SwitchName=a Nodes=n1 Nodes=n2\n"), HasSubstr("'Nodes=' appears twice"));
  EXPECT_THAT(refused("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n"), HasSubstr(":2: switches and blocks"));
  EXPECT_THAT(refused("SwitchName=a Nodes=n1 Switches=b\nSwitchName=b Nodes=n2\n"),
              HasSubstr("'a' has both child switches and nodes"));
  EXPECT_THAT(refused("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n"),
              HasSubstr(":2: switch 'a' is defined twice, first in line 1"));
  EXPECT_THAT(refused("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n[1-2]\n"),
              HasSubstr(":2: node 'n1' is on 'b' and in line 1 on 'a'"));
  EXPECT_THAT(refused("SwitchName=a Nodes=n[1,1]\n"), HasSubstr("node 'n1'"));
  EXPECT_THAT(refused("SwitchName=a Nodes=n[2-1]\n"), HasSubstr(":1: the range '2-1' ends before it begins"));
  EXPECT_THAT(refused("SwitchName=t Switches=a\n"), HasSubstr("child 'a', which no line defines"));
  EXPECT_THAT(refused("SwitchName=a Nodes=n1\nSwitchName=s Switches=a\nSwitchName=t Switches=a\n"),
              HasSubstr(":3: switch 'a' is below 't' and in line 2 below 's'"));
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
  EXPECT_THAT(yaml(tree + "switch: s\n      nodez: n1\n"), HasSubstr(":5: unknown key 'nodez'"));
  EXPECT_THAT(yaml(tree + "switch: s\n      nodes: [n1]\n"), HasSubstr(":5: 'nodes' must be a name or a hostlist"));
  EXPECT_THAT(yaml(tree + "switch: s\n      nodes: n1\n      nodes: n2\n"), HasSubstr("'nodes' appears twice"));
  EXPECT_THAT(yaml(tree + "switch: s\n      nodes: n[1\n"), HasSubstr(":4: 'n[1' has a '['"));
  EXPECT_THAT(yaml("- topology: a\n  tree: {}\n  tree: {}\n"), HasSubstr(":3: 'tree' appears twice"));
  EXPECT_THAT(yaml("- topology: a\n  block:\n    blocks:\n    - block: b\n      children: c\n"),
              HasSubstr("unknown key 'children'"));
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

TEST(Topology, LoadSaysWhatIsWrongWithTheFile) {
  const Result<engine::Topology> none = engine::Topology::load("/nonexistent/topology.conf");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("/nonexistent/topology.conf"));
  EXPECT_FALSE(engine::Topology::load("/").ok());
  const test::TemporaryDirectory directory;
  std::ofstream(directory.path() + "/topology.conf") << kManual;
  EXPECT_EQ(engine::Topology::load(directory.path() + "/topology.conf")->nodes(), 18U);
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