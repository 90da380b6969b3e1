// Advice, see advice.h.
#include "advisor/advice/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "advisor/advice/how.h"
#include "advisor/advice/reasons.h"
#include "base/times.h"

namespace lbf::advisor {
namespace {

// What candidates are compared by. With starts: the seconds from asking Slurm to the end.
struct Comparison {
  const Objective& objective;
  const Schedule* schedule;  // nullptr: starts do not count
  const Baseline& baseline;
  const Trust& trust;

  bool is_allowed(const Ranked& one) const {
    return one.verdict == Verdict::kReplayed && objective.allows(one.time_s, one.node_hours()) &&
           (schedule == nullptr || one.start.at_s.has_value());
  }
  bool counts(const Ranked& one) const { return is_allowed(one) && baseline.say(trust, one).has_interval(); }
  Seconds waiting_s(const Ranked& one) const {
    return schedule != nullptr && one.start.at_s ? *one.start.at_s - schedule->asked_at_s : 0;
  }
  double value(const Ranked& one, Seconds time_s) const {
    if (schedule != nullptr) return waiting_s(one) + time_s;
    return objective.value(time_s, one.candidate.node_hours(time_s));
  }
  double value(const Ranked& one) const { return value(one, one.time_s); }
};

bool has_several_counts(const Ranking& ranking, const Baseline& baseline) {
  return std::ranges::any_of(ranking.ranked, [&](const Ranked& one) { return one.ranks() != baseline.now.ranks(); });
}

// PLACE: that of ONE. Its ranks are said where the candidates differ in them.
std::string with_ranks(const Ranking& ranking, const Baseline& baseline, const Ranked& one, const std::string& place) {
  return has_several_counts(ranking, baseline) ? fmt::format("{} ranks on {}", one.ranks(), place) : place;
}

std::string describe_in(const Ranking& ranking, const Baseline& baseline, const Ranked& one) {
  return with_ranks(ranking, baseline, one, describe_briefly(one.candidate));
}

// What a user has to understand of a distribution: blocks are what srun does anyway.
int effort(const Candidate& candidate) {
  const std::string& placement = candidate.target.placement;
  if (candidate.target.nodes == 1 || placement == "block") return 0;
  return placement == "cyclic" ? 1 : 2;
}

bool is_same_set(const Candidate& a, const Candidate& b) {
  return a.target.nodes == b.target.nodes && a.target.node_of_rank.size() == b.target.node_of_rank.size() &&
         a.set.partition == b.set.partition && a.set.constraint == b.set.constraint &&
         a.target.network->name() == b.target.network->name();
}

// The gain of ONE over OTHER is more than the error of its time.
bool is_surely_better(const Comparison& by, const Ranked& one, const Ranked& other) {
  const double half_width_percent = by.baseline.say(by.trust, one).half_width_percent;
  return gain_of(by.value(other), by.value(one), half_width_percent, by.waiting_s(one)).is_certain();
}

// The first one that counts; of other rank counts the one with the fewest node-hours than which it is not surely
// better.
std::size_t first_of(const Ranking& ranking, const Comparison& by) {
  std::size_t first = 0;
  while (first < ranking.ranked.size() && !by.counts(ranking.ranked[first])) ++first;
  std::size_t cheapest = first;
  for (std::size_t i = first + 1; i < ranking.ranked.size(); ++i) {
    const Ranked& one = ranking.ranked[i];
    if (by.counts(one) && one.ranks() != ranking.ranked[first].ranks() &&
        one.node_hours() < ranking.ranked[cheapest].node_hours() && !is_surely_better(by, ranking.ranked[first], one))
      cheapest = i;
  }
  return cheapest;
}

// The first one; a simpler one that is as good as that.
std::optional<std::size_t> best_of(const Ranking& ranking, const Comparison& by) {
  const std::size_t begin = first_of(ranking, by);
  if (begin == ranking.ranked.size()) return std::nullopt;
  const Ranked& first = ranking.ranked[begin];
  if (!first.candidate.needs_host_file()) {
    constexpr double kAlike = 1.001;  // two predictions, not two runs
    std::size_t simplest = begin;
    for (std::size_t i = begin + 1; i < ranking.ranked.size(); ++i) {
      const Ranked& one = ranking.ranked[i];
      if (by.counts(one) && by.value(one) <= by.value(first) * kAlike && !one.candidate.needs_host_file() &&
          is_same_set(one.candidate, first.candidate) &&
          effort(one.candidate) < effort(ranking.ranked[simplest].candidate)) {
        simplest = i;
      }
    }
    return simplest;
  }
  const double enough = by.value(first) * (1 + kLeastErrorPercent / 100);
  for (std::size_t i = begin + 1; i < ranking.ranked.size(); ++i) {
    const Ranked& one = ranking.ranked[i];
    if (by.counts(one) && !one.candidate.needs_host_file() && by.value(one) <= enough) return i;
  }
  return begin;
}

std::string nothing_allowed(const Ranking& ranking, const Comparison& by) {
  const Objective& objective = by.objective;
  for (const Ranked& one : ranking.ranked) {
    if (!by.is_allowed(one)) continue;
    const Saying saying = by.baseline.say(by.trust, one);
    if (saying.form == Saying::Form::kAtBest) return "every candidate's time is a bound: " + saying.why;
    return "no time can be told: " + saying.why + (saying.remedy.empty() ? "" : ". To get one, " + saying.remedy);
  }
  const Ranked* best = nullptr;
  for (const Ranked& one : ranking.ranked) {
    if (one.verdict == Verdict::kReplayed && (best == nullptr || one.time_s < best->time_s)) best = &one;
  }
  if (best == nullptr) {
    const bool stuck = ranking.count(Verdict::kStuck) > 0;
    return stuck ? "the program would not end on any candidate that was replayed: " + ranking.ranked.front().why_stuck
                 : "no candidate can keep within the limits of the objective, by its bound already";
  }
  return fmt::format(
      "no candidate that was replayed keeps within the limits of the objective ({}): the fastest takes "
      "{:.4g} s and {:.3g} node-hours",
      objective.text(), best->time_s, best->node_hours());
}

bool is_same_place(const Candidate& a, const Candidate& b) {
  return computes_alike(a.target, b.target) && a.target.network->name() == b.target.network->name() &&
         (b.set.partition.empty() || a.set.partition == b.set.partition);
}

// Slurm answers some time after it was asked, in whole seconds.
constexpr Seconds kNowWithinS = 5;

std::string starts(const Ranked& one, const Schedule& schedule) {
  return *one.start.at_s <= schedule.asked_at_s + kNowWithinS ? "can start now"
                                                              : "starts at " + format_timestamp(*one.start.at_s);
}

// Why what ends first is not what runs fastest, or not what runs now.
std::vector<std::string> reasons_of_starts(const Ranking& ranking, const Ranked& chosen, const Baseline& baseline,
                                           const Schedule& schedule) {
  std::vector<std::string> lines;
  const Ranked* fastest = &chosen;
  for (const Ranked& one : ranking.ranked) {
    if (one.start.at_s && one.time_s < fastest->time_s) fastest = &one;
  }
  if (fastest != &chosen) {
    lines.push_back(fmt::format("it {}; {} would run {:.3g} % shorter, but {}", starts(chosen, schedule),
                                describe_in(ranking, baseline, *fastest), 100 * (1 - fastest->time_s / chosen.time_s),
                                starts(*fastest, schedule)));
  }
  if (baseline.now.start.at_s && *baseline.now.start.at_s > *chosen.start.at_s)
    lines.push_back("what runs now " + starts(baseline.now, schedule));
  return lines;
}

// What other rank counts would give for which node-hours: the fastest one, and of the cheaper ones that with the most
// efficiency for its time, the knee (advisor/scaling).
std::vector<std::string> reasons_of_counts(const Ranking& ranking, const Comparison& by, const Ranked& chosen) {
  const Ranked* fastest = nullptr;
  const Ranked* cheaper = nullptr;
  const auto product = [](const Ranked& one) { return one.node_hours() * one.time_s; };
  for (const Ranked& one : ranking.ranked) {
    if (!by.counts(one) || one.ranks() == chosen.ranks()) continue;
    if (one.time_s < chosen.time_s && (fastest == nullptr || one.time_s < fastest->time_s)) fastest = &one;
    if (one.node_hours() < chosen.node_hours() && (cheaper == nullptr || product(one) < product(*cheaper)))
      cheaper = &one;
  }
  const auto runs_surely_shorter = [&](const Ranked& one) {
    return gain_of(chosen.time_s, one.time_s, by.baseline.say(by.trust, one).half_width_percent).is_certain();
  };
  std::vector<std::string> lines;
  const auto add = [&](const Ranked& one, double percent, const char* how) {
    lines.push_back(fmt::format(
        "{} would run {:.2g} % {}, for {:.2g} times the node-hours{}", describe_in(ranking, by.baseline, one), percent,
        how, one.node_hours() / chosen.node_hours(),
        one.time_s < chosen.time_s && !runs_surely_shorter(one) ? "; that it is shorter is within the error" : ""));
  };
  if (fastest != nullptr) add(*fastest, 100 * (1 - fastest->time_s / chosen.time_s), "shorter");
  if (cheaper != nullptr && cheaper != fastest) add(*cheaper, 100 * (cheaper->time_s / chosen.time_s - 1), "longer");
  return lines;
}

// See Advice::unmeasured. VALUE: what the bound has to be better than.
std::string unmeasured(const Ranking& ranking, const Comparison& by, double value) {
  for (const Ranked& one : ranking.ranked) {
    if (!by.is_allowed(one) || is_same_place(one.candidate, by.baseline.now.candidate)) continue;
    const Saying saying = by.baseline.say(by.trust, one);
    if (saying.form != Saying::Form::kAtBest || by.value(one, saying.low_s) >= value) continue;
    return fmt::format("{} would take {}: {}. To get a number, {}",
                       with_ranks(ranking, by.baseline, one, describe(one.candidate)), saying.in_words(), saying.why,
                       saying.remedy);
  }
  return {};
}

}  // namespace

// Outcomes of the program are of the ranks that ran.
static Trust of_other_ranks(Trust trust, double percent) {
  trust.other_ranks_percent = percent;
  trust.program = {};
  return trust;
}

Saying Baseline::say(const Trust& trust, const Ranked& one) const {
  if (one.said) return *one.said;
  const engine::Target& target = one.candidate.target;
  const Trust by = one.source == Source::kPattern ? of_other_ranks(trust, one.other_ranks_percent) : trust;
  return by.say(one.time_s, change_of(one), target.network->name(), target.nodes,
                {one.memory_percent, one.exchange_percent});
}

Ranked Baseline::alone() const {
  Ranked alone = now;
  alone.time_s -= others_s;
  return alone;
}

double Baseline::change_of(const Ranked& one) const {
  const Seconds alone_s = now.time_s - others_s;
  return one.time_s > 0 && alone_s > 0 ? one.time_s / alone_s : 1;
}

Seconds Baseline::time_s() const {
  const Seconds alone_s = now.time_s - others_s;
  return measured_s && *measured_s < now.time_s ? *measured_s * alone_s / now.time_s : alone_s;
}

// But for Advice::unmeasured.
static Advice advice_by(const Comparison& by, const Ranking& ranking, const CommGraph& graph) {
  const Objective& objective = by.objective;
  const Baseline& baseline = by.baseline;
  Advice advice;
  const std::optional<std::size_t> best = best_of(ranking, by);
  if (!best) {
    advice.why_not = nothing_allowed(ranking, by);
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
  // Where Slurm would not start what runs now, only the run times can be compared.
  const bool now_starts = by.schedule == nullptr || baseline.now.start.at_s.has_value();
  const double waiting_s = now_starts ? by.waiting_s(chosen) : 0;
  const double half_width_percent = baseline.say(by.trust, chosen).half_width_percent;
  advice.gain = gain_of(by.value(baseline.now, now_s), now_starts ? by.value(chosen) : chosen.time_s,
                        half_width_percent, waiting_s);
  // What runs now may itself be outside the limits: then anything within them is worth having.
  const bool now_allowed = now_starts && objective.allows(now_s, now_hours);
  const char* const nothing_better = by.schedule == nullptr
                                         ? "nothing that was replayed is better than what runs now: keep it"
                                         : "nothing that Slurm can start ends before what runs now: keep it";
  if (now_allowed && is_same_place(chosen.candidate, baseline.now.candidate)) {
    advice.why_not = nothing_better;
    return advice;
  }
  if (now_allowed && !advice.gain.is_certain()) {
    advice.why_not = advice.gain.percent > 0
                         ? fmt::format(
                               "the best candidate ({}) gains {:.1f} %, which is within the error of the prediction "
                               "(+-{:.1f} %): keep what runs now",
                               describe_in(ranking, baseline, chosen), advice.gain.percent, half_width_percent)
                         : nothing_better;
    return advice;
  }
  advice.chosen = best;
  if (by.schedule != nullptr) advice.reasons = reasons_of_starts(ranking, chosen, baseline, *by.schedule);
  // One that runs longer is not advised for what its replay says; GRAPH is of the ranks that ran.
  if (chosen.ranks() == baseline.now.ranks() && (by.schedule == nullptr || chosen.time_s < now_s)) {
    for (std::string& reason : reasons(chosen, baseline.alone(), graph)) advice.reasons.push_back(std::move(reason));
  }
  if (has_several_counts(ranking, baseline)) {
    for (std::string& reason : reasons_of_counts(ranking, by, chosen)) advice.reasons.push_back(std::move(reason));
  }
  return advice;
}

Advice advise(const Ranking& ranking, const Baseline& baseline, const Trust& trust, const CommGraph& graph,
              const Objective& objective, const Schedule* schedule) {
  const Comparison by{objective, schedule != nullptr && schedule->known > 0 ? schedule : nullptr, baseline, trust};
  Advice advice = advice_by(by, ranking, graph);
  const double best =
      advice.chosen ? by.value(ranking.ranked[*advice.chosen]) : by.value(baseline.now, baseline.time_s());
  advice.unmeasured = unmeasured(ranking, by, best);
  return advice;
}

}  // namespace lbf::advisor
