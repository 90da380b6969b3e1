// Advice, see advice.h.
#include "advisor/advice/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "advisor/advice/how.h"
#include "advisor/advice/reasons.h"

namespace lbf::advisor {
namespace {

bool counts(const Ranked& one, const Objective& objective) {
  return one.verdict == Verdict::kReplayed && objective.allows(one.time_s, one.node_hours());
}

double value_of(const Ranked& one, const Objective& objective) {
  return objective.value(one.time_s, one.node_hours());
}

// The first one; a simpler one that is as good as that.
std::optional<std::size_t> best_of(const Ranking& ranking, const Objective& objective) {
  if (ranking.ranked.empty() || !counts(ranking.ranked.front(), objective)) return std::nullopt;
  const Ranked& first = ranking.ranked.front();
  if (!first.candidate.is_map()) return 0;
  const double enough = value_of(first, objective) * (1 + kLeastErrorPercent / 100);
  for (std::size_t i = 1; i < ranking.ranked.size(); ++i) {
    const Ranked& one = ranking.ranked[i];
    if (counts(one, objective) && !one.candidate.is_map() && value_of(one, objective) <= enough) return i;
  }
  return 0;
}

std::string nothing_allowed(const Ranking& ranking, const Objective& objective) {
  const Ranked* best = nullptr;
  for (const Ranked& one : ranking.ranked) {
    if (one.verdict == Verdict::kReplayed && (best == nullptr || one.time_s < best->time_s)) best = &one;
  }
  if (best == nullptr) {
    const bool stuck = ranking.count(Verdict::kStuck) > 0;
    return stuck ? "the program would not end on any candidate that was replayed: " +
                       ranking.ranked.front().why_stuck
                 : "no candidate can keep within the limits of the objective, by its bound already";
  }
  return fmt::format(
      "no candidate that was replayed keeps within the limits of the objective ({}): the fastest takes "
      "{:.4g} s and {:.3g} node-hours",
      objective.text(), best->time_s, best->node_hours());
}

bool is_same_place(const Candidate& a, const Candidate& b) {
  return a.target.node_of_rank == b.target.node_of_rank &&
         a.target.network->name() == b.target.network->name() &&
         (b.set.partition.empty() || a.set.partition == b.set.partition);
}

}  // namespace

Seconds Baseline::time_s() const {
  return measured_s ? std::min(*measured_s, now.time_s) : now.time_s;
}

Advice advise(const Ranking& ranking, const Baseline& baseline, const Trust& trust, const CommGraph& graph,
              const Objective& objective) {
  Advice advice;
  const std::optional<std::size_t> best = best_of(ranking, objective);
  if (!best) {
    advice.why_not = nothing_allowed(ranking, objective);
    return advice;
  }
  const Ranked& chosen = ranking.ranked[*best];
  if (baseline.now.verdict != Verdict::kReplayed || !(baseline.time_s() > 0)) {
    advice.why_not = "what runs now cannot be replayed, so there is nothing to compare with: " +
                     (baseline.now.why_stuck.empty() ? "it takes no time" : baseline.now.why_stuck);
    return advice;
  }
  const Seconds now_s = baseline.time_s();
  const double now_hours = baseline.now.candidate.node_hours(now_s);
  advice.gain = gain_of(objective.value(now_s, now_hours), value_of(chosen, objective), trust);
  // What runs now may itself be outside the limits: then anything within them is worth having.
  const bool now_allowed = objective.allows(now_s, now_hours);
  if (now_allowed && is_same_place(chosen.candidate, baseline.now.candidate)) {
    advice.why_not = "nothing that was replayed is better than what runs now: keep it";
    return advice;
  }
  if (now_allowed && !advice.gain.is_certain()) {
    advice.why_not =
        advice.gain.percent > 0
            ? fmt::format(
                  "the best candidate ({}) gains {:.1f} %, which is within the error of the prediction "
                  "(+-{:.1f} %): keep what runs now",
                  describe(chosen.candidate, false), advice.gain.percent, trust.half_width_percent())
            : "nothing that was replayed is better than what runs now: keep it";
    return advice;
  }
  advice.chosen = best;
  advice.reasons = reasons(chosen, baseline.now, graph);
  return advice;
}

}  // namespace lbf::advisor
