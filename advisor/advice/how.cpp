// Flags and host files, see how.h.
#include "advisor/advice/how.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hostlist.h"

namespace lbf::advisor {
namespace {

// The most ranks of a node: Slurm gives each node so many processors, and deals the ranks to them as the
// distribution says. 0: a node has fewer.
std::uint32_t ranks_per_node(const engine::Target& target) {
  const std::vector<std::uint32_t> counts = ranks_of_nodes(target);
  const std::uint32_t most = *std::max_element(counts.begin(), counts.end());
  return most <= least_cores(target) ? most : 0;
}

std::string nodes_of(const Candidate& candidate) {
  return fmt::format("{} node{}", candidate.target.nodes, candidate.target.nodes == 1 ? "" : "s");
}

std::string layout_of(const Candidate& candidate) {
  std::string out;
  if (!candidate.set.constraint.empty()) out += " (" + candidate.set.constraint + ")";
  if (candidate.target.nodes > 1) out += ", " + (candidate.is_map() ? "computed mapping" : candidate.target.placement);
  if (const std::uint32_t threads = candidate.target.threads; threads > 0)
    out += fmt::format(", {} thread{}", threads, threads == 1 ? "" : "s");
  return out;
}

}  // namespace

std::string srun_flags(const Candidate& candidate, const std::string& host_file) {
  const engine::Target& target = candidate.target;
  std::string flags;
  if (!candidate.set.partition.empty()) flags += fmt::format("--partition={} ", candidate.set.partition);
  flags += fmt::format("-N{} -n{}", target.nodes, target.node_of_rank.size());
  if (candidate.needs_host_file()) {
    flags += " --distribution=arbitrary --nodelist=" + host_file;
  } else {
    if (target.nodes > 1) {
      flags += " --distribution=" + target.placement;
      // -N and -n alone leave to Slurm how many each node gets.
      const std::uint32_t most = candidate.overcommits ? 0 : ranks_per_node(target);
      if (most > 0) flags += fmt::format(" --ntasks-per-node={}", most);
    }
    if (!candidate.set.constraint.empty()) flags += " --constraint=" + candidate.set.constraint;
    if (candidate.set.by_name) flags += " --nodelist=" + hostlist(candidate.node_names);
  }
  if (candidate.overcommits) {
    flags += " --overcommit";
    // Alone it is one processor for each node; with -c it is this many for each node, not for each task.
    // Slurm refuses more than the smallest node has.
    if (least_cores(target) > 1) flags += fmt::format(" --cpus-per-task={}", least_cores(target));
  } else if (target.threads > 0) {
    flags += fmt::format(" --cpus-per-task={}", target.threads);
  }
  if (target.threads > 0) flags += fmt::format(" --export=ALL,OMP_NUM_THREADS={}", target.threads);
  return flags;
}

std::string srun_flags_of_what_ran(const Candidate& candidate) {
  if (!candidate.needs_host_file()) return srun_flags(candidate, {});
  const engine::Target& target = candidate.target;
  std::string flags;
  if (!candidate.set.partition.empty()) flags += fmt::format("--partition={} ", candidate.set.partition);
  flags += fmt::format("-N{} -n{}", target.nodes, target.node_of_rank.size());
  return candidate.overcommits ? flags + " --overcommit" : flags;
}

std::string host_file_of(const Candidate& candidate) {
  std::string text;
  if (!candidate.needs_host_file()) return text;
  for (const std::uint32_t node : candidate.target.node_of_rank) text += candidate.node_names[node] + "\n";
  return text;
}

std::string describe(const Candidate& candidate) {
  const engine::Target& target = candidate.target;
  std::string out = nodes_of(candidate);
  if (!candidate.set.partition.empty()) out += " of " + candidate.set.partition;
  out += layout_of(candidate);
  if (target.network != nullptr) out += ", " + target.network->name();
  return out;
}

std::string describe_briefly(const Candidate& candidate) {
  return nodes_of(candidate) + layout_of(candidate);
}

std::string ranges(const std::vector<Rank>& ascending, std::size_t most) {
  std::string out;
  std::size_t count = 0;
  for (std::size_t i = 0; i < ascending.size();) {
    std::size_t end = i + 1;
    while (end < ascending.size() && ascending[end] == ascending[end - 1] + 1) ++end;
    if (count++ == most) return out + ",...";
    if (!out.empty()) out += ',';
    out += fmt::format("{}", ascending[i]);
    if (end - i > 1) out += fmt::format("-{}", ascending[end - 1]);
    i = end;
  }
  return out;
}

}  // namespace lbf::advisor
