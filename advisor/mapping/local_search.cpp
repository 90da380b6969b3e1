// Local search, see local_search.h.
#include "advisor/mapping/local_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <utility>

namespace lbf::advisor {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// A sequence of exchanges that does not pay off after so many is taken back.
constexpr std::size_t kLongestDetour = 24;
// Below this share of the cost at the start a gain is rounding: steps for it might go round in circles.
constexpr double kSmallestGain = 1e-9;

class Search {
 public:
  Search(const MappingProblem& problem, std::vector<std::uint32_t>& node_of_rank, std::uint64_t arcs)
      : problem_(problem),
        node_of_rank_(node_of_rank),
        arcs_left_(arcs),
        smallest_gain_(kSmallestGain * problem.cost(node_of_rank)),
        ranks_of_node_(problem.nodes()) {
    for (Rank rank = 0; rank < problem.ranks(); ++rank) ranks_of_node_[at(rank)].push_back(rank);
  }

  std::uint32_t at(Rank rank) const { return node_of_rank_[static_cast<std::size_t>(rank)]; }
  std::uint32_t filled(std::uint32_t node) const { return static_cast<std::uint32_t>(ranks_of_node_[node].size()); }
  const std::vector<Rank>& ranks_of(std::uint32_t node) const { return ranks_of_node_[node]; }
  bool out_of_budget() const { return arcs_left_ == 0; }
  double smallest_gain() const { return smallest_gain_; }

  // Change of the cost when `rank` goes to `to`; `except` stays out of it.
  double move_change(Rank rank, std::uint32_t to, Rank except = -1) {
    const auto arcs = problem_.graph().arcs(rank);
    arcs_left_ -= std::min<std::uint64_t>(arcs_left_, arcs.size() + 1);
    const std::uint32_t from = at(rank);
    double change = 0;
    for (std::size_t arc = 0; arc < arcs.size(); ++arc) {
      if (arcs[arc].peer == except) continue;
      const std::uint32_t peer = at(arcs[arc].peer);
      change += problem_.cost(rank, arc, to, peer) - problem_.cost(rank, arc, from, peer);
    }
    return change;
  }
  // What two ranks exchange with each other costs the same afterwards.
  double swap_change(Rank a, Rank b) { return move_change(a, at(b), b) + move_change(b, at(a), a); }

  // The best step that takes `rank` to node `to`; `locked` ranks are not exchanged.
  std::optional<Step> best_step_to(Rank rank, std::uint32_t to, const std::vector<char>& locked) {
    if (to == at(rank)) return std::nullopt;
    std::optional<Step> best;
    const auto consider = [&](Step step) {
      if (!best || step.change < best->change) best = step;
    };
    const double alone = move_change(rank, to);
    if (filled(to) < problem_.capacity(to)) consider({rank, -1, to, alone});
    for (const Rank other : ranks_of_node_[to]) {
      if (locked[static_cast<std::size_t>(other)] != 0 || out_of_budget()) continue;
      consider({rank, other, to, swap_change(rank, other)});
    }
    return best;
  }

  // The best step of `rank` to a node on which it has a peer, or to the one with the most room.
  std::optional<Step> best_step(Rank rank, const std::vector<char>& locked) {
    std::optional<Step> best;
    for (const std::uint32_t node : nodes_to_try(rank)) {
      const std::optional<Step> step = best_step_to(rank, node, locked);
      if (step && (!best || step->change < best->change)) best = step;
    }
    return best;
  }

  void take(const Step& step) {
    const std::uint32_t from = at(step.rank);
    relocate(step.rank, step.to);
    if (step.other >= 0) relocate(step.other, from);
  }
  void undo(const Step& step, std::uint32_t from) {
    relocate(step.rank, from);
    if (step.other >= 0) relocate(step.other, step.to);
  }

  // Steps that pay at once, rank by rank, until none does.
  double descend(double cost) {
    const std::vector<char> none(node_of_rank_.size(), 0);
    for (bool better = true; better && !out_of_budget();) {
      better = false;
      for (Rank rank = 0; rank < problem_.ranks() && !out_of_budget(); ++rank) {
        const std::optional<Step> step = best_step(rank, none);
        if (!step || step->change >= -smallest_gain_) continue;
        take(*step);
        cost += step->change;
        better = true;
      }
    }
    return cost;
  }

