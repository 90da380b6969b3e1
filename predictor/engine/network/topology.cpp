// Slurm's topology.conf and topology.yaml, see topology.h.
#include "predictor/engine/network/topology.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <utility>

#include "base/hostlist.h"
#include "base/quoted.h"

namespace lbf::engine {
namespace {

constexpr std::size_t kMaxSwitchNameBytes = 64;  // topology.conf(5)
constexpr std::size_t kMaxListed = 8;

bool same_key(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

// A line of topology.conf, an entry of topology.yaml: one switch or block.
struct Entry {
  std::string name;
  std::size_t line = 0;
  std::string nodes;     // hostlists; empty: not given
  std::string switches;  // children
};

struct Description {
  std::string file;
  bool blocks = false;
  std::vector<Entry> entries;

  Error error(std::size_t line, const std::string& what, ErrorCode code = ErrorCode::kInvalidInput) const {
    return {code, file + (line > 0 ? ":" + std::to_string(line) : "") + ": " + what};
  }
};

}  // namespace

// From entries to a tree whose levels and counts are known.
class TopologyBuilder {
 public:
  explicit TopologyBuilder(const Description& description) : description_(description) {}

  Result<Topology> build() {
    topology_.file_ = description_.file;
    if (description_.entries.empty()) {
      return description_.error(0, "has no switch and no block: is it Slurm's topology.conf or topology.yaml?");
    }
    for (const auto& step : {&TopologyBuilder::add_switches, &TopologyBuilder::add_nodes, &TopologyBuilder::connect,
                             &TopologyBuilder::find_levels}) {
      if (Result<void> done = (this->*step)(); !done) return done.error();
    }
    if (topology_.names_.empty()) {
      return description_.error(0, "has switches, but no nodes: leaf switches need Nodes=...");
    }
    return std::move(topology_);
  }

 private:
  const char* kind() const { return description_.blocks ? "block" : "switch"; }

  Result<void> add_switches() {
    const auto& entries = description_.entries;
    for (std::uint32_t index = 0; index < entries.size(); ++index) {
      const Entry& entry = entries[index];
      if (entry.name.empty() || entry.name.size() > kMaxSwitchNameBytes) {
        return description_.error(entry.line, std::string("the name of a ") + kind() + " must have 1 to " +
                                                  std::to_string(kMaxSwitchNameBytes) + " bytes");
      }
      if (!entry.nodes.empty() && !entry.switches.empty()) {
        return description_.error(entry.line, "switch " + quoted(entry.name) +
                                                  " has both child switches and nodes: Slurm allows one of them");
      }
      const auto [other, is_new] = switch_of_name_.emplace(entry.name, index);
      if (!is_new) {
        return description_.error(entry.line, std::string(kind()) + " " + quoted(entry.name) +
                                                  " is defined twice, first in line " +
                                                  std::to_string(entries[other->second].line));
      }
    }
    topology_.switches_.resize(entries.size());
    return {};
  }

  Result<void> add_nodes() {
    for (std::uint32_t index = 0; index < description_.entries.size(); ++index) {
      const Entry& entry = description_.entries[index];
      if (entry.nodes.empty()) continue;
      const std::size_t room = Topology::kMaxNodes - topology_.names_.size();
      Result<std::vector<std::string>> names = expand_hostlist(entry.nodes, room);
      if (!names) {
        if (names.error().code != ErrorCode::kLimit) return description_.error(entry.line, names.error().message);
        return description_.error(
            entry.line, "there are more than " + std::to_string(Topology::kMaxNodes) + " nodes: is a range too long?",
            ErrorCode::kLimit);
      }
      for (std::string& name : *names) {
        const auto [other, is_new] = topology_.node_of_name_.emplace(name, topology_.nodes());
        if (!is_new) {
          const Entry& first = description_.entries[topology_.leaf_of_node_[other->second]];
          return description_.error(entry.line, "node " + quoted(name) + " is on " + quoted(entry.name) +
                                                    " and in line " + std::to_string(first.line) + " on " +
                                                    quoted(first.name) + ": lbf reads trees, leave it on one of them");
        }
        topology_.names_.push_back(std::move(name));
        topology_.leaf_of_node_.push_back(index);
      }
    }
    return {};
  }

