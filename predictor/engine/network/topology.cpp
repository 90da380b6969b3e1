// Slurm's switches, see topology.h.
#include "predictor/engine/network/topology.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/hostlist.h"
#include "base/quoted.h"
#include "predictor/engine/network/topology_description.h"

namespace lbf::engine {
namespace {

constexpr std::size_t kMaxListed = 8;

}  // namespace

Result<Topology> Topology::parse(std::string_view text, const std::string& file_name) {
  const Result<std::vector<TopologyDescription>> topologies = read_topologies(text, file_name, "");
  if (!topologies) return topologies.error();
  return build(cluster_default(*topologies));
}

std::optional<std::uint32_t> Topology::find(const std::string& name) const {
  const auto found = node_of_name_.find(name);
  if (found == node_of_name_.end()) return std::nullopt;
  return found->second;
}

Result<std::vector<std::uint32_t>> Topology::find_all(std::string_view hostlist) const {
  Result<std::vector<std::string>> names = expand_hostlist(hostlist, names_.size());
  if (!names) {
    if (names.error().code != ErrorCode::kLimit) return names.error();
    return Error{ErrorCode::kInvalidInput,
                 lbf::quoted(hostlist) + " names more nodes than " + file_ + " has: " + std::to_string(names_.size())};
  }
  std::vector<std::uint32_t> found;
  std::vector<bool> taken(names_.size(), false);
  for (const std::string& name : *names) {
    const std::optional<std::uint32_t> node = find(name);
    if (!node) {
      std::string known;
      for (std::size_t i = 0; i < std::min(kMaxListed, names_.size()); ++i) {
        known += (i > 0 ? ", " : "") + names_[i];
      }
      return Error{ErrorCode::kNotFound, "node " + lbf::quoted(name) + " is not in " + file_ + ": there are " + known +
                                             (names_.size() > kMaxListed ? ", ..." : "")};
    }
    if (taken[*node]) return invalid_input("node " + lbf::quoted(name) + " is named twice in " + lbf::quoted(hostlist));
    taken[*node] = true;
    found.push_back(*node);
  }
  return found;
}

std::uint32_t Topology::hops(std::uint32_t node_a, std::uint32_t node_b) const {
  if (node_a == node_b) return 0;
  std::uint32_t a = leaf_of_node_[node_a];
  std::uint32_t b = leaf_of_node_[node_b];
  while (a != b) {
    // The lower one climbs: the higher one may be the switch that has both.
    std::uint32_t& lower = switches_[a].level <= switches_[b].level ? a : b;
    lower = switches_[lower].parent;
    if (lower == kNone) return kUnknownHops;
  }
  return switches_[a].level;
}

std::uint32_t Topology::switch_at(std::uint32_t node, std::uint32_t level) const {
  std::uint32_t at = leaf_of_node_[node];
  for (;;) {
    const std::uint32_t parent = switches_[at].parent;
    if (parent == kNone || switches_[parent].level > level) return at;
    at = parent;
  }
}

Result<std::vector<std::uint32_t>> Topology::choose(std::uint32_t count) const {
  std::uint32_t best = kNone;
  std::uint32_t most = 0;
  for (std::uint32_t index = 0; index < switches_.size(); ++index) {
    const Switch& here = switches_[index];
    most = std::max(most, here.nodes);
    if (here.nodes < count) continue;
    const bool better = best == kNone || here.level < switches_[best].level ||
                        (here.level == switches_[best].level && here.nodes < switches_[best].nodes);
    if (better) best = index;
  }
  if (best == kNone) {
    return invalid_input(file_ + ": no switch connects " + std::to_string(count) + " nodes, the largest has " +
                         std::to_string(most) + ": ask for fewer nodes");
  }
  std::map<std::uint32_t, std::vector<std::uint32_t>> nodes_of_leaf;
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    if (switch_at(node, switches_[best].level) == best) nodes_of_leaf[leaf_of_node_[node]].push_back(node);
  }
  std::vector<std::vector<std::uint32_t>> leaves;  // the largest first, then as in the file
  leaves.reserve(nodes_of_leaf.size());
  for (auto& [leaf, nodes] : nodes_of_leaf) leaves.push_back(std::move(nodes));
  std::stable_sort(leaves.begin(), leaves.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<std::uint32_t> chosen;
  for (auto leaf = leaves.begin(); chosen.size() < count; ++leaf) {
    const std::size_t missing = count - chosen.size();
    auto tightest = leaf;
    for (auto other = leaf; other != leaves.end() && other->size() >= missing; ++other) {
      if (other->size() < tightest->size()) tightest = other;
    }
    const auto taken = static_cast<std::ptrdiff_t>(std::min(missing, tightest->size()));
    chosen.insert(chosen.end(), tightest->begin(), tightest->begin() + taken);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace lbf::engine
