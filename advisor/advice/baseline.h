// Baseline: what a gain is counted from.
#pragma once

#include <optional>

#include "advisor/ranking/ranking.h"
#include "advisor/trust/trust.h"

namespace lbf::advisor {

struct Baseline {
  // The configuration that ran, beside the other programs that ran there; where the trace does not say, what srun would
  // do.
  Ranked now;
  bool is_what_ran = false;
  std::optional<Seconds> measured_s;  // of what ran
  Seconds others_s = 0;               // of the predicted time of `now`: the other programs, which no candidate has

  // `now` as a candidate is predicted: without the other programs.
  Ranked alone() const;
  // The smaller one of measured and predicted time, so that an error which all predictions share is never
  // sold as a gain; without the share that the other programs have in the predicted one.
  Seconds time_s() const;

  // Predicted time of `one` over that of `now`, without the other programs; 1 where one of them is not known.
  double change_of(const Ranked& one) const;
  // How the time of `one` is said: by TRUST, which is of the run, and by what memory bandwidth may change; of a law's
  // as the law says it.
  Saying say(const Trust& trust, const Ranked& one) const;
};

}  // namespace lbf::advisor
