// Baseline: what a gain is counted from.
#pragma once

#include <optional>

#include "advisor/ranking/ranking.h"
#include "advisor/trust/trust.h"

namespace lbf::advisor {

struct Baseline {
  Ranked now;  // the configuration that ran, or, where the trace does not say, what srun would do
  bool is_what_ran = false;
  std::optional<Seconds> measured_s;  // of what ran

  // The smaller one of measured and predicted time, so that an error which all predictions share is never
  // sold as a gain.
  Seconds time_s() const;

  // Predicted time of `one` over that of `now`; 1 where one of them is not known.
  double change_of(const Ranked& one) const;
  // Of the interval of `one`, in percent of its time: by TRUST, and by what memory bandwidth may change.
  double half_width_percent(const Trust& trust, const Ranked& one) const {
    return trust.half_width_percent(change_of(one)) + one.memory_percent;
  }
};

}  // namespace lbf::advisor