  Result<void> connect() {
    std::size_t children = 0;
    for (std::uint32_t index = 0; index < description_.entries.size(); ++index) {
      const Entry& entry = description_.entries[index];
      if (entry.switches.empty()) continue;
      Result<std::vector<std::string>> names = expand_hostlist(entry.switches, Topology::kMaxSwitches - children);
      if (!names) return description_.error(entry.line, names.error().message, names.error().code);
      children += names->size();
      for (const std::string& name : *names) {
        const auto child = switch_of_name_.find(name);
        if (child == switch_of_name_.end()) {
          return description_.error(entry.line, "switch " + quoted(entry.name) + " has the child " + quoted(name) +
                                                    ", which no line defines: add SwitchName=" + name +
                                                    ", or remove it here");
        }
        std::uint32_t& parent = topology_.switches_[child->second].parent;
        if (parent != Topology::kNone) {
          const Entry& first = description_.entries[parent];
          return description_.error(entry.line, "switch " + quoted(name) + " is below " + quoted(entry.name) +
                                                    " and in line " + std::to_string(first.line) + " below " +
                                                    quoted(first.name) +
                                                    ": lbf reads trees, comment one of the parallel switches out");
        }
        parent = index;
      }
    }
    if (description_.blocks && topology_.switches_.size() > 1) {
      const auto root = static_cast<std::uint32_t>(topology_.switches_.size());
      for (auto& block : topology_.switches_) block.parent = root;
      topology_.switches_.emplace_back();
    }
    return {};
  }

  // Each switch after all of its children; what is never reached hangs in a cycle.
  Result<void> find_levels() {
    auto& switches = topology_.switches_;
    for (const std::uint32_t leaf : topology_.leaf_of_node_) ++switches[leaf].nodes;
    std::vector<std::uint32_t> children_left(switches.size(), 0);
    for (const auto& child : switches) {
      if (child.parent != Topology::kNone) ++children_left[child.parent];
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
        return description_.error(
            description_.entries[ready[at]].line,
            "more than " + std::to_string(Topology::kMaxLevels) + " levels of switches: Slurm allows no more",
            ErrorCode::kLimit);
      }
      if (here.parent == Topology::kNone) continue;
      Topology::Switch& parent = switches[here.parent];
      parent.level = std::max(parent.level, here.level + 1);
      parent.nodes += here.nodes;
      if (--children_left[here.parent] == 0) ready.push_back(here.parent);
    }
    if (ready.size() < switches.size()) {
      const auto in_cycle =
          std::find_if(children_left.begin(), children_left.end(), [](std::uint32_t children) { return children > 0; });
      const Entry& entry = description_.entries[static_cast<std::size_t>(in_cycle - children_left.begin())];
      return description_.error(entry.line,
                                "switch " + quoted(entry.name) + " is below itself: switches must form a tree");
    }
    return {};
  }

  const Description& description_;
  Topology topology_;
  std::unordered_map<std::string, std::uint32_t> switch_of_name_;
};

namespace {

// --- topology.conf

// One `Key=Value` of a line; Slurm takes blanks around '=' and values in double quotes.
struct Pair {
  std::string_view key;
  std::string_view value;
};

constexpr std::string_view kBlanks = " \t\r";

Result<std::vector<Pair>> split_pairs(const Description& description, std::size_t line, std::string_view text) {
  std::vector<Pair> pairs;
  const auto skip_blanks = [&] { text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size())); };
  for (skip_blanks(); !text.empty(); skip_blanks()) {
    Pair pair;
    pair.key = text.substr(0, std::min(text.find_first_of(" \t\r="), text.size()));
    text.remove_prefix(pair.key.size());
    skip_blanks();
    if (pair.key.empty() || !text.starts_with('=')) {
      return description.error(line, quoted(pair.key.empty() ? text : pair.key) + " is no Key=Value");
    }
    text.remove_prefix(1);
    skip_blanks();
    if (text.starts_with('"')) {
      const std::size_t end = text.find('"', 1);
      if (end == std::string_view::npos) return description.error(line, "a '\"' has no second one");
      pair.value = text.substr(1, end - 1);
      text.remove_prefix(end + 1);
    } else {
      pair.value = text.substr(0, std::min(text.find_first_of(kBlanks), text.size()));
      text.remove_prefix(pair.value.size());
    }
    if (pair.value.empty()) return description.error(line, lbf::quoted(std::string(pair.key) + "=") + " has no value");
    pairs.push_back(pair);
  }
  return pairs;
}

