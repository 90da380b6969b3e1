// TopologyFile, see topology_file.h.
#include "predictor/engine/network/topology_file.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/quoted.h"
#include "predictor/engine/network/slurm_conf.h"
#include "predictor/engine/network/topology_description.h"

namespace lbf::engine {
namespace {

using Kind = TopologyDescription::Kind;

// "a, b".
std::string names_of(const std::vector<TopologyDescription>& topologies) {
  constexpr std::size_t kMaxNames = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(kMaxNames, topologies.size()); ++i) {
    names += (i > 0 ? ", " : "") + as_ascii(topologies[i].name);
  }
  return names + (topologies.size() > kMaxNames ? ", ..." : "");
}

}  // namespace

bool is_yaml(std::string_view file_name) {
  return file_name.ends_with(".yaml") || file_name.ends_with(".yml");
}

Result<std::vector<TopologyDescription>> read_topologies(std::string_view text, const std::string& file_name,
                                                         const std::string& folder) {
  if (text.size() > kMaxSlurmFileBytes) {
    return Error{ErrorCode::kLimit, file_name + ": is over 1 MiB: not a topology file"};
  }
  if (is_yaml(file_name)) return read_topology_yaml(text, file_name);
  const Result<std::vector<SlurmLine>> lines = parse_slurm_conf(text, file_name, folder);
  if (!lines) return lines.error();
  Result<TopologyDescription> read = read_topology_conf(*lines, file_name);
  if (!read) return read.error();
  return std::vector<TopologyDescription>{std::move(*read)};
}

const TopologyDescription& cluster_default(const std::vector<TopologyDescription>& topologies) {
  const auto found = std::find_if(topologies.begin(), topologies.end(),
                                  [](const TopologyDescription& topology) { return topology.is_cluster_default; });
  return found == topologies.end() ? topologies.front() : *found;
}

Result<TopologyFile> TopologyFile::load(const std::string& path) {
  const std::size_t hash = path.rfind('#');
  const bool chosen = hash != std::string::npos && is_yaml(std::string_view(path).substr(0, hash));
  const std::string file = chosen ? path.substr(0, hash) : path;
  const Result<std::string> text = read_slurm_file(file, "topology file");
  if (!text) return text.error();
  Result<std::vector<TopologyDescription>> topologies = read_topologies(*text, file, folder_of(file));
  if (!topologies) return topologies.error();
  if (!chosen) return build(*topologies);
  for (const TopologyDescription& topology : *topologies) {
    if (topology.name == path.substr(hash + 1)) return build({topology});
  }
  return Error{ErrorCode::kNotFound, file + " has no topology " + lbf::quoted(path.substr(hash + 1)) + ": there are " +
                                         names_of(*topologies)};
}

Result<TopologyFile> TopologyFile::parse(std::string_view text, const std::string& file_name) {
  const Result<std::vector<TopologyDescription>> topologies = read_topologies(text, file_name, "");
  if (!topologies) return topologies.error();
  return build(*topologies);
}

TopologyFile TopologyFile::build(const std::vector<TopologyDescription>& topologies) {
  const TopologyDescription& by_default = cluster_default(topologies);
  TopologyFile file;
  file.file_ = by_default.file;
  file.default_name_ = by_default.name;
  for (const TopologyDescription& topology : topologies) {
    Built built = std::shared_ptr<const Topology>();
    if (topology.kind != Kind::kFlat) {
      Result<Topology> made = Topology::build(topology);
      built = made ? Built(std::make_shared<const Topology>(std::move(*made))) : Built(made.error());
    }
    const std::vector<std::string>& warnings = built && *built != nullptr ? (*built)->warnings() : topology.warnings;
    file.warnings_.insert(file.warnings_.end(), warnings.begin(), warnings.end());
    file.topologies_.emplace(topology.name, std::move(built));
  }
  if (by_default.kind == Kind::kFlat) {
    file.warnings_.push_back(
        by_default.label + ": this topology is flat, all nodes are equally far apart" +
        (topologies.size() > 1 ? " (another one: " + by_default.file + "#NAME; there are " + names_of(topologies) + ")"
                               : ""));
  }
  return file;
}

void TopologyFile::read_neighbours() {
  const std::string folder = folder_of(file_);
  std::error_code ignored;
  if (file_.ends_with("/topology.conf") && std::filesystem::exists(folder + "/topology.yaml", ignored)) {
    warnings_.push_back(file_ + ": Slurm reads topology.yaml in the same folder instead of it");
  }
  if (topologies_.size() < 2) return;
  if (Result<void> read = add_partitions(folder + "/slurm.conf", folder); !read) {
    warnings_.push_back(on_one_line(read.error().message) + ": every partition is taken to have the topology " +
                        lbf::quoted(default_name_) + " of " + file_);
  }
}

Result<void> TopologyFile::add_partitions(const std::string& slurm_conf, const std::string& folder) {
  const Result<std::string> text =
      read_slurm_file(slurm_conf, "slurm.conf that says which partition has which topology");
  if (!text) return text.error();
  const Result<std::vector<SlurmLine>> lines = parse_slurm_conf(*text, slurm_conf, folder);
  if (!lines) return lines.error();
  std::string for_later_ones = default_name_;  // PartitionName=DEFAULT
  for (const SlurmLine& line : *lines) {
    if (!is_same_key(line.first_word(), "PartitionName")) continue;
    const Result<std::vector<SlurmSetting>> settings = line.settings();
    if (!settings) return settings.error();
    std::string topology = for_later_ones;
    for (const SlurmSetting& setting : *settings) {
      if (is_same_key(setting.key, "Topology")) topology = setting.value;
    }
    if (is_same_key(settings->front().value, "DEFAULT")) {
      for_later_ones = topology;
    } else {
      topology_of_partition_[std::string(settings->front().value)] = topology;
    }
  }
  return {};
}

Result<std::shared_ptr<const Topology>> TopologyFile::of_partition(const std::string& partition) const {
  const auto said = topology_of_partition_.find(partition);
  const std::string& name = said == topology_of_partition_.end() ? default_name_ : said->second;
  const auto found = topologies_.find(name);
  if (found != topologies_.end()) return found->second;
  return Error{ErrorCode::kNotFound, file_ + " has no topology " + lbf::quoted(name) +
                                         ", which slurm.conf gives partition " + lbf::quoted(partition)};
}

}  // namespace lbf::engine
