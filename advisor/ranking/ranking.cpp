// Ranking, see ranking.h.
#include "advisor/ranking/ranking.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace lbf::advisor {
namespace {

class Ranker {
 public:
  Ranker(Ranking& ranking, const ReplayBatch& replay, const RankingOptions& options)
      : ranking_(ranking), replay_(replay), options_(options), start_s_(options.processor_time_s()) {}

  // The first pass is always made: an answer of one batch is better than none.
  Result<void> run() {
    std::vector<Ranked*> waiting;
    for (Ranked& one : ranking_.ranked) waiting.push_back(&one);
    std::stable_sort(waiting.begin(), waiting.end(), [&](const Ranked* a, const Ranked* b) {
      return value(*a, a->bound.estimate_s) < value(*b, b->bound.estimate_s);
    });
    std::size_t next = 0;
    while (next < waiting.size()) {
      if (ranking_.passes > 0 && !another_pass_fits()) break;
      std::vector<Ranked*> batch;
      for (; next < waiting.size() && batch.size() < options_.targets_a_pass; ++next) {
        if (!is_ruled_out(*waiting[next])) batch.push_back(waiting[next]);
      }
      if (batch.empty()) continue;
      if (Result<void> done = replay_batch(batch); !done) return done;
      if (options_.progress) options_.progress(static_cast<double>(next) / static_cast<double>(waiting.size()));
    }
    // What is left may be out of the question by now.
    for (; next < waiting.size(); ++next) is_ruled_out(*waiting[next]);
    ranking_.spent_s += spent_s();
    return {};
  }

 private:
  double value(const Ranked& one, Seconds time_s) const {
    return options_.objective.value(time_s, one.candidate.node_hours(time_s));
  }
  Seconds spent_s() const { return options_.processor_time_s() - start_s_; }
  bool another_pass_fits() const { return spent_s() + longest_pass_s_ <= options_.budget_s; }

  bool is_ruled_out(Ranked& one) const {
    const Seconds least_s = one.bound.at_least_s();
    const bool beyond_limits = !options_.objective.allows(least_s, one.candidate.node_hours(least_s));
    if (!beyond_limits && !(value(one, least_s) > best_)) return false;
    one.verdict = Verdict::kRuledOut;
    return true;
  }

  Result<void> replay_batch(const std::vector<Ranked*>& batch) {
    const Seconds before_s = options_.processor_time_s();
    std::vector<engine::Target> targets;
    for (const Ranked* one : batch) targets.push_back(one->candidate.target);
    Result<std::vector<Replayed>> replayed = replay_(targets);
    if (!replayed) return replayed.error();
    ++ranking_.passes;
    longest_pass_s_ = std::max(longest_pass_s_, options_.processor_time_s() - before_s);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      Ranked& one = *batch[i];
      one.take((*replayed)[i]);
      const bool allowed = options_.objective.allows(one.time_s, one.node_hours());
      if (one.verdict == Verdict::kReplayed && allowed) best_ = std::min(best_, value(one, one.time_s));
    }
    return {};
  }

  Ranking& ranking_;
  const ReplayBatch& replay_;
  const RankingOptions& options_;
  Seconds start_s_;
  Seconds longest_pass_s_ = 0;
  double best_ = std::numeric_limits<double>::infinity();
};

}  // namespace

void Ranked::take(const Replayed& there) {
  time_s = there.time_s;
  why_stuck = there.why_stuck;
  exchange_percent = there.exchange_percent;
  verdict = why_stuck.empty() ? Verdict::kReplayed : Verdict::kStuck;
}

std::size_t Ranking::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(ranked.begin(), ranked.end(), [&](const Ranked& one) { return one.verdict == verdict; }));
}

void put_in_order(std::vector<Ranked>& ranked, const Objective& objective) {
  const auto place = [&](const Ranked& one) {
    switch (one.verdict) {
      case Verdict::kReplayed:
        return objective.allows(one.time_s, one.node_hours()) ? 0 : 1;
      case Verdict::kStuck:
        return 2;
      case Verdict::kDeferred:
        return 3;
      case Verdict::kRuledOut:
        return 4;
      case Verdict::kUnknown:
        break;
    }
    return 5;
  };
  const auto value = [&](const Ranked& one) {
    const Seconds time_s = one.verdict == Verdict::kReplayed ? one.time_s : one.bound.estimate_s;
    return objective.value(time_s, one.candidate.node_hours(time_s));
  };
  std::stable_sort(ranked.begin(), ranked.end(), [&](const Ranked& a, const Ranked& b) {
    return place(a) != place(b) ? place(a) < place(b) : value(a) < value(b);
  });
  std::vector<Outcome> outcomes;
  for (const Ranked& one : ranked) {
    if (one.verdict == Verdict::kReplayed) outcomes.push_back({one.time_s, one.node_hours()});
  }
  const std::vector<bool> front = pareto_front(outcomes);
  std::size_t replayed = 0;
  for (Ranked& one : ranked) {
    one.on_front = one.verdict == Verdict::kReplayed && front[replayed];
    if (one.verdict == Verdict::kReplayed) ++replayed;
  }
}

Result<Ranking> rank(std::vector<Candidate> candidates, const CommGraph& graph, const ReplayBatch& replay,
                     const RankingOptions& options) {
  Ranking ranking;
  for (Candidate& candidate : candidates) {
    Ranked one;
    one.bound = bound_of(candidate.target, graph, options.chain_messages);
    one.candidate = std::move(candidate);
    ranking.ranked.push_back(std::move(one));
  }
  if (Result<void> done = Ranker(ranking, replay, options).run(); !done) return done.error();
  put_in_order(ranking.ranked, options.objective);
  return ranking;
}

}  // namespace lbf::advisor
