// TopologyBuilder: from what a file says to a tree whose levels and counts are known, see topology.h.
#include <algorithm>
#include <map>
#include <utility>

#include "base/hostlist.h"
#include "base/quoted.h"
#include "predictor/engine/network/topology.h"
#include "predictor/engine/network/topology_description.h"

namespace lbf::engine {
namespace {

constexpr std::size_t kMaxSwitchNameBytes = 64;  // topology.conf(5)

Error error_at(const TopologyEntry& entry, const std::string& what, ErrorCode code = ErrorCode::kInvalidInput) {
  return error_in_file(entry.file, entry.line, what, code);
}

// Where `entry` is, for a message about `other`.
std::string place(const TopologyEntry& entry, const TopologyEntry& other) {
  return entry.file == other.file ? "line " + std::to_string(entry.line)
                                  : entry.file + ":" + std::to_string(entry.line);
}

}  // namespace

class TopologyBuilder {
 public:
  explicit TopologyBuilder(const TopologyDescription& description)
      : description_(description), entries_(description_.entries) {}

  Result<Topology> build() {
    topology_.file_ = description_.label;
    if (Result<void> usable = check_kind(); !usable) return usable.error();
    if (entries_.empty()) {
      return error("has no switch and no block: is it Slurm's topology.conf or topology.yaml?");
    }
    for (const auto& step : {&TopologyBuilder::add_switches, &TopologyBuilder::add_nodes, &TopologyBuilder::connect,
                             &TopologyBuilder::find_levels}) {
      if (Result<void> done = (this->*step)(); !done) return done.error();
    }
    if (topology_.names_.empty()) return error("has switches, but no nodes: leaf switches need Nodes=...");
    topology_.warnings_ = std::move(description_.warnings);
    return std::move(topology_);
  }

 private:
  using Kind = TopologyDescription::Kind;

  Error error(const std::string& what) const { return error_in_file(description_.file, 0, what); }
  const char* kind() const { return description_.kind == Kind::kBlock ? "block" : "switch"; }

  Result<void> check_kind() const {
    if (description_.kind == Kind::kFlat) {
      return error_in_file(description_.file, description_.line,
                           "topology " + lbf::quoted(description_.name) +
                               " is flat, it has no switches: leave the topology away, or choose another one");
    }
    if (description_.kind == Kind::kOther) {
      return error_in_file(description_.file, description_.line,
                           "topology " + lbf::quoted(description_.name) +
                               " has none of 'tree' and 'block': others do not say which nodes share a switch");
    }
    return {};
  }

  Result<void> add_switches() {
    for (std::uint32_t index = 0; index < entries_.size(); ++index) {
      const TopologyEntry& entry = entries_[index];
      if (entry.name.empty() || entry.name.size() > kMaxSwitchNameBytes) {
        return error_at(entry, std::string("the name of a ") + kind() + " must have 1 to " +
                                   std::to_string(kMaxSwitchNameBytes) + " bytes");
      }
      const auto [other, is_new] = switch_of_name_.emplace(entry.name, index);
      if (!is_new) {
        return error_at(entry, std::string(kind()) + " " + lbf::quoted(entry.name) + " is defined twice, first in " +
                                   place(entries_[other->second], entry));
      }
    }
    topology_.switches_.resize(entries_.size());
    return {};
  }

  Result<void> add_nodes() {
    for (std::uint32_t index = 0; index < entries_.size(); ++index) {
      const TopologyEntry& entry = entries_[index];
      if (entry.nodes.empty()) continue;
      Result<std::vector<std::string>> names = expand_hostlist(entry.nodes, Topology::kMaxNodes - named_);
      if (!names) {
        if (names.error().code != ErrorCode::kLimit) return error_at(entry, names.error().message);
        return error_at(entry,
                        "there are more than " + std::to_string(Topology::kMaxNodes) + " nodes: is a range too long?",
                        ErrorCode::kLimit);
      }
      named_ += names->size();
      std::map<std::uint32_t, std::vector<std::string>> elsewhere;  // by the switch that they are on as well
      for (std::string& name : *names) {
        const auto [other, is_new] = topology_.node_of_name_.emplace(name, topology_.nodes());
        if (is_new) {
          topology_.names_.push_back(std::move(name));
          topology_.leaf_of_node_.push_back(index);
        } else if (const std::uint32_t first = topology_.leaf_of_node_[other->second]; first != index) {
          topology_.on_several_switches_.insert(other->second);
          elsewhere[first].push_back(std::move(name));
        }
      }
      for (const auto& [first, nodes] : elsewhere) warn_several_switches(nodes, entries_[first], entry);
    }
    return {};
  }

