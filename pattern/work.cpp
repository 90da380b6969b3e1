#include "pattern/work.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace lbf::pattern {
namespace {

// So many executions are taken as alike; of fewer than eight times as many, fewer.
constexpr std::size_t kMostAlike = 16;

std::size_t alike_of(std::size_t executions) {
  return std::min(kMostAlike, executions / 8);
}

double mean_of(const std::vector<float>& times_s) {
  return std::accumulate(times_s.begin(), times_s.end(), 0.0) / static_cast<double>(times_s.size());
}

}  // namespace

Work Work::fit(std::vector<WorkSample> samples, double exponent, Rank largest) {
  Work work;
  work.of_rank_.resize(static_cast<std::size_t>(largest));
  double sum_s = 0;
  double count = 0;
  for (const WorkSample& sample : samples) {
    if (sample.ranks != largest) continue;
    std::vector<float>& times_s = work.of_rank_[static_cast<std::size_t>(sample.like)];
    times_s.insert(times_s.end(), sample.times_s.begin(), sample.times_s.end());
    sum_s += mean_of(sample.times_s);
    count += 1;
  }
  if (sum_s > 0) work.mean_s_ = sum_s / count;
  struct Sums {
    double time_s = 0;
    double like_s = 0;
  };
  std::map<Rank, Sums> runs;
  for (const WorkSample& sample : samples) {
    const std::vector<float>& like = work.of_rank_[static_cast<std::size_t>(sample.like)];
    Sums& sums = runs[sample.ranks];
    sums.time_s += mean_of(sample.times_s);
    sums.like_s += like.empty() ? work.mean_s_ : mean_of(like);
  }
  for (const std::vector<float>& times_s : work.of_rank_)
    work.of_largest_s_ += std::accumulate(times_s.begin(), times_s.end(), 0.0);
  std::map<Rank, double> ratios;
  for (const auto& [ranks, sums] : runs) {
    if (ranks == largest && runs.size() > 2)
      work.miss_ = {work.of_largest_s_ * WorkLaw::fit(ratios, exponent).at(largest), work.of_largest_s_};
    if (sums.like_s > 0 && sums.time_s > 0) ratios[ranks] = sums.time_s / sums.like_s;
  }
  work.law_ = WorkLaw::fit(ratios, exponent);
  work.find_order();
  return work;
}

void Work::find_order() {
  std::size_t executions = 0;
  for (const std::vector<float>& times_s : of_rank_) {
    if (executions != 0 && !times_s.empty() && times_s.size() != executions) return;
    executions = std::max(executions, times_s.size());
  }
  if (alike_of(executions) < 2) return;
  of_execution_s_.resize(executions);
  for (const std::vector<float>& times_s : of_rank_) {
    for (std::size_t number = 0; number < times_s.size(); ++number) of_execution_s_[number] += times_s[number];
  }
  order_.resize(executions);
  std::iota(order_.begin(), order_.end(), 0U);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return of_execution_s_[a] < of_execution_s_[b]; });
  place_.resize(executions);
  for (std::uint32_t place = 0; place < executions; ++place) place_[order_[place]] = place;
}

double Work::at(Rank ranks, Rank like, std::uint64_t execution, std::uint64_t chance) const {
  const double factor = law_.at(ranks);
  if (of_rank_.empty() || of_rank_[static_cast<std::size_t>(like)].empty()) return factor * mean_s_;
  const std::vector<float>& times_s = of_rank_[static_cast<std::size_t>(like)];
  const std::size_t number = execution % times_s.size();
  if (order_.empty()) return factor * times_s[number];
  const std::size_t alike = alike_of(order_.size());
  const std::size_t place = std::max<std::size_t>(place_[number], alike / 2) - alike / 2;
  const std::size_t taken = order_[std::min(place, order_.size() - alike) + chance % alike];
  const double scale = of_execution_s_[taken] > 0 ? of_execution_s_[number] / of_execution_s_[taken] : 1;
  return factor * times_s[taken] * scale;
}

}  // namespace lbf::pattern
