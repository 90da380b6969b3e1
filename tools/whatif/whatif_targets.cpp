#include "tools/whatif/whatif_targets.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/number.h"
#include "predictor/engine/network/topology_file.h"

namespace lbf::tools {
namespace {

constexpr std::string_view kMap = "map=";

// 1 + the highest node of map=..., 0 when it is no list of numbers (place_ranks then says what is wrong).
std::uint32_t nodes_of_map(std::string_view placement) {
  std::uint32_t nodes = 0;
  std::string_view list = placement.substr(kMap.size());
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    const auto node = parse_number<std::uint32_t>(item);
    if (!node || *node == ~std::uint32_t{0}) return 0;
    nodes = std::max(nodes, *node + 1);
    list.remove_prefix(std::min(item.size() + 1, list.size()));
  }
  return nodes;
}

template <typename Value>
Result<void> check_by_node(const char* option, const std::vector<Value>& values, std::uint32_t nodes) {
  if (values.size() == 1 || values.size() == nodes) return {};
  return invalid_input(std::string(option) + " has " + std::to_string(values.size()) + " values for " +
                       std::to_string(nodes) + (nodes == 1 ? " node" : " nodes") +
                       ": give one for all, or one for each node");
}

void add_names(const std::string& folder, std::vector<std::string>& names, std::error_code& error) {
  for (std::filesystem::directory_iterator it(folder, error); !error && it != std::filesystem::directory_iterator();
       it.increment(error)) {
    if (it->path().extension() == ".toml") names.push_back(it->path().stem().string());
  }
}

// Which nodes of the topology a target of `nodes` nodes has.
Result<std::vector<std::uint32_t>> nodes_of(const engine::Topology& topology,
                                            const std::vector<std::uint32_t>& nodelist, std::uint32_t nodes) {
  if (nodelist.empty()) return topology.choose(nodes);
  if (nodelist.size() < nodes) {
    return invalid_input("--nodelist names " + std::to_string(nodelist.size()) + " nodes for a target of " +
                         std::to_string(nodes) + ": name at least as many as the largest of --nodes");
  }
  return std::vector<std::uint32_t>(nodelist.begin(), nodelist.begin() + nodes);
}

}  // namespace

Result<std::shared_ptr<const engine::Network>> find_network(const std::string& name_or_file,
                                                            const std::string& networks_dir) {
  const bool is_file = name_or_file.find('/') != std::string::npos || name_or_file.ends_with(".toml");
  if (name_or_file == kNoNetwork) return std::make_shared<const engine::Network>(engine::Network::zero());
  std::error_code error;
  std::string path = is_file ? name_or_file : networks_dir + "/" + name_or_file + ".toml";
  const std::string nominal = networks_dir + "/nominal";
  if (!is_file && !std::filesystem::exists(path, error)) path = nominal + "/" + name_or_file + ".toml";
  if (!is_file && !std::filesystem::exists(path, error)) {
    std::vector<std::string> known{std::string(kNoNetwork)};
    std::error_code no_nominal_error;
    add_names(nominal, known, no_nominal_error);
    add_names(networks_dir, known, error);
    if (error) {
      return Error{ErrorCode::kNotFound, "no network '" + name_or_file + "': the folder of networks, " + networks_dir +
                                             ", cannot be read: " + error.message() +
                                             " (another folder: --networks-dir; a file: its path)"};
    }
    std::sort(known.begin(), known.end());
    std::string list;
    for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
    return Error{ErrorCode::kNotFound, "no network '" + name_or_file + "' in " + networks_dir + ": there are " + list +
                                           " (another folder: --networks-dir; a file: its path)"};
  }
  Result<engine::Network> network = engine::Network::load(path);
  if (!network) return network.error();
  return std::make_shared<const engine::Network>(std::move(*network));
}

engine::MemoryDomains domains_that_ran(const KnownMemory& memory, const std::string& networks_dir) {
  if (memory.network.empty()) return {};
  const auto network = find_network(memory.network, networks_dir);
  return network ? (*network)->memory() : engine::MemoryDomains{};
}

