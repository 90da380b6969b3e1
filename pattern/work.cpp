#include "pattern/work.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace lbf::pattern {
namespace {

double sum_of(std::span<const float> times_s) {
  return std::accumulate(times_s.begin(), times_s.end(), 0.0);
}

// A factor, and the time that it was a factor of.
struct Weighted {
  float factor = 1;
  float weight = 0;
};

// The means of COUNT parts of the distribution, of the same weight each.
std::vector<float> parts_of(std::vector<Weighted> all, std::size_t count) {
  std::sort(all.begin(), all.end(), [](const Weighted& a, const Weighted& b) { return a.factor < b.factor; });
  double whole = 0;
  for (const Weighted& one : all) whole += one.weight;
  std::vector<float> parts;
  double sum = 0;
  double left = whole / static_cast<double>(count);
  for (const Weighted& one : all) {
    double weight = one.weight;
    while (weight > 0) {
      const double taken = parts.size() + 1 < count ? std::min(weight, left) : weight;
      sum += taken * one.factor;
      left -= taken;
      weight -= taken;
      if (left > 0 || parts.size() + 1 == count) break;
      parts.push_back(static_cast<float>(sum * static_cast<double>(count) / whole));
      sum = 0;
      left = whole / static_cast<double>(count);
    }
  }
  parts.push_back(static_cast<float>(sum * static_cast<double>(count) / whole));
  return parts;
}

}  // namespace

Work Work::fit(std::span<const WorkSample> samples, double exponent, Rank largest) {
  Work work;
  PowerLawFit mean;
  std::vector<const WorkSample*> of_largest;
  for (const WorkSample& sample : samples) {
    mean.add(sample.ranks, sum_of(sample.times_s) / static_cast<double>(sample.times_s.size()));
    if (sample.ranks == largest) of_largest.push_back(&sample);
  }
  work.mean_ = mean.law({exponent, -1, 0});
  work.spread(of_largest, largest);
  return work;
}

void Work::spread(std::span<const WorkSample* const> samples, Rank largest) {
  constexpr std::size_t kParts = 64;
  std::vector<std::pair<double, double>> ranks(static_cast<std::size_t>(largest));  // time, executions
  double all_s = 0;
  std::size_t executions = 0;
  for (const WorkSample* sample : samples) {
    auto& [time_s, count] = ranks[static_cast<std::size_t>(sample->me)];
    time_s += sum_of(sample->times_s);
    count += static_cast<double>(sample->times_s.size());
    all_s += sum_of(sample->times_s);
    executions += sample->times_s.size();
  }
  if (!(all_s > 0)) return;
  const double mean_s = all_s / static_cast<double>(executions);
  for (const auto& [time_s, count] : ranks)
    of_rank_.push_back(count > 0 ? static_cast<float>(time_s / count / mean_s) : 1.0F);

  const std::size_t times = samples.front()->times_s.size();
  const bool are_as_many = std::all_of(samples.begin(), samples.end(),
                                       [&](const WorkSample* sample) { return sample->times_s.size() == times; });
  for (std::size_t number = 0; are_as_many && times > 1 && number < times; ++number) {
    double here_s = 0;
    for (const WorkSample* sample : samples) here_s += sample->times_s[number];
    of_execution_.push_back(static_cast<float>(here_s / all_s * static_cast<double>(times)));
  }
  std::vector<Weighted> left;
  for (const WorkSample* sample : samples) {
    const double of_sample_s = sum_of(sample->times_s) / static_cast<double>(sample->times_s.size());
    for (std::size_t number = 0; number < sample->times_s.size(); ++number) {
      const double expected_s = of_sample_s * (of_execution_.empty() ? 1.0F : of_execution_[number]);
      if (expected_s > 0)
        left.push_back({static_cast<float>(sample->times_s[number] / expected_s), static_cast<float>(expected_s)});
    }
  }
  if (executions > samples.size()) by_chance_ = parts_of(std::move(left), kParts);
}

double Work::at(Rank ranks, Rank like, std::uint64_t execution, std::uint64_t chance) const {
  double time_s = mean_.at(ranks);
  if (!of_rank_.empty()) time_s *= of_rank_[static_cast<std::size_t>(like)];
  if (execution < of_execution_.size()) time_s *= of_execution_[execution];
  if (!by_chance_.empty()) time_s *= by_chance_[chance % by_chance_.size()];
  return time_s;
}

}  // namespace lbf::pattern
