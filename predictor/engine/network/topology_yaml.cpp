// Slurm's topology.yaml, see topology_description.h.
#include <yaml-cpp/yaml.h>

#include <optional>
#include <utility>

#include "base/quoted.h"
#include "predictor/engine/network/topology_description.h"

namespace lbf::engine {
namespace {

using Kind = TopologyDescription::Kind;

std::size_t line_of(const YAML::Node& node) {
  return node.Mark().is_null() ? 0 : static_cast<std::size_t>(node.Mark().line) + 1;
}

// The words that Slurm takes (src/common/data.c).
std::optional<bool> truth(const YAML::Node& node) {
  if (!node.IsScalar()) return std::nullopt;
  for (const char* const word : {"true", "t", "yes", "y", "on"}) {
    if (is_same_key(node.Scalar(), word)) return true;
  }
  for (const char* const word : {"false", "f", "no", "n", "off"}) {
    if (is_same_key(node.Scalar(), word)) return false;
  }
  return std::nullopt;
}

// One topology of the file.
class TopologyYamlReader {
 public:
  explicit TopologyYamlReader(const std::string& file) { out_.file = out_.label = file; }

  Result<TopologyDescription> read(const YAML::Node& topology) {
    out_.line = line_of(topology);
    if (!topology.IsMap()) return error(topology, "a topology must be a mapping: '- topology: NAME'");
    if (Result<void> done = take_name(topology); !done) return done.error();
    const YAML::Node tree = find(topology, "tree");
    const YAML::Node block = find(topology, "block");
    if (tree.IsDefined() && block.IsDefined()) return error(topology, "the topology needs one of 'tree' and 'block'");
    out_.kind = tree.IsDefined()    ? Kind::kTree
                : block.IsDefined() ? Kind::kBlock
                : is_flat(topology) ? Kind::kFlat
                                    : Kind::kOther;
    Result<void> taken;
    if (out_.kind == Kind::kTree) taken = take_entries(tree, "switches", "switch");
    if (out_.kind == Kind::kBlock) taken = take_entries(block, "blocks", "block");
    if (!taken) return taken.error();
    return std::move(out_);
  }

 private:
  Error error(const YAML::Node& where, const std::string& what) const {
    return error_in_file(out_.file, line_of(where), what);
  }

  // The value of `key` in the mapping, the last one as in Slurm; undefined: it has none.
  YAML::Node find(const YAML::Node& mapping, const std::string& key) {
    YAML::Node found(YAML::NodeType::Undefined);
    for (const auto& member : mapping) {
      if (!member.first.IsScalar() || member.first.Scalar() != key) continue;
      if (found.IsDefined()) warn_twice(member.first);
      found.reset(member.second);
    }
    return found;
  }

  void warn_twice(const YAML::Node& key) {
    out_.warn(out_.file, line_of(key), lbf::quoted(key.Scalar()) + " appears twice: the last one counts");
  }

  Result<void> take_name(const YAML::Node& topology) {
    const YAML::Node name = find(topology, "topology");
    if (name.IsDefined() && name.IsScalar()) out_.name = name.Scalar();
    const YAML::Node is_default = find(topology, "cluster_default");
    if (!is_default.IsDefined()) return {};
    const std::optional<bool> value = truth(is_default);
    if (!value) return error(is_default, "'cluster_default' must be true or false");
    out_.is_cluster_default = *value;
    return {};
  }

  // "flat: true", or its options.
  bool is_flat(const YAML::Node& topology) {
    const YAML::Node flat = find(topology, "flat");
    return flat.IsDefined() && (flat.IsMap() || truth(flat).value_or(false));
  }

  // `list_key` of `plugin`: entries with `name_key`, nodes and, for switches, children. One entry may stand there
  // without a list.
  Result<void> take_entries(const YAML::Node& plugin, const std::string& list_key, const std::string& name_key) {
    if (!plugin.IsMap()) return error(plugin, "a mapping with '" + list_key + "' is needed here");
    const YAML::Node list = find(plugin, list_key);
    if (list.IsDefined() && list.IsMap()) return take_entry(list, list_key, name_key);
    if (!list.IsDefined() || !list.IsSequence()) {
      return error(list.IsDefined() ? list : plugin,
                   "'" + list_key + "' must be a list of '- " + name_key + ": NAME' with 'nodes'");
    }
    for (const YAML::Node& item : list) {
      if (Result<void> taken = take_entry(item, list_key, name_key); !taken) return taken;
    }
    return {};
  }

  Result<void> take_entry(const YAML::Node& item, const std::string& list_key, const std::string& name_key) {
    if (!item.IsMap()) {
      return error(item, "each of '" + list_key + "' must be a mapping with '" + name_key + "' and 'nodes'");
    }
    TopologyEntry entry{{}, out_.file, line_of(item), {}, {}};
    for (const auto& member : item) {
      const std::string key = member.first.IsScalar() ? member.first.Scalar() : "";
      std::string* to = nullptr;
      if (key == name_key) to = &entry.name;
      if (key == "nodes") to = &entry.nodes;
      if (key == "children" && out_.kind == Kind::kTree) to = &entry.switches;
      if (to == nullptr) {
        out_.warn(out_.file, line_of(member.first), "unknown key " + lbf::quoted(key) + " is left out, as by Slurm");
        continue;
      }
      if (!to->empty()) warn_twice(member.first);
      if (!member.second.IsScalar() && !member.second.IsNull()) {
        return error(member.second, "'" + key + "' must be a name or a hostlist");
      }
      *to = member.second.IsNull() ? "" : member.second.Scalar();
    }
    if (entry.name.empty()) return error(item, "'" + name_key + "' is missing: its name");
    if (!entry.nodes.empty() && !entry.switches.empty()) {
      out_.warn(
          out_.file, entry.line,
          "switch " + lbf::quoted(entry.name) + " has both children and nodes: its children are left out, as by Slurm");
      entry.switches.clear();
    }
    out_.entries.push_back(std::move(entry));
    return {};
  }

  TopologyDescription out_;
};

}  // namespace

Result<std::vector<TopologyDescription>> read_topology_yaml(std::string_view text, const std::string& file_name) {
  YAML::Node root;
  try {
    root = YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    const std::size_t line = error.mark.is_null() ? 0 : static_cast<std::size_t>(error.mark.line) + 1;
    return error_in_file(file_name, line, on_one_line(error.msg));  // it has the file's characters
  }
  const bool is_one = root.IsMap() && root["topology"].IsDefined();
  if (!is_one && (!root.IsSequence() || root.size() == 0)) {
    return error_in_file(file_name, line_of(root), "must be a list of topologies: '- topology: NAME'");
  }
  std::vector<TopologyDescription> topologies;
  const auto add = [&](const YAML::Node& topology) -> Result<void> {
    Result<TopologyDescription> read = TopologyYamlReader(file_name).read(topology);
    if (!read) return read.error();
    topologies.push_back(std::move(*read));
    return {};
  };
  if (is_one) {
    if (Result<void> added = add(root); !added) return added.error();
    return topologies;
  }
  for (const YAML::Node& topology : root) {
    if (Result<void> added = add(topology); !added) return added.error();
  }
  if (topologies.size() > 1) {
    for (TopologyDescription& topology : topologies) topology.label += "#" + as_ascii(topology.name);
  }
  return topologies;
}

}  // namespace lbf::engine
