// Flags and host files, see how.h.
#include "advisor/advice/how.h"

#include <fmt/format.h>

#include <algorithm>

#include "advisor/report/hostlist.h"

namespace lbf::advisor {
namespace {

// The ranks of each node, where all nodes but the last ones have as many as the first.
std::uint32_t even_ranks_per_node(const Target& target) {
  std::vector<std::uint32_t> counts(target.nodes, 0);
  for (const std::uint32_t node : target.node_of_rank) ++counts[node];
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  return *most - *least <= 1 ? *most : 0;
}

}  // namespace

std::string srun_flags(const Candidate& candidate, const std::string& host_file) {
  const Target& target = candidate.target;
  std::string flags;
  if (!candidate.set.partition.empty()) flags += fmt::format("--partition={} ", candidate.set.partition);
  flags += fmt::format("-N{} -n{}", target.nodes, target.node_of_rank.size());
  if (candidate.is_map()) {
    flags += " --distribution=arbitrary --nodelist=" + host_file;
  } else {
    if (target.nodes > 1) {
      flags += " --distribution=" + target.placement;
      // -N and -n alone leave to Slurm how many each node gets.
      const std::uint32_t even = candidate.overcommits ? 0 : even_ranks_per_node(target);
      if (even > 0) flags += fmt::format(" --ntasks-per-node={}", even);
    }
    if (!candidate.set.constraint.empty()) flags += " --constraint=" + candidate.set.constraint;
    if (candidate.set.by_name) flags += " --nodelist=" + report::hostlist(candidate.node_names);
  }
  if (candidate.overcommits) {
    flags += " --overcommit";
    // Alone it is one processor for each node; with -c it is this many for each node, not for each task.
    if (target.cores_of(0) > 1) flags += fmt::format(" --cpus-per-task={}", target.cores_of(0));
  }
  return flags;
}

std::string srun_flags_of_what_ran(const Candidate& candidate) {
  if (!candidate.is_map()) return srun_flags(candidate, {});
  const Target& target = candidate.target;
  std::string flags;
  if (!candidate.set.partition.empty()) flags += fmt::format("--partition={} ", candidate.set.partition);
  flags += fmt::format("-N{} -n{}", target.nodes, target.node_of_rank.size());
  return candidate.overcommits ? flags + " --overcommit" : flags;
}

std::string host_file_of(const Candidate& candidate) {
  std::string text;
  if (!candidate.is_map()) return text;
  for (const std::uint32_t node : candidate.target.node_of_rank) text += candidate.node_names[node] + "\n";
  return text;
}

std::string describe(const Candidate& candidate, bool in_full) {
  const Target& target = candidate.target;
  std::string out = fmt::format("{} node{}", target.nodes, target.nodes == 1 ? "" : "s");
  if (in_full && !candidate.set.partition.empty()) out += " of " + candidate.set.partition;
  if (!candidate.set.constraint.empty()) out += " (" + candidate.set.constraint + ")";
  if (target.nodes > 1) out += ", " + (candidate.is_map() ? "computed mapping" : target.placement);
  if (in_full && target.network != nullptr) out += ", " + target.network->name();
  return out;
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
