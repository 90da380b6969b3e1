// Cluster file, version 1, see cluster.h and docs/formats/cluster-v1.md.
#include "advisor/candidate/cluster.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "base/hostlist.h"
#include "base/json_levels.h"

namespace lbf::advisor {
namespace {

using Json = nlohmann::json;

// One object of the file: takes keys out one by one, and complains about those that nobody took.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  std::string text(const char* key, std::string otherwise = "") {
    const Json* value = take(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) return complain(key, "is no text"), otherwise;
    return value->get<std::string>();
  }
  bool flag(const char* key, bool otherwise) {
    const Json* value = take(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) return complain(key, "is neither true nor false"), otherwise;
    return value->get<bool>();
  }
  std::uint64_t count(const char* key, std::uint64_t otherwise, std::uint64_t least, std::uint64_t most) {
    const Json* value = take(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number_integer() || (!value->is_number_unsigned() && value->get<std::int64_t>() < 0) ||
        value->get<std::uint64_t>() < least || value->get<std::uint64_t>() > most) {
      complain(key, "is no whole number from " + std::to_string(least) + " to " + std::to_string(most));
      return otherwise;
    }
    return value->get<std::uint64_t>();
  }
  enum class Least : std::uint8_t { kZero, kAboveZero };
  double number(const char* key, double otherwise, Least least) {
    // Beyond them it is a mistake, and a time would have 300 digits.
    constexpr double kLeastAboveZero = 1e-9;
    constexpr double kMost = 1e12;
    const Json* value = take(key);
    if (value == nullptr) return otherwise;
    const double number = value->is_number() ? value->get<double>() : -1;
    if (!std::isfinite(number) || number < 0 || (number == 0 && least == Least::kAboveZero)) {
      complain(key, least == Least::kZero ? "is no number from 0" : "is no number above 0");
      return otherwise;
    }
    if (number > kMost || (number < kLeastAboveZero && least == Least::kAboveZero)) {
      complain(key, "is not from 1e-9 to 1e12");
      return otherwise;
    }
    return number;
  }
  std::vector<std::string> texts(const char* key) {
    const Json* value = take(key);
    std::vector<std::string> list;
    if (value == nullptr) return list;
    if (!value->is_array()) return complain(key, "is no list"), list;
    for (const Json& item : *value) {
      if (!item.is_string()) return complain(key, "has an item that is no text"), list;
      list.push_back(item.get<std::string>());
    }
    return list;
  }
  // Objects of a list; an empty one where the key is missing.
  const Json& objects(const char* key) {
    static const Json none = Json::array();
    const Json* value = take(key);
    if (value == nullptr) return none;
    const bool good = value->is_array() &&
                      std::all_of(value->begin(), value->end(), [](const Json& item) { return item.is_object(); });
    if (!good) return complain(key, "is no list of tables"), none;
    return *value;
  }

  Result<void> done() {
    for (const auto& [key, value] : object_.items()) {
      if (std::find(taken_.begin(), taken_.end(), key) == taken_.end()) {
        complain(key.c_str(), "is not known (docs/formats/cluster-v1.md lists the keys)");
      }
    }
    if (error_.empty()) return {};
    return invalid_input(error_);
  }

 private:
  const Json* take(const char* key) {
    taken_.emplace_back(key);
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  void complain(const char* key, const std::string& what) {
    if (error_.empty()) error_ = where_ + ": '" + key + "' " + what;
  }

  const Json& object_;
  std::string where_;
  std::vector<std::string> taken_;
  std::string error_;
};

class ClusterReader {
 public:
  explicit ClusterReader(const std::string& file) : file_(file) { cluster_.source = file; }

  Result<Cluster> read(const Json& root) {
    if (!root.is_object()) return invalid_input(file_ + ": the cluster file is no table");
    Fields fields(root, file_);
    const std::uint64_t version = fields.count("lbf_cluster", 0, 1, std::numeric_limits<std::int32_t>::max());
    const Json& nodes = fields.objects("node");
    const Json& partitions = fields.objects("partition");
    const std::string topology = fields.text("topology");
    cluster_.cluster_name = fields.text("name");
    const bool from_slurm = fields.text("source") == "slurm";
    if (Result<void> done = fields.done(); !done) return done.error();
    if (version != 1) return invalid_input(file_ + ": the first key is to be lbf_cluster = 1");
    for (const Json& group : nodes) {
      if (Result<void> done = add_nodes(group); !done) return done.error();
    }
    if (cluster_.nodes.empty()) return invalid_input(file_ + ": there is no node: add a [[node]]");
    for (const Json& partition : partitions) {
      if (Result<void> done = add_partition(partition); !done) return done.error();
    }
    if (cluster_.partitions.empty()) add_whole_cluster();
    if (!topology.empty()) {
      const Result<void> done = add_topology(topology);
      if (!done && !from_slurm) return done.error();
      if (!done) cluster_.notes.push_back(done.error().message + ": all nodes are taken to be equally far apart");
    }
    return std::move(cluster_);
  }

