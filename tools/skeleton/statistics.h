// Statistics of repeated runs: quartiles, and Student's interval of a ratio.
#pragma once

#include <optional>
#include <span>

#include "base/units.h"

namespace lbf::tools {

struct Quartiles {
  Seconds first = 0;
  Seconds median = 0;
  Seconds third = 0;
};
// Linear between the neighbouring values (R's type 7). REQUIRES: at least one value.
Quartiles quartiles_of(std::span<const Seconds> values);

struct Estimate {
  double value = 0;
  // 95 % of such intervals hold the mean that infinitely many repetitions would have; empty: fewer than two
  // runs.
  struct Bounds {
    double low = 0;
    double high = 0;
  };
  std::optional<Bounds> bounds;
};

// `scale` times the mean of `now` over the mean of `reference`, both geometric; the interval by Student's t
// on the logarithms, variances unequal (Welch). Where one of them has fewer than two values, only the other
// one's spread counts; where both have, there is no interval. REQUIRES: at least one value each, all above 0;
// scale > 0.
Estimate scaled_ratio(double scale, std::span<const Seconds> now, std::span<const Seconds> reference);

}  // namespace lbf::tools
