// Local search on the real objective, see ranking.h.
#include <algorithm>
#include <numeric>
#include <utility>

#include "advisor/mapping/load.h"
#include "advisor/mapping/local_search.h"
#include "advisor/ranking/ranking.h"

namespace lbf::advisor {
namespace {

// Below this share a gain is rounding.
constexpr double kSmallestReplayGain = 1e-4;
constexpr std::uint32_t kPassesWithoutGain = 2;

// What the cheap objective likes best and, where it matters, what takes most from the busiest node, in turns.
std::vector<Step> steps_worth_a_replay(const MappingProblem& problem, const std::vector<std::uint32_t>& mapping,
                                       std::size_t count) {
  const std::vector<Step> nearer = best_steps(problem, mapping, {}, count);
  if (!load_matters(problem)) return nearer;
  const std::vector<Step> balancing = balancing_steps(problem, mapping, count);
  std::vector<Step> both;
  const auto add = [&](const std::vector<Step>& from, std::size_t i) {
    if (i >= from.size()) return;
    const Step& step = from[i];
    const bool known = std::any_of(both.begin(), both.end(), [&](const Step& other) {
      const bool same = other.rank == step.rank && other.other == step.other && other.to == step.to;
      return same || (other.rank == step.other && other.other == step.rank);
    });
    if (!known) both.push_back(step);
  };
  for (std::size_t i = 0; i < count && both.size() < count; ++i) {
    add(balancing, i);
    add(nearer, i);
  }
  if (both.size() > count) both.resize(count);
  return both;
}

class ReplaySearch {
 public:
  ReplaySearch(Ranking& ranking, const SearchSpace& space, const CommGraph& graph, const ReplayBatch& replay,
               const RankingOptions& options)
      : ranking_(ranking), space_(space), graph_(graph), replay_(replay), options_(options) {}

  Result<void> run() {
    const Ranked* const start = first();
    if (start == nullptr || start->candidate.target.nodes < 2) return {};
    best_ = *start;
    const NodeSet set = best_.candidate.set;
    const MappingProblem problem(graph_, bare_target(space_.cluster, set, space_.options),
                                 mapping_capacities(space_.cluster, set, space_.options));
    std::vector<std::uint32_t> mapping = best_.candidate.target.node_of_rank;
    const Seconds start_s = options_.processor_time_s();
    Seconds pass_s = 0;
    std::uint32_t without_gain = 0;
    std::size_t offset = 0;
    bool found = false;
    while (without_gain < kPassesWithoutGain && spent(start_s) + pass_s <= options_.budget_s) {
      const std::vector<Step> steps = steps_worth_a_replay(problem, mapping, offset + options_.targets_a_pass);
      if (steps.size() <= offset) break;
      const Seconds before_s = options_.processor_time_s();
      Result<bool> better = try_steps(set, {steps.begin() + static_cast<std::ptrdiff_t>(offset), steps.end()}, mapping);
      if (!better) return better.error();
      pass_s = options_.processor_time_s() - before_s;
      found = found || *better;
      without_gain = *better ? 0 : without_gain + 1;
      offset = *better ? 0 : steps.size();
    }
    ranking_.spent_s += options_.processor_time_s() - start_s;
    if (!found) return {};
    best_.searched = true;
    ranking_.ranked.push_back(best_);
    put_in_order(ranking_.ranked, options_.objective);
    return {};
  }

 private:
  const Ranked* first() const {
    if (ranking_.ranked.empty()) return nullptr;
    const Ranked& one = ranking_.ranked.front();
    const bool good = one.verdict == Verdict::kReplayed && options_.objective.allows(one.time_s, one.node_hours());
    return good ? &one : nullptr;
  }
  Seconds spent(Seconds start_s) const { return ranking_.spent_s + options_.processor_time_s() - start_s; }
  double value(const Candidate& candidate, Seconds time_s) const {
    return options_.objective.value(time_s, candidate.node_hours(time_s));
  }

  // One pass over the trace with one target for each step; the best one becomes the mapping if it is better.
  Result<bool> try_steps(const NodeSet& set, const std::vector<Step>& steps, std::vector<std::uint32_t>& mapping) {
    std::vector<std::vector<std::uint32_t>> mappings;
    std::vector<Candidate> candidates;
    std::vector<engine::Target> targets;
    for (const Step& step : steps) {
      mappings.push_back(mapping);
      apply(step, mappings.back());
      candidates.push_back(mapped_candidate(space_.cluster, set, space_.options, mappings.back()));
      targets.push_back(candidates.back().target);
    }
    Result<std::vector<Replayed>> replayed = replay_(targets);
    if (!replayed) return replayed.error();
    ++ranking_.passes;
    bool better = false;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Seconds time_s = (*replayed)[i].time_s;
      const double now = value(best_.candidate, best_.time_s);
      const bool can_be =
          (*replayed)[i].why_stuck.empty() && options_.objective.allows(time_s, candidates[i].node_hours(time_s));
      if (!can_be || !(value(candidates[i], time_s) < now * (1 - kSmallestReplayGain))) continue;
      best_.candidate = candidates[i];
      best_.take((*replayed)[i]);
      best_.bound = bound_of(targets[i], graph_, options_.chain_messages);
      mapping = mappings[i];
      better = true;
    }
    return better;
  }

  Ranking& ranking_;
  const SearchSpace& space_;
  const CommGraph& graph_;
  const ReplayBatch& replay_;
  const RankingOptions& options_;
  Ranked best_;
};

}  // namespace

std::vector<std::uint32_t> mapping_capacities(const Cluster& cluster, const NodeSet& set,
                                              const CandidateOptions& options) {
  std::uint64_t processors = 0;
  for (const std::uint32_t node : set.nodes) processors += cluster.nodes[node].cores();
  std::vector<std::uint32_t> capacities;
  for (const std::uint32_t node : set.nodes) {
    const std::uint64_t cores = cluster.nodes[node].cores();
    const std::uint64_t share = (cores * static_cast<std::uint64_t>(options.ranks) + processors - 1) / processors;
    capacities.push_back(
        std::min(capacity_of(cluster.nodes[node], options), static_cast<std::uint32_t>(std::max(cores, share))));
  }
  // Where memory keeps nodes below their share, the others take the rest.
  std::uint64_t room = std::accumulate(capacities.begin(), capacities.end(), std::uint64_t{0});
  for (std::size_t i = 0; room < static_cast<std::uint64_t>(options.ranks) && i < capacities.size(); ++i) {
    const std::uint64_t missing = static_cast<std::uint64_t>(options.ranks) - room;
    const std::uint64_t more =
        std::min<std::uint64_t>(missing, capacity_of(cluster.nodes[set.nodes[i]], options) - capacities[i]);
    capacities[i] += static_cast<std::uint32_t>(more);
    room += more;
  }
  return capacities;
}

Result<void> search_by_replay(Ranking& ranking, const SearchSpace& space, const CommGraph& graph,
                              const ReplayBatch& replay, const RankingOptions& options) {
  return ReplaySearch(ranking, space, graph, replay, options).run();
}

}  // namespace lbf::advisor