 private:
  Result<void> add_nodes(const Json& group) {
    const std::string where = file_ + ", node " + std::to_string(++groups_);
    Fields fields(group, where);
    const std::string names = fields.text("name");
    ClusterNode node;
    node.sockets = static_cast<std::uint32_t>(fields.count("sockets", 1, 1, 1024));
    node.cores_per_socket = static_cast<std::uint32_t>(fields.count("cores_per_socket", 1, 1, 65536));
    node.memory_mib = fields.count("memory_mib", 0, 0, std::uint64_t{1} << 50);
    node.speed = fields.number("speed", 1.0, Fields::Least::kAboveZero);
    node.up = fields.flag("up", true);
    node.features = fields.texts("features");
    if (Result<void> done = fields.done(); !done) return done;
    if (node.cores() > Cluster::kMaxCores) return invalid_input(where + ": more than 65536 cores");
    Result<std::vector<std::string>> list = expand_hostlist(names, Cluster::kMaxNodes - cluster_.nodes.size());
    if (!list) return Error{list.error().code, where + ": 'name': " + list.error().message};
    for (std::string& name : *list) {
      const auto number = static_cast<std::uint32_t>(cluster_.nodes.size());
      if (!number_of_name_.emplace(name, number).second)
        return invalid_input(where + ": node '" + name + "' is named twice");
      node.name = std::move(name);
      cluster_.nodes.push_back(node);
    }
    return {};
  }

  Result<void> add_partition(const Json& object) {
    const std::string where = file_ + ", partition " + std::to_string(cluster_.partitions.size() + 1);
    Fields fields(object, where);
    Partition partition;
    partition.name = fields.text("name");
    const std::string names = fields.text("nodes");
    partition.is_default = fields.flag("default", false);
    partition.up = fields.flag("up", true);
    partition.max_nodes =
        static_cast<std::uint32_t>(fields.count("max_nodes", 0, 0, std::numeric_limits<std::int32_t>::max()));
    partition.max_time_s = fields.number("max_time_s", 0, Fields::Least::kZero);
    partition.network = fields.text("network");
    if (Result<void> done = fields.done(); !done) return done;
    if (partition.name.empty()) return invalid_input(where + ": has no 'name'");
    if (cluster_.find_partition(partition.name) != nullptr)
      return invalid_input(where + ": there are two of the name '" + partition.name + "'");
    // A partition may have no nodes (yet).
    Result<std::vector<std::string>> list = std::vector<std::string>{};
    if (!names.empty()) list = expand_hostlist(names, Cluster::kMaxNodes);
    if (!list) return Error{list.error().code, where + ": 'nodes': " + list.error().message};
    for (const std::string& name : *list) {
      const auto found = number_of_name_.find(name);
      if (found == number_of_name_.end())
        return invalid_input(where + ": node '" + name + "' is not described by any 'node'");
      partition.nodes.push_back(found->second);
    }
    std::sort(partition.nodes.begin(), partition.nodes.end());
    partition.nodes.erase(std::unique(partition.nodes.begin(), partition.nodes.end()), partition.nodes.end());
    cluster_.partitions.push_back(std::move(partition));
    return {};
  }

  void add_whole_cluster() {
    Partition partition;
    partition.is_default = true;
    for (std::uint32_t node = 0; node < cluster_.nodes.size(); ++node) partition.nodes.push_back(node);
    cluster_.partitions.push_back(std::move(partition));
  }

  Result<void> add_topology(const std::string& text) {
    Result<engine::Topology> topology = engine::Topology::parse(text, file_ + ": topology");
    if (!topology) return topology.error();
    std::vector<std::uint32_t> numbers;
    for (const ClusterNode& node : cluster_.nodes) {
      const std::optional<std::uint32_t> number = topology->find(node.name);
      if (!number) {
        return invalid_input(file_ + ": the topology does not have node '" + node.name +
                             "': put it on a switch, or leave the topology out");
      }
      numbers.push_back(*number);
    }
    cluster_.notes = topology->warnings();
    cluster_.topology_node_of_node = std::move(numbers);
    cluster_.topology = std::make_shared<const engine::Topology>(std::move(*topology));
    return {};
  }

  const std::string& file_;
  Cluster cluster_;
  std::size_t groups_ = 0;
  std::unordered_map<std::string, std::uint32_t> number_of_name_;
};

Result<Json> json_of_toml(std::string_view text, const std::string& file) {
  try {
    const toml::table table = toml::parse(text, file);
    std::ostringstream json;
    json << toml::json_formatter{table};
    return Json::parse(json.str());
  } catch (const toml::parse_error& error) {
    return invalid_input(file + ":" + std::to_string(error.source().begin.line) + ": " +
                         std::string(error.description()));
  }
}

}  // namespace

const Partition* Cluster::find_partition(std::string_view name) const {
  for (const Partition& partition : partitions) {
    if (partition.name == name) return &partition;
  }
  return nullptr;
}

Result<Cluster> parse_cluster(std::string_view text, const std::string& file_name) {
  if (text.size() > Cluster::kMaxFileBytes)
    return Error{ErrorCode::kLimit, file_name + ": a cluster file has at most 64 MiB"};
  Json root;
  if (file_name.ends_with(".toml")) {
    Result<Json> converted = json_of_toml(text, file_name);
    if (!converted) return converted.error();
    root = std::move(*converted);
  } else {
    constexpr std::size_t kMostLevels = 16;
    if (has_more_levels(text, kMostLevels))
      return invalid_input(file_name + ": nests deeper than a cluster file (docs/formats/cluster-v1.md)");
    root = Json::parse(text, nullptr, false);
    if (root.is_discarded()) return invalid_input(file_name + ": is no JSON (a TOML file ends in .toml)");
  }
  return ClusterReader(file_name).read(root);
}

Result<Cluster> load_cluster(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Error{ErrorCode::kNotFound, path + ": no such file"};
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{ErrorCode::kIo, path + ": cannot open: " + std::strerror(errno)};
  std::string text;
  std::vector<char> block(1 << 16);
  while (text.size() <= Cluster::kMaxFileBytes && in.read(block.data(), static_cast<long>(block.size())).gcount() > 0)
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
  if (in.bad()) return Error{ErrorCode::kIo, path + ": cannot read"};
  return parse_cluster(text, path);
}

}  // namespace lbf::advisor
