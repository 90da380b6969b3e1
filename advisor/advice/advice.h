// Advice: which candidate to take, what it gains and how certain that is, or why nothing is advised.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "advisor/advice/schedule.h"
#include "advisor/mapping/comm_graph.h"
#include "advisor/ranking/ranking.h"
#include "advisor/trust/trust.h"

namespace lbf::advisor {

struct Advice {
  std::optional<std::size_t> chosen;  // index of Ranking::ranked; none: nothing is advised
  Gain gain;                          // of `chosen`, else of the best there was
  std::string why_not;                // where nothing is advised: one sentence
  std::vector<std::string> reasons;
  // The first candidate whose time is a bound that may be better than what is advised, or than what runs now, and how
  // it becomes a number; empty: there is none. A bound is never advised.
  std::string unmeasured;
};

// The best candidate that the objective allows; of those that are less than kLeastErrorPercent worse than it,
// one that needs no host file. Only those count whose time is a number or a range (Baseline::say). Nothing is advised
// where the gain is within the error, where no candidate was replayed that the objective allows, or where it is what
// runs already.
// With a `schedule` that knows a start: the one that ends first, and the gain is in the time from asking to
// the end.
Advice advise(const Ranking& ranking, const Baseline& baseline, const Trust& trust, const CommGraph& graph,
              const Objective& objective, const Schedule* schedule = nullptr);

}  // namespace lbf::advisor