Result<void> take_line(Description& description, std::size_t line, std::string_view text, bool& any_switch) {
  Result<std::vector<Pair>> pairs = split_pairs(description, line, text);
  if (!pairs) return pairs.error();
  if (pairs->empty()) return {};
  const std::string_view first = pairs->front().key;
  if (same_key(first, "BlockSizes")) return {};  // planning
  const bool block = same_key(first, "BlockName");
  if (!block && !same_key(first, "SwitchName")) {
    const bool ring = same_key(first, "RingName");
    return description.error(
        line, ring ? "rings (topology/ring) have no switches: hops between nodes cannot be read from this file"
                   : quoted(first) + " begins no line: use SwitchName=, BlockName= or BlockSizes=");
  }
  (block ? description.blocks : any_switch) = true;
  if (description.blocks && any_switch) {
    return description.error(line, "switches and blocks in one file: Slurm uses one topology plugin at a time");
  }
  Entry entry;
  entry.name = pairs->front().value;
  entry.line = line;
  for (auto pair = pairs->begin() + 1; pair != pairs->end(); ++pair) {
    std::string* to = nullptr;
    if (same_key(pair->key, "Nodes")) to = &entry.nodes;
    if (!block && same_key(pair->key, "Switches")) to = &entry.switches;
    if (to == nullptr && !block && same_key(pair->key, "LinkSpeed")) continue;  // Slurm does not use it either
    if (to == nullptr) {
      return description.error(line, "unknown key " + quoted(pair->key) + ": known are " +
                                         (block ? "BlockName, Nodes" : "SwitchName, Switches, Nodes, LinkSpeed"));
    }
    if (!to->empty()) return description.error(line, lbf::quoted(std::string(pair->key) + "=") + " appears twice");
    *to = pair->value;
  }
  description.entries.push_back(std::move(entry));
  return {};
}

Result<Description> read_conf(std::string_view text, const std::string& file_name) {
  Description description;
  description.file = file_name;
  bool any_switch = false;
  std::string whole;  // a line with its continuations
  std::size_t first_line = 1;
  std::size_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view part = text.substr(at, end - at);
    at = end + 1;
    ++line;
    if (part.find('\0') != std::string_view::npos) {
      return description.error(line, "a zero byte: is it a text file?");
    }
    part = part.substr(0, part.find('#'));
    const std::size_t last = part.find_last_not_of(kBlanks);
    const bool goes_on = last != std::string_view::npos && part[last] == '\\';
    if (whole.empty()) first_line = line;
    whole += goes_on ? part.substr(0, last) : part;
    if (goes_on) {
      whole += ' ';
      continue;
    }
    if (Result<void> taken = take_line(description, first_line, whole, any_switch); !taken) {
      return taken.error();
    }
    whole.clear();
  }
  if (Result<void> taken = take_line(description, first_line, whole, any_switch); !taken) return taken.error();
  return description;
}

// --- topology.yaml

std::size_t line_of(const YAML::Node& node) {
  return node.Mark().is_null() ? 0 : static_cast<std::size_t>(node.Mark().line) + 1;
}

Result<std::string> yaml_text(const Description& description, const YAML::Node& node, const std::string& key) {
  if (!node.IsScalar() || node.Scalar().empty()) {
    return description.error(line_of(node), "'" + key + "' must be a name or a hostlist");
  }
  return node.Scalar();
}

// The value of `key` in the mapping; undefined: it has none. Errors: twice.
Result<YAML::Node> yaml_find(const Description& description, const YAML::Node& mapping, std::string_view key) {
  YAML::Node found(YAML::NodeType::Undefined);
  for (const auto& member : mapping) {
    if (!member.first.IsScalar() || member.first.Scalar() != key) continue;
    if (found.IsDefined()) {
      return description.error(line_of(member.first), "'" + std::string(key) + "' appears twice");
    }
    found.reset(member.second);
  }
  return found;
}