  // Kernighan and Lin's sequence: always the best step of ranks that did not move yet, for the worse too; the
  // best prefix of it stays. The gain (0: nothing stays).
  double detour() {
    std::vector<char> locked(node_of_rank_.size(), 0);
    std::vector<std::pair<Step, std::uint32_t>> taken;
    double sum = 0;
    double best_sum = 0;
    std::size_t best_length = 0;
    while (taken.size() < best_length + kLongestDetour && !out_of_budget()) {
      std::optional<Step> best;
      for (Rank rank = 0; rank < problem_.ranks() && !out_of_budget(); ++rank) {
        if (locked[static_cast<std::size_t>(rank)] != 0 || !has_far_peer(rank)) continue;
        const std::optional<Step> step = best_step(rank, locked);
        if (step && (!best || step->change < best->change)) best = step;
      }
      if (!best) break;
      taken.emplace_back(*best, at(best->rank));
      take(*best);
      locked[static_cast<std::size_t>(best->rank)] = 1;
      if (best->other >= 0) locked[static_cast<std::size_t>(best->other)] = 1;
      sum += best->change;
      if (sum < best_sum - smallest_gain_) {
        best_sum = sum;
        best_length = taken.size();
      }
    }
    for (std::size_t i = taken.size(); i > best_length; --i) undo(taken[i - 1].first, taken[i - 1].second);
    return -best_sum;
  }

 private:
  bool has_far_peer(Rank rank) const {
    const auto arcs = problem_.graph().arcs(rank);
    return std::any_of(arcs.begin(), arcs.end(), [&](const Arc& arc) { return at(arc.peer) != at(rank); });
  }

  std::vector<std::uint32_t> nodes_to_try(Rank rank) const {
    constexpr std::size_t kMostNodes = 16;
    std::vector<std::uint32_t> nodes;
    for (const Arc& arc : problem_.graph().arcs(rank)) {
      const std::uint32_t node = at(arc.peer);
      if (node == at(rank) || std::find(nodes.begin(), nodes.end(), node) != nodes.end()) continue;
      nodes.push_back(node);
      if (nodes.size() == kMostNodes) break;
    }
    return nodes;
  }

  void relocate(Rank rank, std::uint32_t to) {
    auto& list = ranks_of_node_[at(rank)];
    list.erase(std::find(list.begin(), list.end(), rank));
    ranks_of_node_[to].push_back(rank);
    node_of_rank_[static_cast<std::size_t>(rank)] = to;
  }

  const MappingProblem& problem_;
  std::vector<std::uint32_t>& node_of_rank_;
  std::uint64_t arcs_left_;
  double smallest_gain_;
  std::vector<std::vector<Rank>> ranks_of_node_;
};

}  // namespace

void respect_capacities(const MappingProblem& problem, std::vector<std::uint32_t>& node_of_rank) {
  Search search(problem, node_of_rank, ~std::uint64_t{0});
  for (std::uint32_t node = 0; node < problem.nodes(); ++node) {
    while (search.filled(node) > problem.capacity(node)) {
      Step best{-1, -1, 0, kInfinite};
      for (std::uint32_t to = 0; to < problem.nodes(); ++to) {
        if (search.filled(to) >= problem.capacity(to)) continue;
        for (const Rank rank : search.ranks_of(node)) {
          const double change = search.move_change(rank, to);
          if (change < best.change) best = {rank, -1, to, change};
        }
      }
      if (best.rank < 0) return;  // no room: broken promise of the caller
      search.take(best);
    }
  }
}

double improve(const MappingProblem& problem, std::vector<std::uint32_t>& node_of_rank, SearchLimits limits) {
  Search search(problem, node_of_rank, limits.arcs);
  double cost = problem.cost(node_of_rank);
  while (!search.out_of_budget()) {
    cost = search.descend(cost);
    const double gain = search.detour();
    if (!(gain > search.smallest_gain())) break;
    cost -= gain;
  }
  return problem.cost(node_of_rank);
}

std::vector<Step> best_steps(const MappingProblem& problem, const std::vector<std::uint32_t>& node_of_rank,
                             const std::vector<Rank>& ranks, std::size_t count) {
  std::vector<std::uint32_t> copy = node_of_rank;
  Search search(problem, copy, SearchLimits{}.arcs);
  const std::vector<char> none(node_of_rank.size(), 0);
  std::vector<Rank> movers = ranks;
  if (movers.empty()) {
    movers.resize(static_cast<std::size_t>(problem.ranks()));
    std::iota(movers.begin(), movers.end(), 0);
  }
  const auto pair = [](Rank a, Rank b) { return static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b); };
  std::vector<Step> steps;
  std::unordered_set<std::uint64_t> exchanged;  // pairs of `steps`: the same two the other way round are the same step
  for (const Rank rank : movers) {
    for (std::uint32_t node = 0; node < problem.nodes() && !search.out_of_budget(); ++node) {
      const std::optional<Step> step = search.best_step_to(rank, node, none);
      if (!step) continue;
      if (step->other >= 0) {
        if (exchanged.contains(pair(step->other, step->rank))) continue;
        exchanged.insert(pair(step->rank, step->other));
      }
      steps.push_back(*step);
    }
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.change < b.change; });
  if (steps.size() > count) steps.resize(count);
  return steps;
}

void apply(const Step& step, std::vector<std::uint32_t>& node_of_rank) {
  const std::uint32_t from = node_of_rank[static_cast<std::size_t>(step.rank)];
  node_of_rank[static_cast<std::size_t>(step.rank)] = step.to;
  if (step.other >= 0) node_of_rank[static_cast<std::size_t>(step.other)] = from;
}

}  // namespace lbf::advisor
