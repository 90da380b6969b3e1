// Advice: which candidate to take, what it gains and how certain that is, or why nothing is advised.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "advisor/advice/trust.h"
#include "advisor/mapping/comm_graph.h"
#include "advisor/ranking/ranking.h"

namespace lbf::advisor {

// What the gain is counted from.
struct Baseline {
  Ranked now;  // the configuration that ran, or, where the trace does not say, what srun would do
  bool is_what_ran = false;
  std::optional<Seconds> measured_s;  // of what ran

  // The smaller one of measured and predicted time, so that an error which all predictions share is never
  // sold as a gain.
  Seconds time_s() const;
};

struct Advice {
  std::optional<std::size_t> chosen;  // index of Ranking::ranked; none: nothing is advised
  Gain gain;                          // of `chosen`, else of the best there was
  std::string why_not;                // where nothing is advised: one sentence
  std::vector<std::string> reasons;
};

// The best candidate that the objective allows; of those that are less than kLeastErrorPercent worse than it,
// one that needs no host file. Nothing is advised where the gain is within the error, where no candidate was
// replayed that the objective allows, or where it is what runs already.
Advice advise(const Ranking& ranking, const Baseline& baseline, const Trust& trust, const CommGraph& graph,
              const Objective& objective);

}  // namespace lbf::advisor
