#include "tools/report/usable_nodes.h"

#include <algorithm>
#include <cstdint>

#include "report/advice.h"
#include "tools/support/inventory_program.h"

namespace lbf::tools {
namespace {

bool needs_to_know(const report::Step& step) {
  return !step.partition.empty() && !step.usable_nodes && advise(step).beyond != nullptr;
}

std::uint64_t usable_nodes_of(const advisor::Cluster& cluster, const advisor::Partition& partition) {
  if (!partition.up) return 0;
  const auto takes_jobs = [&](std::uint32_t node) { return cluster.nodes[node].up; };
  const auto count = static_cast<std::uint64_t>(std::ranges::count_if(partition.nodes, takes_jobs));
  return partition.max_nodes > 0 ? std::min<std::uint64_t>(count, partition.max_nodes) : count;
}

}  // namespace

void find_usable_nodes(std::span<report::Step> steps, advisor::ClusterSource& slurm) {
  if (std::ranges::none_of(steps, needs_to_know)) return;
  const Result<advisor::Cluster> cluster = slurm.read();
  if (!cluster) return;
  for (report::Step& step : steps) {
    if (!needs_to_know(step) || (!cluster->cluster_name.empty() && cluster->cluster_name != step.cluster)) continue;
    if (const advisor::Partition* const partition = cluster->find_partition(step.partition))
      step.usable_nodes = usable_nodes_of(*cluster, *partition);
  }
}

void find_usable_nodes(std::span<report::Step> steps, Seconds patience_s) {
  advisor::SlurmSourceOptions options;
  options.program = inventory_program();
  options.cache_file = advisor::cluster_cache_file();
  constexpr Seconds kCacheForS = 60;  // a node that has just been drained starts nothing
  options.cache_for_s = kCacheForS;
  options.patience_s = patience_s;
  find_usable_nodes(steps, *advisor::slurm_cluster(std::move(options)));
}

}  // namespace lbf::tools