  void warn_several_switches(const std::vector<std::string>& nodes, const TopologyEntry& first,
                             const TopologyEntry& entry) {
    description_.warn(entry.file, entry.line,
                      (nodes.size() == 1 ? "node " : "nodes ") + lbf::quoted(hostlist(nodes)) +
                          (nodes.size() == 1 ? " is on " : " are on ") + lbf::quoted(entry.name) + " and in " +
                          place(first, entry) + " on " + lbf::quoted(first.name) + ": the first one counts");
  }

  Result<void> connect() {
    std::size_t children = 0;
    for (std::uint32_t index = 0; index < entries_.size(); ++index) {
      const TopologyEntry& entry = entries_[index];
      if (entry.switches.empty()) continue;
      Result<std::vector<std::string>> names = expand_hostlist(entry.switches, Topology::kMaxSwitches - children);
      if (!names) return error_at(entry, names.error().message, names.error().code);
      children += names->size();
      for (const std::string& name : *names) {
        const auto child = switch_of_name_.find(name);
        if (child == switch_of_name_.end()) {
          return error_at(entry, "switch " + lbf::quoted(entry.name) + " has the child " + lbf::quoted(name) +
                                     ", which no line defines: add SwitchName=" + name + ", or remove it here");
        }
        parents_.push_back({child->second, index});
        std::uint32_t& parent = topology_.switches_[child->second].parent;
        if (parent == Topology::kNone) {
          parent = index;
        } else if (parent != index) {
          description_.warn(entry.file, entry.line,
                            "switch " + lbf::quoted(name) + " is below " + lbf::quoted(entry.name) + " and in " +
                                place(entries_[parent], entry) + " below " + lbf::quoted(entries_[parent].name) +
                                ": the first one counts");
        }
      }
    }
    if (description_.kind == Kind::kBlock && topology_.switches_.size() > 1) {
      const auto root = static_cast<std::uint32_t>(topology_.switches_.size());
      for (std::uint32_t block = 0; block < root; ++block) {
        topology_.switches_[block].parent = root;
        parents_.push_back({block, root});
      }
      topology_.switches_.emplace_back();
    }
    return {};
  }

  // Each switch after all of its children; what is never reached hangs in a cycle. As in Slurm a switch is above all
  // of its children, also those that count as below another one.
  Result<void> find_levels() {
    auto& switches = topology_.switches_;
    for (const std::uint32_t leaf : topology_.leaf_of_node_) ++switches[leaf].nodes;
    std::vector<std::vector<std::uint32_t>> parents(switches.size());
    std::vector<std::uint32_t> children_left(switches.size(), 0);
    for (const auto& [child, parent] : parents_) {
      parents[child].push_back(parent);
      ++children_left[parent];
    }
    std::vector<std::uint32_t> ready;
    for (std::uint32_t index = 0; index < switches.size(); ++index) {
      if (children_left[index] == 0) ready.push_back(index);
    }
    for (std::size_t at = 0; at < ready.size(); ++at) {
      Topology::Switch& here = switches[ready[at]];
      here.level = std::max(here.level, 1U);
      topology_.levels_ = std::max(topology_.levels_, here.level);
      if (here.level > Topology::kMaxLevels) {
        return error_at(
            entries_[ready[at]],
            "more than " + std::to_string(Topology::kMaxLevels) + " levels of switches: Slurm allows no more",
            ErrorCode::kLimit);
      }
      if (here.parent != Topology::kNone) switches[here.parent].nodes += here.nodes;
      for (const std::uint32_t parent : parents[ready[at]]) {
        switches[parent].level = std::max(switches[parent].level, here.level + 1);
        if (--children_left[parent] == 0) ready.push_back(parent);
      }
    }
    if (ready.size() < switches.size()) {
      const auto in_cycle =
          std::find_if(children_left.begin(), children_left.end(), [](std::uint32_t children) { return children > 0; });
      const TopologyEntry& entry = entries_[static_cast<std::size_t>(in_cycle - children_left.begin())];
      return error_at(entry, "switch " + lbf::quoted(entry.name) + " is below itself: switches must form a tree");
    }
    return {};
  }

  struct Parent {
    std::uint32_t child;
    std::uint32_t parent;
  };

  TopologyDescription description_;
  const std::vector<TopologyEntry>& entries_;
  Topology topology_;
  std::unordered_map<std::string, std::uint32_t> switch_of_name_;
  std::size_t named_ = 0;        // nodes, also those that are named again
  std::vector<Parent> parents_;  // all, also those that do not count
};

Result<Topology> Topology::build(const TopologyDescription& description) {
  return TopologyBuilder(description).build();
}

}  // namespace lbf::engine
