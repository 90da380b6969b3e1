// Machines, see random_configuration.h.
#include "tests/unit/replay/random_configuration.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "predictor/engine/replay/memory_sharing.h"
#include "predictor/engine/replay/replay.h"
#include "tests/unit/replay/random_trace.h"

namespace lbf::random_trace {
namespace {

reference::Table make_table(std::mt19937_64& random, bool nothing) {
  if (nothing) return {};
  std::uniform_real_distribution<double> some(0, 2);
  reference::Table table{{0, some(random)}};
  table.emplace_back(1000, table.back().second + some(random));
  table.emplace_back(kMaxBytes, table.back().second + some(random));
  if (random() % 4 == 0) {
    for (auto& point : table) point.second = 1;  // constant: arrivals coincide with other events
  }
  return table;
}

void write_table(std::ostringstream& out, const char* key, const reference::Table& table) {
  if (table.empty()) return;
  out.precision(17);
  out << key << " = [";
  for (const auto& [bytes, seconds] : table)
    out << "[" << static_cast<std::uint64_t>(bytes) << ", " << std::fixed << seconds * 1e6 << "],";
  out << "]\n";
}

// A cluster of one or two trees of up to three levels, leaves anywhere below the top, and some of its nodes
// for the target.
void make_topology(std::mt19937_64& random, Configuration& configuration) {
  reference::Machine& machine = configuration.machine;
  struct Switch {
    std::vector<int> way;  // from itself to the top
    std::vector<int> nodes;
    std::vector<int> switches;
  };
  std::vector<Switch> switches;
  const auto add_switch = [&](std::vector<int> above) {
    const int number = static_cast<int>(switches.size());
    above.insert(above.begin(), number);
    switches.push_back({std::move(above), {}, {}});
    if (switches.back().way.size() > 1) {
      switches[static_cast<std::size_t>(switches.back().way[1])].switches.push_back(number);
    }
    return static_cast<std::size_t>(number);
  };
  const auto add_leaf = [&](const std::vector<int>& above) {
    const std::size_t leaf = add_switch(above);
    for (std::size_t i = 0; i < 1 + random() % 3; ++i) {
      switches[leaf].nodes.push_back(static_cast<int>(machine.switches_of_cluster_node.size()));
      machine.switches_of_cluster_node.push_back(switches[leaf].way);
    }
  };
  const std::size_t trees = random() % 4 == 0 ? 2 : 1;
  for (std::size_t tree = 0; tree < trees || machine.switches_of_cluster_node.size() < configuration.target.nodes;
       ++tree) {
    const std::size_t top = add_switch({});
    for (std::size_t i = 0; i < 1 + random() % 4 || machine.switches_of_cluster_node.size() < 3; ++i) {
      if (random() % 2 == 0) {
        add_leaf(switches[top].way);
        continue;
      }
      const std::size_t middle = add_switch(switches[top].way);
      for (std::size_t j = 0; j < 1 + random() % 3; ++j) add_leaf(switches[middle].way);
    }
  }
  // As a file of Slurm, switches in any order.
  const bool yaml = random() % 2 == 0;
  std::vector<std::size_t> order(switches.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  std::ostringstream text;
  if (yaml) text << "- topology: random\n  tree:\n    switches:\n";
  const auto list = [&](const char* key, const char* letter, const std::vector<int>& numbers) {
    if (numbers.empty()) return;
    text << (yaml ? "      " : " ") << key << (yaml ? ": " : "=") << letter << "[";
    for (std::size_t i = 0; i < numbers.size(); ++i) text << (i > 0 ? "," : "") << numbers[i];
    text << "]" << (yaml ? "\n" : "");
  };
  for (std::size_t number : order) {
    text << (yaml ? "    - switch: s" : "SwitchName=s") << number << (yaml ? "\n" : "");
    list(yaml ? "children" : "Switches", "s", switches[number].switches);
    list(yaml ? "nodes" : "Nodes", "n", switches[number].nodes);
    text << (yaml ? "" : "\n");
  }
  Result<engine::Topology> topology = engine::Topology::parse(text.str(), yaml ? "topology.yaml" : "topology.conf");
  if (!topology.ok()) throw std::logic_error(topology.error().message + " in\n" + text.str());
  engine::Target& target = configuration.target;
  target.topology = std::make_shared<const engine::Topology>(std::move(*topology));
  std::vector<int> nodes(machine.switches_of_cluster_node.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i] = static_cast<int>(i);
  std::shuffle(nodes.begin(), nodes.end(), random);
  nodes.resize(target.nodes);
  machine.cluster_node_of_node = nodes;
  for (int node : nodes) target.topology_node_of_node.push_back(*target.topology->find("n" + std::to_string(node)));
}

// Nodes, processors, and where the ranks are.
void make_nodes(std::mt19937_64& random, Rank ranks, Configuration& configuration) {
  engine::Target& target = configuration.target;
  reference::Machine& machine = configuration.machine;
  target.nodes = static_cast<std::uint32_t>(1 + random() % static_cast<std::uint64_t>(ranks));
  target.cores_per_node = static_cast<std::uint32_t>(1 + random() % 4);
  target.speed = random() % 2 == 0 ? 1.0 : 0.5 + static_cast<double>(random() % 1000) / 400.0;
  std::string map = "map=";
  for (Rank rank = 0; rank < ranks; ++rank) {
    map += (rank > 0 ? "," : "") + std::to_string(random() % target.nodes);
  }
  target.placement = map;
  Result<std::vector<std::uint32_t>> placed = engine::place_ranks(map, ranks, target.nodes);
  if (!placed.ok()) throw std::logic_error(placed.error().message);
  target.node_of_rank = *placed;
  for (std::uint32_t node : target.node_of_rank) machine.node_of_rank.push_back(static_cast<int>(node));
  machine.cores.assign(target.nodes, static_cast<int>(target.cores_per_node));
  machine.speed.assign(target.nodes, target.speed);
  if (random() % 4 == 0) {
    for (std::uint32_t node = 0; node < target.nodes; ++node) {
      target.cores_of_node.push_back(static_cast<std::uint32_t>(1 + random() % 3));
      target.speed_of_node.push_back(0.5 + static_cast<double>(random() % 4) / 2.0);
      machine.cores[node] = static_cast<int>(target.cores_of_node.back());
      machine.speed[node] = target.speed_of_node.back();
    }
  }
  target.waiting = std::array{engine::Waiting::kYield, engine::Waiting::kYield, engine::Waiting::kBlock,
                              engine::Waiting::kSpin}[random() % 4];
  machine.spins = target.waiting == engine::Waiting::kSpin;
  machine.yields = target.waiting == engine::Waiting::kYield;
  machine.beside_others = target.nodes % 2 == 0;
  if (machine.beside_others) target.other_programs = engine::OtherPrograms::kAsTheyRan;
}

// What memory ranks want, and how much of it there is.
void choose_memory(std::mt19937_64& random, Configuration& configuration, std::ostringstream& toml) {
  reference::Machine& machine = configuration.machine;
  machine.domains = static_cast<int>(1 + random() % 3);
  double megabytes = static_cast<double>(100 + random() % 900);
  toml << "[memory]\ndomains = " << machine.domains << "\nbandwidth_MBps = [";
  for (const int processors : {1, 2, 4}) {
    machine.memory.emplace_back(processors, megabytes * 1e6);
    toml << "[" << processors << ", " << std::fixed << megabytes << "],";
    megabytes += static_cast<double>(random() % 300);
  }
  toml << "]\n";
  machine.demand = machine.memory.front().second * static_cast<double>(1 + random() % 12) / 8;
  configuration.target.memory.bytes_per_s = machine.demand;
  if (random() % 2 == 0) return;
  const std::size_t ranks = configuration.target.node_of_rank.size();
  engine::Target ran;  // with a domain on each node
  ran.nodes = static_cast<std::uint32_t>(1 + random() % ranks);
  ran.cores_per_node = static_cast<std::uint32_t>(1 + random() % 4);
  std::vector<int> ranks_of_node(ran.nodes);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    ran.node_of_rank.push_back(static_cast<std::uint32_t>(random() % ran.nodes));
    ++ranks_of_node[ran.node_of_rank.back()];
  }
  for (const std::uint32_t node : ran.node_of_rank)
    machine.ran_beside.emplace_back(ranks_of_node[node], static_cast<int>(ran.cores_per_node));
  const engine::CountCurve bandwidth(
      {{1, machine.memory[0].second}, {2, machine.memory[1].second}, {4, machine.memory[2].second}});
  configuration.target.memory = engine::memory_demand(ran, {1, bandwidth}, machine.demand);
}

void make_network(std::mt19937_64& random, Configuration& configuration) {
  engine::Target& target = configuration.target;
  reference::Machine& machine = configuration.machine;
  if (random() % 4 == 0) {
    target.network = std::make_shared<const engine::Network>(engine::Network::zero());
    machine.remote = reference::Path{};
    return;
  }
  const bool protocol = random() % 2 == 0;
  std::ostringstream toml;
  toml << "name = \"random\"\n";
  const auto add_path = [&](const std::string& locality) {
    reference::Path path;
    path.flight = make_table(random, false);
    path.send_cpu = make_table(random, !protocol);
    path.recv_cpu = make_table(random, !protocol);
    toml << "[[path]]\nlocality = \"" << locality << "\"\n";
    write_table(toml, "table", path.flight);
    write_table(toml, "send_cpu", path.send_cpu);
    write_table(toml, "recv_cpu", path.recv_cpu);
    if (random() % 2 == 0) {
      path.eager_limit = static_cast<double>(random() % 3 == 0 ? 0 : random() % 65536);
      toml << "eager_limit_bytes = " << static_cast<std::uint64_t>(path.eager_limit) << "\n";
    }
    // Seconds, as all else in these programs.
    const auto add_time = [&](const char* key, double& seconds) {
      if (random() % 3 > 0) return;
      const std::uint64_t microseconds = random() % 3000000;
      toml << key << " = " << microseconds << "\n";
      seconds = static_cast<double>(microseconds) * 1e-6;
    };
    add_time("first_message_us", path.first_message);
    add_time("first_peer_us", path.first_peer);
    add_time("turn_us", path.turn);
    add_time("switch_us", path.switching);
    return path;
  };
  machine.self_node = add_path("self-node");
  if (random() % 2 == 0) {
    make_topology(random, configuration);
    for (int hops = 4; hops >= 1; --hops) {
      if (random() % 2 == 0) machine.hops[hops] = add_path("hop:" + std::to_string(hops));
    }
  }
  if (machine.hops.empty() || random() % 2 == 0) machine.remote = add_path("remote");
  if (random() % 2 == 0) {
    machine.copy = make_table(random, random() % 3 == 0);
    machine.reduce = make_table(random, random() % 3 == 0);
    toml << "[local]\n";
    write_table(toml, "copy", machine.copy);
    write_table(toml, "reduce", machine.reduce);
  }
  if (random() % 2 == 0) {
    const bool bus = random() % 2 == 0;
    machine.contention = bus ? reference::Machine::Contention::kBus : reference::Machine::Contention::kNic;
    // Such that messages of some 10 kB take about as long in the links as in the table.
    machine.bandwidth = static_cast<double>(1 + random() % 20) * 1e3;
    toml << "[contention]\nmodel = \"" << (bus ? "bus" : "nic") << "\"\nbandwidth_MBps = " << std::fixed
         << machine.bandwidth / 1e6 << "\n";
  }
  if (random() % 4 == 0) choose_memory(random, configuration, toml);
  Result<engine::Network> network = engine::Network::parse(toml.str(), "random.toml");
  if (!network.ok()) throw std::logic_error(network.error().message);
  target.network = std::make_shared<const engine::Network>(std::move(*network));
}

}  // namespace

Configuration make_configuration(std::mt19937_64& random, Rank ranks) {
  Configuration configuration;
  make_nodes(random, ranks, configuration);
  make_network(random, configuration);
  return configuration;
}

// Where each rank has a processor the engine has to know how many threads there are to share processors by the clock.
void choose_threads(std::mt19937_64& random, Configuration& configuration) {
  const bool as_ran = random() % 4 == 0 && !engine::is_dedicated(configuration.target);
  configuration.target.threads = as_ran ? 0 : static_cast<std::uint32_t>(1 + random() % 4);
  configuration.machine.threads = static_cast<int>(configuration.target.threads);
}

}  // namespace lbf::random_trace
