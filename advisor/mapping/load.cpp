// Load, see load.h.
#include "advisor/mapping/load.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace lbf::advisor {
namespace {

// Process times that are nearer to each other than this are alike: what is measured is no more exact.
constexpr double kAlikeWithin = 0.01;
// Below this share of the busiest node's time a change is rounding.
constexpr double kSmallestLoadGain = 1e-9;

// Of one node: the sum of its ranks' process times, and the two longest ones.
struct Work {
  Seconds sum_s = 0;
  Seconds longest_s = 0;
  Seconds second_s = 0;

  void add(Seconds process_s) {
    sum_s += process_s;
    second_s = std::max(second_s, std::min(longest_s, process_s));
    longest_s = std::max(longest_s, process_s);
  }
  // Of one rank, once: a third longest is not known.
  void take_off(Seconds process_s) {
    sum_s -= process_s;
    if (process_s >= longest_s) longest_s = second_s;
  }
};

Seconds time_of(const engine::Target& target, std::uint32_t node, const Work& work) {
  return std::max(work.sum_s / target.cores_of(node), work.longest_s) / target.speed_of(node);
}

class Loads {
 public:
  Loads(const MappingProblem& problem, std::span<const std::uint32_t> node_of_rank)
      : problem_(problem), ranks_of_(problem.nodes()), work_(problem.nodes()), time_s_(problem.nodes(), 0) {
    for (Rank rank = 0; rank < problem.ranks(); ++rank) {
      const std::uint32_t node = node_of_rank[static_cast<std::size_t>(rank)];
      ranks_of_[node].push_back(rank);
      work_[node].add(problem.graph().process_s(rank));
    }
    for (std::uint32_t node = 0; node < problem.nodes(); ++node) time_s_[node] = with(node, -1, -1);
  }

  // Time of a node without rank `out`, which is on it, and with rank `in` (-1: none). Not by its ranks: it is asked for
  // each pair of two nodes.
  Seconds with(std::uint32_t node, Rank out, Rank in) const {
    Work work = work_[node];
    if (out >= 0) work.take_off(problem_.graph().process_s(out));
    if (in >= 0) work.add(problem_.graph().process_s(in));
    return time_of(problem_.target(), node, work);
  }
  std::uint32_t busiest() const {
    return static_cast<std::uint32_t>(std::max_element(time_s_.begin(), time_s_.end()) - time_s_.begin());
  }
  // The longest of all nodes but two.
  Seconds longest_but(std::uint32_t a, std::uint32_t b) const {
    Seconds longest_s = 0;
    for (std::uint32_t node = 0; node < time_s_.size(); ++node) {
      if (node != a && node != b) longest_s = std::max(longest_s, time_s_[node]);
    }
    return longest_s;
  }
  Seconds time_s(std::uint32_t node) const { return time_s_[node]; }
  const std::vector<Rank>& ranks_of(std::uint32_t node) const { return ranks_of_[node]; }

 private:
  const MappingProblem& problem_;
  std::vector<std::vector<Rank>> ranks_of_;
  std::vector<Work> work_;
  std::vector<Seconds> time_s_;
};

}  // namespace

bool load_matters(const MappingProblem& problem) {
  const engine::Target& target = problem.target();
  bool shared = false;
  bool speeds_differ = false;
  for (std::uint32_t node = 0; node < problem.nodes(); ++node) {
    shared = shared || problem.capacity(node) > target.cores_of(node);
    speeds_differ = speeds_differ || target.speed_of(node) != target.speed_of(0);
  }
  if (!shared && !speeds_differ) return false;
  Seconds least_s = std::numeric_limits<double>::infinity();
  Seconds most_s = 0;
  for (Rank rank = 0; rank < problem.ranks(); ++rank) {
    least_s = std::min(least_s, problem.graph().process_s(rank));
    most_s = std::max(most_s, problem.graph().process_s(rank));
  }
  return most_s - least_s > kAlikeWithin * most_s;
}

Seconds busiest_s(const MappingProblem& problem, std::span<const std::uint32_t> node_of_rank) {
  const Loads loads(problem, node_of_rank);
  return loads.time_s(loads.busiest());
}

std::vector<std::uint32_t> balanced(const MappingProblem& problem) {
  const CommGraph& graph = problem.graph();
  std::vector<Rank> order(static_cast<std::size_t>(problem.ranks()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](Rank a, Rank b) { return graph.process_s(a) > graph.process_s(b); });
  std::vector<std::uint32_t> node_of_rank(order.size(), 0);
  std::vector<char> placed(order.size(), 0);
  std::vector<Work> work(problem.nodes());
  std::vector<std::uint32_t> filled(problem.nodes(), 0);
  for (const Rank rank : order) {
    std::vector<Bytes> exchanged(problem.nodes(), 0);
    for (const Arc& arc : graph.arcs(rank)) {
      const auto peer = static_cast<std::size_t>(arc.peer);
      if (placed[peer] != 0) exchanged[node_of_rank[peer]] += arc.bytes();
    }
    const Seconds process_s = graph.process_s(rank);
    const auto with_it = [&](std::uint32_t node) {
      Work then = work[node];
      then.add(process_s);
      return then;
    };
    std::uint32_t best = problem.nodes();
    Seconds best_s = std::numeric_limits<double>::infinity();
    for (std::uint32_t node = 0; node < problem.nodes(); ++node) {
      if (filled[node] == problem.capacity(node)) continue;
      const Seconds time_s = time_of(problem.target(), node, with_it(node));
      const bool as_good = best < problem.nodes() && time_s <= best_s * (1 + kAlikeWithin);
      if (time_s < best_s * (1 - kAlikeWithin) || best == problem.nodes() ||
          (as_good && exchanged[node] > exchanged[best])) {
        best = node;
        best_s = time_s;
      }
    }
    const auto at = static_cast<std::size_t>(rank);
    node_of_rank[at] = best;
    placed[at] = 1;
    work[best] = with_it(best);
    ++filled[best];
  }
  return node_of_rank;
}

std::vector<Step> balancing_steps(const MappingProblem& problem, const std::vector<std::uint32_t>& node_of_rank,
                                  std::size_t count) {
  const Loads loads(problem, node_of_rank);
  const std::uint32_t from = loads.busiest();
  const Seconds now_s = loads.time_s(from);
  std::vector<Step> steps;
  for (std::uint32_t to = 0; to < problem.nodes(); ++to) {
    if (to == from) continue;
    const Seconds others_s = loads.longest_but(from, to);
    const auto consider = [&](Rank rank, Rank other) {
      const Seconds then_s = std::max({others_s, loads.with(from, rank, other), loads.with(to, other, rank)});
      if (then_s < now_s * (1 - kSmallestLoadGain)) steps.push_back({rank, other, to, then_s - now_s});
    };
    const bool has_room = loads.ranks_of(to).size() < problem.capacity(to);
    for (const Rank rank : loads.ranks_of(from)) {
      if (has_room) consider(rank, -1);
      for (const Rank other : loads.ranks_of(to)) consider(rank, other);
    }
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.change < b.change; });
  if (steps.size() > count) steps.resize(count);
  return steps;
}

}  // namespace lbf::advisor
