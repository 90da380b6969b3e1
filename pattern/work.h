// Work: the time before a statement, on each rank and at each of its executions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "pattern/power_law.h"

namespace lbf::pattern {

// Seconds before the executions of a statement by one rank of a run, in order.
struct WorkSample {
  Rank ranks = 1;
  Rank me = 0;
  std::span<const float> times_s;
};

// The mean is a law of the rank count. Around it the times differ as in the largest run: by rank, by execution, and by
// chance. Ranks wait for the slowest of them, so a program of means alone would be too fast.
class Work {
 public:
  Work() = default;
  // EXPONENT: of the mean, where one rank count alone has time. LARGEST: the rank count of the largest run.
  static Work fit(std::span<const WorkSample> samples, double exponent, Rank largest);

  // Seconds before execution number EXECUTION, from 0. LIKE: the rank of the largest run that this one is like; CHANCE:
  // any number.
  double at(Rank ranks, Rank like, std::uint64_t execution, std::uint64_t chance) const;
  const PowerLaw& mean() const { return mean_; }

 private:
  void spread(std::span<const WorkSample* const> samples, Rank largest);

  PowerLaw mean_;
  // Factors of the mean, or none.
  std::vector<float> of_rank_;
  std::vector<float> of_execution_;  // on all ranks
  std::vector<float> by_chance_;     // ascending, each as likely as any other
};

}  // namespace lbf::pattern
