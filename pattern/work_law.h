// WorkLaw: the work of a rank as a function of the number of ranks.
#pragma once

#include <map>

#include "base/units.h"
#include "pattern/power_law.h"

namespace lbf::pattern {

// Two laws, which few runs tell apart: a power between constant and 1/p, and a + b/p (Amdahl). Their mean counts.
class WorkLaw {
 public:
  WorkLaw() = default;
  // AMOUNTS: of some rank counts, above 0. EXPONENT: of the power, where there is one alone.
  static WorkLaw fit(const std::map<Rank, double>& amounts, double exponent);

  double at(Rank ranks) const { return (power_.at(ranks) + amdahl(ranks)) / 2; }
  // Half of what the two differ by, of either sign.
  double half_difference(Rank ranks) const { return (amdahl(ranks) - power_.at(ranks)) / 2; }

 private:
  double amdahl(Rank ranks) const { return has_amdahl_ ? stays_ + shrinks_ / ranks : power_.at(ranks); }

  PowerLaw power_;
  bool has_amdahl_ = false;
  double stays_ = 0;
  double shrinks_ = 0;
};

}  // namespace lbf::pattern