// `list_key` of `plugin`: entries with `name_key`, nodes and, for switches, children.
Result<void> take_yaml_entries(Description& description, const YAML::Node& plugin, const std::string& list_key,
                               const std::string& name_key) {
  if (!plugin.IsMap()) {
    return description.error(line_of(plugin), "a mapping with '" + list_key + "' is needed here");
  }
  Result<YAML::Node> list = yaml_find(description, plugin, list_key);
  if (!list) return list.error();
  if (!list->IsDefined() || !list->IsSequence()) {
    return description.error(line_of(list->IsDefined() ? *list : plugin),
                             "'" + list_key + "' must be a list of '- " + name_key + ": NAME' with 'nodes'");
  }
  const std::string needed = "each of '" + list_key + "' must be a mapping with '" + name_key + "' and 'nodes'";
  for (const YAML::Node& item : *list) {
    if (!item.IsMap()) return description.error(line_of(item), needed);
    Entry entry;
    entry.line = line_of(item);
    for (const auto& member : item) {
      const std::string key = member.first.IsScalar() ? member.first.Scalar() : "";
      std::string* to = nullptr;
      if (key == name_key) to = &entry.name;
      if (key == "nodes") to = &entry.nodes;
      if (key == "children" && !description.blocks) to = &entry.switches;
      if (to == nullptr) {
        return description.error(line_of(member.first), "unknown key " + quoted(key) + ": known are " + name_key +
                                                            ", nodes" + (description.blocks ? "" : ", children"));
      }
      if (!to->empty()) return description.error(line_of(member.first), "'" + key + "' appears twice");
      Result<std::string> value = yaml_text(description, member.second, key);
      if (!value) return value.error();
      *to = std::move(*value);
    }
    if (entry.name.empty()) return description.error(entry.line, "'" + name_key + "' is missing: its name");
    description.entries.push_back(std::move(entry));
  }
  return {};
}

Result<Description> read_yaml(std::string_view text, const std::string& file_name) {
  Description description;
  description.file = file_name;
  YAML::Node root;
  try {
    root = YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    const std::size_t line = error.mark.is_null() ? 0 : static_cast<std::size_t>(error.mark.line) + 1;
    return description.error(line, on_one_line(error.msg));  // it has the file's characters
  }
  if (!root.IsSequence() || root.size() == 0) {
    return description.error(line_of(root), "must be a list of topologies: '- topology: NAME'");
  }
  YAML::Node chosen(YAML::NodeType::Undefined);
  for (const YAML::Node& topology : root) {
    if (!topology.IsMap()) {
      return description.error(line_of(topology), "a topology must be a mapping: '- topology: NAME'");
    }
    Result<YAML::Node> is_default = yaml_find(description, topology, "cluster_default");
    if (!is_default) return is_default.error();
    const bool preferred = is_default->IsDefined() && is_default->IsScalar() && same_key(is_default->Scalar(), "true");
    if (preferred || !chosen.IsDefined()) chosen.reset(topology);
    if (preferred) break;
  }
  Result<YAML::Node> tree = yaml_find(description, chosen, "tree");
  if (!tree) return tree.error();
  Result<YAML::Node> block = yaml_find(description, chosen, "block");
  if (!block) return block.error();
  if (tree->IsDefined() == block->IsDefined()) {
    return description.error(line_of(chosen),
                             "the topology needs one of 'tree' and 'block': others do not say which nodes share "
                             "a switch (flat: leave the topology away)");
  }
  description.blocks = block->IsDefined();
  Result<void> taken = description.blocks ? take_yaml_entries(description, *block, "blocks", "block")
                                          : take_yaml_entries(description, *tree, "switches", "switch");
  if (!taken) return taken.error();
  return description;
}

}  // namespace

Result<Topology> Topology::parse(std::string_view text, const std::string& file_name) {
  if (text.size() > kMaxFileBytes) {
    return Error{ErrorCode::kLimit, file_name + ": is over 1 MiB: not a topology file"};
  }
  const bool yaml = file_name.ends_with(".yaml") || file_name.ends_with(".yml");
  Result<Description> description = yaml ? read_yaml(text, file_name) : read_conf(text, file_name);
  if (!description) return description.error();
  return TopologyBuilder(*description).build();
}

Result<Topology> Topology::load(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int code = errno;
    return Error{code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                 path + ": cannot open the topology file: " + std::strerror(code)};
  }
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Error{ErrorCode::kIo, path + ": cannot read the topology file (is it a folder?)"};
  text.resize(static_cast<std::size_t>(file.gcount()));
  return parse(text, path);
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
                 quoted(hostlist) + " names more nodes than " + file_ + " has: " + std::to_string(names_.size())};
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
      return Error{ErrorCode::kNotFound, "node " + quoted(name) + " is not in " + file_ + ": there are " + known +
                                             (names_.size() > kMaxListed ? ", ..." : "")};
    }
    if (taken[*node]) return invalid_input("node " + quoted(name) + " is named twice in " + quoted(hostlist));
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
