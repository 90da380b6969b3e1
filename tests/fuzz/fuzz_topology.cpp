// Fuzzes Slurm's topology files and hostlists: any input gives a tree or an error, and what holds for trees
// holds.
#include <algorithm>
#include <set>

#include "base/hostlist.h"
#include "predictor/engine/network/topology.h"
#include "tests/fuzz/fuzz_target.h"

namespace engine = lbf::engine;

namespace {

using engine::Topology;

constexpr std::size_t kMaxNames = 4096;
constexpr std::uint32_t kLookedAt = 24;  // nodes of which all pairs are looked at

std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ",") + name;
  return list;
}

void check_error(const lbf::Error& error) {
  fuzz_require(!error.message.empty(), "an error says something");
  const bool one_line = std::none_of(error.message.begin(), error.message.end(),
                                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  fuzz_require(one_line, "an error is one line");
  fuzz_require(error.message.size() < 2000, "an error is short");
}

void check_hostlist(const std::string& text) {
  const auto names = lbf::expand_hostlist(text, kMaxNames);
  if (!names) return check_error(names.error());
  fuzz_require(!names->empty() && names->size() <= kMaxNames, "as many names as are allowed");
  const auto again = lbf::expand_hostlist(joined(*names), kMaxNames);
  fuzz_require(again.ok() && *again == *names, "names are a hostlist of themselves");
}

void check_distances(const engine::Topology& topology) {
  const std::uint32_t looked_at = std::min(topology.nodes(), kLookedAt);
  for (std::uint32_t a = 0; a < looked_at; ++a) {
    for (std::uint32_t b = 0; b < looked_at; ++b) {
      const std::uint32_t hops = topology.hops(a, b);
      fuzz_require(hops == topology.hops(b, a), "as far there as back");
      fuzz_require((hops == 0) == (a == b), "only a node itself is no hop away");
      for (std::uint32_t level = 1; level <= topology.levels(); ++level) {
        const bool together = topology.switch_at(a, level) == topology.switch_at(b, level);
        fuzz_require(together == (hops <= level), "a switch of that level has both, if they are so near");
      }
    }
  }
}

void check_choice(const engine::Topology& topology, std::uint32_t count) {
  const auto chosen = topology.choose(count);
  if (!chosen) return check_error(chosen.error());
  fuzz_require(chosen->size() == count, "as many nodes as were asked for");
  fuzz_require(std::is_sorted(chosen->begin(), chosen->end()), "ascending");
  fuzz_require(std::set<std::uint32_t>(chosen->begin(), chosen->end()).size() == count, "each once");
  fuzz_require(count == 0 || chosen->back() < topology.nodes(), "of those that are there");
}

void check_topology(const std::string& text, const std::string& file) {
  const auto topology = engine::Topology::parse(text, file);
  if (!topology) {
    check_error(topology.error());
    return fuzz_require(topology.error().message.starts_with(file), "an error names the file");
  }
  for (const std::string& warning : topology->warnings()) check_error({lbf::ErrorCode::kInvalidInput, warning});
  fuzz_require(topology->nodes() <= engine::Topology::kMaxNodes, "no more nodes than are allowed");
  fuzz_require(topology->levels() <= engine::Topology::kMaxLevels, "no more levels than Slurm has");
  std::vector<std::string> names;
  for (std::uint32_t node = 0; node < topology->nodes(); ++node) {
    names.push_back(topology->node_name(node));
    fuzz_require(topology->find(names.back()) == node, "a node is found by its name");
  }
  if (names.empty()) return;
  const auto all = topology->find_all(joined(names));
  fuzz_require(all.ok() && all->size() == names.size(), "all nodes are found by their names");
  check_distances(*topology);
  for (const std::uint32_t count : {0U, 1U, 2U, topology->nodes() / 2, topology->nodes(), topology->nodes() + 1})
    check_choice(*topology, count);
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {
      "n[1-4,7],m08,r[0-1]n[1-2]",
      "SwitchName=s1 Nodes=n[1-4]\nSwitchName=s2 Nodes=n[05-08],x LinkSpeed=1\n# both\n"
      "SwitchName=top Switches=s[1-2]\n",
      "switchname=a nodes=a1\nSwitchName=b Nodes=b[1-2]c[1-2]\nSwitchName=c Switches=a,\\\nb\n"
      "SwitchName=d Nodes=d1\nSwitchName=e Switches=c,d\n",
      "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n1, n2,\nSwitchName=s1 Level=0 Nodes=n3 Nodes=n2\n"
      "SwitchName=s2 Level=1 Nodes=n[1-3] Switches=s0,s1\nSwitchName=s3 Level=1 Nodes= Switches=s[0-1]\n",
      "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\n",
      "- topology: t\n  cluster_default: true\n  tree:\n    switches:\n    - switch: s1\n      nodes: "
      "n[1-2]\n"
      "    - switch: s2\n      nodes: n[3-4]\n    - switch: top\n      children: s[1-2]\n",
      "---\n- topology: b\n  block:\n    block_sizes:\n    - 2\n    blocks:\n    - block: b1\n      "
      "nodes: n[1-2]\n"
      "    - block: b2\n      nodes: n[3-4]\n- topology: f\n  flat: true\n",
      "topology: t\ncluster_default: on\nflat: no\ntree: {switches: {switch: s, nodez: x, nodes: n1, nodes: \"n2,\", "
      "children: s}}\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_hostlist(text);
  check_topology(text, "topology.conf");
  check_topology(text, "topology.yaml");
  return 0;
}
