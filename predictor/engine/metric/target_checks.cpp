#include "predictor/engine/metric/target_checks.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "predictor/engine/replay/localities.h"
#include "predictor/engine/replay/memory_sharing.h"

namespace lbf::engine {
namespace {

Result<void> check_nodes(const Target& target, const std::string& name) {
  const auto is_speed = [](double speed) { return std::isfinite(speed) && speed > 0; };
  for (std::uint32_t node = 0; node < target.nodes; ++node) {
    if (target.cores_of(node) == 0) return invalid_input(name + " has no processor per node");
    if (!is_speed(target.speed_of(node))) {
      return invalid_input(name + ": the speed must be a number above 0 (1 = as fast as the processor that ran)");
    }
    if (target.cores_of_node.empty() && target.speed_of_node.empty()) break;
  }
  return {};
}

Result<void> check_topology(const Target& target, const std::string& name) {
  if (target.topology == nullptr) return {};
  if (target.topology_node_of_node.size() != target.nodes) {
    return invalid_input(name + " has " + std::to_string(target.topology_node_of_node.size()) +
                         " nodes of the topology for " + std::to_string(target.nodes) + " nodes");
  }
  std::vector<bool> taken(target.topology->nodes(), false);
  for (const std::uint32_t node : target.topology_node_of_node) {
    if (node >= taken.size() || taken[node]) {
      return invalid_input(name + ": node " + std::to_string(node) + " of the topology " +
                           (node < taken.size() ? "is named twice" : "does not exist"));
    }
    taken[node] = true;
  }
  return {};
}

Result<void> check_placement(const Target& target, Rank ranks, const std::string& name) {
  if (target.node_of_rank.size() != static_cast<std::size_t>(ranks)) {
    return invalid_input(name + ": places " + std::to_string(target.node_of_rank.size()) + " ranks, the program has " +
                         std::to_string(ranks));
  }
  for (std::size_t rank = 0; rank < target.node_of_rank.size(); ++rank) {
    if (target.node_of_rank[rank] >= target.nodes) {
      return invalid_input(name + ": rank " + std::to_string(rank) + " is on node " +
                           std::to_string(target.node_of_rank[rank]) + ", but there are " +
                           std::to_string(target.nodes) + " nodes (numbered from 0)");
    }
  }
  return {};
}

}  // namespace

Result<void> check_target(const Target& target, Rank ranks, const std::string& name) {
  if (target.network == nullptr) return invalid_input(name + " has no network");
  if (target.nodes == 0) return invalid_input(name + " has no node");
  for (const auto& [what, size] :
       {std::pair{"processor counts", target.cores_of_node.size()}, std::pair{"speeds", target.speed_of_node.size()}}) {
    if (size != 0 && size != target.nodes) {
      return invalid_input(name + " has " + std::to_string(size) + " " + what + " for " + std::to_string(target.nodes) +
                           " nodes");
    }
  }
  const MemoryDemand& memory = target.memory;
  if (!(std::isfinite(memory.bytes_per_s) && memory.bytes_per_s >= 0) ||
      (memory.ran != nullptr && memory.ran->undisturbed.size() != static_cast<std::size_t>(ranks))) {
    return invalid_input(name + ": the memory demand must be bytes per second, 0 or more, and known of every rank");
  }
  if (Result<void> done = check_nodes(target, name); !done) return done;
  if (Result<void> done = check_topology(target, name); !done) return done;
  return check_placement(target, ranks, name);
}

Result<void> check_plan(const ProcedurePlan& plan, Rank ranks) {
  for (std::size_t v = 0; v < plan.scenarios.size(); ++v) {
    const Scenario& scenario = plan.scenarios[v];
    const std::string name = "scenario " + std::to_string(v + 1);
    std::set<std::uint32_t> changed;
    for (const ProcedureChange& change : scenario.changes) {
      if (!(change.share >= 0 && change.share <= 1)) {
        return invalid_input(name + ": the share of a procedure is a number from 0 to 1");
      }
      if (!changed.insert(change.procedure).second) {
        return invalid_input(name + " changes one procedure twice");
      }
      if (change.to == MoveTo::kRank && (scenario.rank < 0 || scenario.rank >= ranks)) {
        return invalid_input(name + ": rank " + std::to_string(scenario.rank) + " does not exist: the program has " +
                             std::to_string(ranks) + " ranks");
      }
    }
  }
  return {};
}

Bytes eager_up_to(const std::vector<Target>& targets) {
  Bytes limit = ~Bytes{0};
  for (const Target& target : targets) {
    const Localities localities(target);
    for (std::size_t locality = 0; locality < localities.count(); ++locality) {
      limit = std::min(limit, localities.path(locality).eager_limit_bytes);
    }
  }
  return limit;
}

bool any_first_message(const std::vector<Target>& targets) {
  return std::any_of(targets.begin(), targets.end(), [](const Target& target) {
    const Localities localities(target);
    bool any = false;
    for (std::size_t locality = 0; locality < localities.count(); ++locality) {
      any = any || localities.path(locality).first_message_s > 0;
    }
    return any;
  });
}

bool any_local_cost(const std::vector<Target>& targets) {
  return std::any_of(targets.begin(), targets.end(),
                     [](const Target& target) { return target.network->local().known(); });
}

}  // namespace lbf::engine