Result<std::vector<engine::Target>> make_targets(const WhatIfOptions& options, Rank ranks,
                                                 std::vector<std::string>& notes) {
  std::vector<std::shared_ptr<const engine::Network>> networks;
  for (const std::string& name : options.networks) {
    Result<std::shared_ptr<const engine::Network>> network = find_network(name, options.networks_dir);
    if (!network) return network.error();
    if (!options.contention.empty()) {
      auto changed = std::make_shared<engine::Network>(**network);
      changed->set_contention(options.contention == "bus"   ? engine::Contention::kBus
                              : options.contention == "nic" ? engine::Contention::kNic
                                                            : engine::Contention::kNone);
      *network = std::move(changed);
    }
    networks.push_back(std::move(*network));
  }
  std::shared_ptr<const engine::Topology> topology;
  std::vector<std::uint32_t> nodelist;
  if (!options.topology.empty()) {
    const Result<engine::TopologyFile> file = engine::TopologyFile::load(options.topology);
    if (!file) return file.error();
    Result<std::shared_ptr<const engine::Topology>> loaded = file->of_partition("");
    if (!loaded) return loaded.error();
    topology = std::move(*loaded);
    notes.insert(notes.end(), file->warnings().begin(), file->warnings().end());
    if (!options.nodelist.empty() && topology == nullptr) {
      return invalid_input("--nodelist needs switches, and the topology is flat: " + options.topology);
    }
    if (!options.nodelist.empty()) {
      Result<std::vector<std::uint32_t>> found = topology->find_all(options.nodelist);
      if (!found) return Error{found.error().code, "--nodelist: " + found.error().message};
      nodelist = std::move(*found);
    }
  }
  const engine::MemoryDomains domains = domains_that_ran(options.memory, options.networks_dir);
  std::vector<engine::Target> targets;
  constexpr std::uint32_t kAsManyAsRan = 0;
  const std::vector<std::uint32_t> thread_counts =
      options.threads.empty() ? std::vector<std::uint32_t>{kAsManyAsRan} : options.threads;
  for (const std::string& placement : options.placements) {
    std::vector<std::uint32_t> node_counts = options.nodes;
    if (node_counts.empty()) {
      if (!placement.starts_with(kMap)) {
        return invalid_input("--nodes is missing: how many nodes? (only map=... says it itself)");
      }
      node_counts.push_back(std::max(1U, nodes_of_map(placement)));
    }
    for (std::uint32_t nodes : node_counts) {
      Result<std::vector<std::uint32_t>> placed = engine::place_ranks(placement, ranks, nodes);
      if (!placed) return placed.error();
      if (auto fits = check_by_node("--cores", options.cores, nodes); !fits) return fits.error();
      if (auto fits = check_by_node("--speed", options.speeds, nodes); !fits) return fits.error();
      std::vector<std::uint32_t> topology_nodes;
      if (topology != nullptr) {
        Result<std::vector<std::uint32_t>> chosen = nodes_of(*topology, nodelist, nodes);
        if (!chosen) return chosen.error();
        topology_nodes = std::move(*chosen);
      }
      for (const auto& network : networks) {
        engine::Target target;
        target.topology = topology;
        target.topology_node_of_node = topology_nodes;
        target.node_of_rank = *placed;
        target.nodes = nodes;
        target.cores_per_node = options.cores.front();
        target.speed = options.speeds.front();
        if (options.cores.size() > 1) target.cores_of_node = options.cores;
        if (options.speeds.size() > 1) target.speed_of_node = options.speeds;
        target.waiting = options.waiting;
        target.network = network;
        target.placement = placement;
        if (const auto& ran_in = domains.known() ? domains : network->memory(); ran_in.known()) {
          target.memory = engine::memory_demand(ranks, std::max(1U, options.memory.ranks_per_domain), ran_in,
                                                options.memory.demand.bytes_per_s);
        }
        for (const std::uint32_t threads : thread_counts) {
          target.threads = threads;
          targets.push_back(target);
        }
      }
    }
  }
  return targets;
}

void set_other_programs(const report::TargetPrediction& self, std::vector<engine::Target>& targets) {
  if (targets.empty() || !self.nodes || !self.cores_per_node) return;
  engine::Target ran;
  auto placed =
      engine::place_ranks(self.placement, static_cast<Rank>(targets.front().node_of_rank.size()), *self.nodes);
  if (!placed) return;
  ran.node_of_rank = std::move(*placed);
  ran.nodes = *self.nodes;
  ran.cores_per_node = *self.cores_per_node;
  ran.speed = self.speed.value_or(1);
  ran.threads = static_cast<std::uint32_t>(self.threads.value_or(0));
  for (const engine::Target& target : targets) {
    if (target.network->name() == self.network && contention_name(target.network->contention()) == self.contention)
      ran.network = target.network;
  }
  if (ran.network != nullptr) engine::set_other_programs(ran, targets);
}

}  // namespace lbf::tools
