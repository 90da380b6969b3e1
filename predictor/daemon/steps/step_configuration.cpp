// StepConfiguration, see step_configuration.h.
#include "predictor/daemon/steps/step_configuration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/hostlist.h"
#include "predictor/daemon/steps/target_ranking.h"
#include "predictor/engine/network/topology_file.h"

namespace lbf::daemon {
namespace {

// Works out the configuration of one step.
class Configurator {
 public:
  Configurator(const StepTrace& trace, const NetworkCatalog& networks, const StepRunOptions& options,
               StepRemarks& remarks)
      : trace_(trace), step_(trace.description()), networks_(networks), options_(options), remarks_(remarks) {}
  StepConfiguration work_out();

 private:
  using Streams = std::map<std::uint32_t, protocol::StreamDescription>;
  std::vector<std::uint32_t> place_tasks(const Streams& streams);
  void leave_out_idle_nodes();
  std::uint32_t cores_per_node(const Streams& streams);
  void find_topology_nodes();
  void find_memory_demand();
  void note_unknown_demand();
  std::vector<engine::Target> make_targets();

  const StepTrace& trace_;
  const protocol::StepDescription& step_;
  const NetworkCatalog& networks_;
  const StepRunOptions& options_;
  StepRemarks& remarks_;
  StepConfiguration out_;
};

// Task t = rank t runs where its node's relay says; nodes that have not said get the remaining tasks in
// blocks of tasks_per_node, Slurm's default distribution.
std::vector<std::uint32_t> Configurator::place_tasks(const Streams& streams) {
  const auto nodes = static_cast<std::uint32_t>(step_.nodes.size());
  const Rank ranks = step_.tasks;
  std::vector<std::optional<std::uint32_t>> node_of_task(static_cast<std::size_t>(ranks));
  std::vector<std::uint32_t> room = step_.tasks_per_node;
  if (room.empty()) {
    room.assign(nodes, static_cast<std::uint32_t>(ranks) / nodes);
    for (std::uint32_t node = 0; node < static_cast<std::uint32_t>(ranks) % nodes; ++node) ++room[node];
  }
  bool all_said = true;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const auto found = streams.find(node);
    if (found == streams.end() || found->second.task_ids.empty()) {
      all_said = false;
      continue;
    }
    room[node] = 0;
    for (const Rank task : found->second.task_ids) {
      auto& place = node_of_task[static_cast<std::size_t>(task)];
      if (place && *place != node)
        remarks_.add_reason(fmt::format("nodes {} and {} both say that they run task {}", *place, node, task));
      place = node;
    }
  }
  std::uint32_t node = 0;
  std::vector<std::uint32_t> placed;
  for (const auto& place : node_of_task) {
    if (place) {
      placed.push_back(*place);
      continue;
    }
    while (node + 1 < nodes && room[node] == 0) ++node;
    if (room[node] > 0) --room[node];
    placed.push_back(node);
  }
  if (!all_said && nodes > 1 && (step_.launcher.empty() || !trace_.all_registered()))
    remarks_.add_note("not every node said which tasks it runs: the others are taken to be in blocks");
  return placed;
}

// mpirun need not use every node of the job: the run had those on which its ranks are.
void Configurator::leave_out_idle_nodes() {
  std::vector<std::uint32_t> used = out_.ran.node_of_rank;
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (std::uint32_t& node : out_.ran.node_of_rank) {
    node = static_cast<std::uint32_t>(std::lower_bound(used.begin(), used.end(), node) - used.begin());
  }
  out_.nodes = std::move(used);
}

std::uint32_t Configurator::cores_per_node(const Streams& streams) {
  std::uint32_t cores = 0;
  bool cores_differ = false;
  for (const auto& [number, description] : streams) {
    if (description.cpus_on_node == 0) continue;
    cores_differ |= cores != 0 && cores != description.cpus_on_node;
    cores = std::max(cores, description.cpus_on_node);
  }
  if (cores == 0) {
    std::vector<std::uint32_t> tasks(out_.ran.nodes, 0);
    for (const std::uint32_t node : out_.ran.node_of_rank) cores = std::max(cores, ++tasks[node]);
    remarks_.add_note(fmt::format("the processors per node are not known: taken as {}, one for each task", cores));
  } else if (cores_differ) {
    remarks_.add_note(fmt::format("the nodes have different numbers of processors: taken as {} everywhere", cores));
  }
  return cores;
}

// Where the topology does not have all of the step's nodes it is not used at all: distances on some targets
// only would make them differ by more than their placement.
void Configurator::find_topology_nodes() {
  if (options_.topology == nullptr) return;
  const auto chosen = options_.topology->of_partition(step_.partition);
  if (!chosen) remarks_.add_note(chosen.error().message + ": all nodes are taken to be equally far apart");
  if (!chosen || *chosen == nullptr) return;
  const engine::Topology& topology = **chosen;
  std::vector<std::uint32_t> nodes;
  std::vector<bool> taken(topology.nodes(), false);
  std::vector<std::string> on_several_switches;
  for (const std::uint32_t number : out_.nodes) {
    const std::string& name = step_.nodes[number];
    const std::optional<std::uint32_t> node = topology.find(name);
    if (!node || taken[*node]) {
      remarks_.add_note(fmt::format("node {} is {} {}: all nodes are taken to be equally far apart", name,
                                    node ? "named twice, but once in" : "not in", topology.file()));
      return;
    }
    taken[*node] = true;
    nodes.push_back(*node);
    if (topology.is_on_several_switches(*node)) on_several_switches.push_back(name);
  }
  if (!on_several_switches.empty()) {
    remarks_.add_note(fmt::format("{} on several switches in {}: the first one counts", hostlist(on_several_switches),
                                  topology.file()));
  }
  out_.ran.topology = *chosen;
  out_.ran.topology_node_of_node = std::move(nodes);
}

// From earlier runs of the program with other numbers of ranks per domain.
void Configurator::find_memory_demand() {
  const engine::MemoryDomains& memory = out_.ran.network->memory();
  if (!memory.known()) return;
  out_.ranks_per_domain = engine::ranks_per_domain(out_.ran, memory);
  std::vector<engine::DenseRun> runs;
  for (const auto& [density, work_s] : options_.work_by_density) runs.push_back({density, work_s});
  out_.demand = engine::fitted_demand(memory, runs);
  if (!(out_.demand.bytes_per_s > 0)) return;
  out_.ran.memory = engine::memory_demand(out_.ran, memory, out_.demand.bytes_per_s);
  remarks_.add_note(
      fmt::format("memory: a rank alone in its memory domain demands {:.3g} GB/s, by earlier runs with {} "
                  "and {} ranks per domain",
                  out_.demand.bytes_per_s / 1e9, runs.front().ranks_per_domain, runs.back().ranks_per_domain));
}

// Where targets would differ for it. Parallel regions are known when they come.
void Configurator::note_unknown_demand() {
  if (out_.ranks_per_domain == 0) return;
  const engine::RanDensity ran = engine::ran_density(out_.ran, 0);
  double most_percent = 0;
  for (const engine::Target& target : out_.targets)
    most_percent = std::max(most_percent, engine::unknown_demand_percent(ran, target, out_.demand));
  if (most_percent < 1) return;
  remarks_.add_note(fmt::format(
      "memory: the demand of this program {}: targets with other numbers of ranks per memory domain than {} may be off "
      "by up to {:.0f} % for it; a run with another number would tell",
      out_.demand.bytes_per_s > 0 ? "may be more" : "is not known", out_.ranks_per_domain, most_percent));
}

std::vector<engine::Target> Configurator::make_targets() {
  if (!networks_.own_note().empty()) remarks_.add_note(networks_.own_note());
  auto selection = networks_.select(step_.networks);
  for (std::string& note : selection.notes) remarks_.add_note(std::move(note));
  std::vector<engine::Target> targets = engine::default_targets(out_.ran, selection.networks, step_.threads_per_task);
  if ((targets.size() + 1) * static_cast<std::size_t>(step_.tasks) > engine::kMostDefaultPlaces)
    remarks_.add_note("so many ranks have more node counts than are predicted by themselves: lbf-whatif predicts any");
  // On one node public figures that nobody asked for say nothing new.
  std::erase_if(targets, [&](const engine::Target& target) {
    return target.nodes == 1 && target.network->nominal() && target.network != out_.ran.network &&
           step_.networks.empty();
  });
  std::set<std::string> nominal;
  for (const engine::Target& target : targets) {
    if (target.network->nominal()) nominal.insert(target.network->name());
    if (out_.ran.topology != nullptr && target.topology == nullptr) {
      remarks_.add_note(fmt::format("{} connects no {} nodes: on so many they are taken to be equally far apart",
                                    out_.ran.topology->file(), target.nodes));
    }
  }
  if (!nominal.empty())
    remarks_.add_note(fmt::format("from public figures, not measured here: {}", fmt::join(nominal, ", ")));
  return targets;
}

StepConfiguration Configurator::work_out() {
  const Streams streams = trace_.stream_descriptions();
  engine::Target& ran = out_.ran;
  ran.node_of_rank = place_tasks(streams);
  out_.nodes.resize(step_.nodes.size());
  std::iota(out_.nodes.begin(), out_.nodes.end(), 0U);
  if (!step_.launcher.empty()) leave_out_idle_nodes();
  ran.nodes = static_cast<std::uint32_t>(out_.nodes.size());
  ran.placement = placement_name(ran.node_of_rank, ran.nodes);
  ran.network = networks_.own();
  ran.cores_per_node = cores_per_node(streams);
  find_topology_nodes();
  find_memory_demand();
  out_.targets = ranked_targets(make_targets(), step_.networks);
  note_unknown_demand();
  return std::move(out_);
}

}  // namespace

std::string placement_name(const std::vector<std::uint32_t>& node_of_rank, std::uint32_t nodes) {
  const auto ranks = static_cast<Rank>(node_of_rank.size());
  std::vector<std::string> names = {"block", "cyclic"};
  // A plane of K puts ranks 0 .. K-1 on the first node: K can be read off.
  const auto plane = std::find_if(node_of_rank.begin(), node_of_rank.end(),
                                  [&](std::uint32_t node) { return node != node_of_rank.front(); }) -
                     node_of_rank.begin();
  if (plane > 1 && plane < ranks) names.push_back("plane=" + std::to_string(plane));
  for (const std::string& name : names) {
    const auto placed = engine::place_ranks(name, ranks, nodes);
    if (placed && *placed == node_of_rank) return name;
  }
  std::string map = "map=";
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    map += (rank == 0 ? "" : ",") + std::to_string(node_of_rank[rank]);
  }
  return map;
}

StepConfiguration configuration_of(const StepTrace& trace, const NetworkCatalog& networks,
                                   const StepRunOptions& options, StepRemarks& remarks) {
  return Configurator(trace, networks, options, remarks).work_out();
}

}  // namespace lbf::daemon
