// Work: the time before a statement, on each rank and at each of its executions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "pattern/work_law.h"

namespace lbf::pattern {

// Seconds before the executions of a statement by one rank of a run, in order.
struct WorkSample {
  Rank ranks = 1;
  Rank like = 0;  // the rank of the largest run at the same place of the grid: in that run, itself
  std::vector<float> times_s;
};

// Each rank has the times of the rank of the largest run that it is like, times a law of the rank count. So ranks
// differ, and iterations, as they did. (Ranks wait for the slowest one: a program in which all had the mean would be
// too fast.)
class Work {
 public:
  Work() = default;
  // How far the law without the largest run is from that run: seconds of its ranks together, foretold and as they were.
  struct Miss {
    double foretold_s = 0;
    double was_s = 0;
  };

  // EXPONENT: of the law, where one rank count alone has time. LARGEST: the rank count of the largest run.
  static Work fit(std::vector<WorkSample> samples, double exponent, Rank largest);
  const Miss& miss() const { return miss_; }
  // Of all ranks of the largest run.
  Seconds of_largest_s() const { return of_largest_s_; }
  // Of the times, to those of the largest run.
  const WorkLaw& law() const { return law_; }

  // Seconds before execution number EXECUTION, from 0. CHANCE: any number; ranks that are like one take its times in an
  // order of their own, among executions of which the mean over ranks is about the same.
  double at(Rank ranks, Rank like, std::uint64_t execution, std::uint64_t chance) const;

 private:
  void find_order();

  WorkLaw law_;
  Seconds of_largest_s_ = 0;
  Miss miss_;
  double mean_s_ = 1;  // of a rank that is like one that did not execute the statement
  std::vector<std::vector<float>> of_rank_;
  // Executions by their mean over ranks, the shortest first; none if there are few, or not as many on all ranks.
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> place_;  // in it, of each execution
  std::vector<float> of_execution_s_;
};

}  // namespace lbf::pattern
