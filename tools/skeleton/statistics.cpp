#include "tools/skeleton/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/student.h"

namespace lbf::tools {
namespace {

struct Sample {  // of logarithms
  double mean = 0;
  double error2 = 0;   // of the mean, squared
  double freedom = 0;  // degrees; 0: no spread is known
};

Sample sample_of(std::span<const Seconds> values) {
  Sample sample;
  const auto n = static_cast<double>(values.size());
  for (const Seconds value : values) sample.mean += std::log(value) / n;
  if (values.size() < 2) return sample;
  sample.freedom = n - 1;
  for (const Seconds value : values) {
    const double off = std::log(value) - sample.mean;
    sample.error2 += off * off / sample.freedom / n;
  }
  return sample;
}

}  // namespace

Quartiles quartiles_of(std::span<const Seconds> values) {
  std::vector<Seconds> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
  };
  return {at(0.25), at(0.5), at(0.75)};
}

Estimate scaled_ratio(double scale, std::span<const Seconds> now, std::span<const Seconds> reference) {
  const Sample a = sample_of(now);
  const Sample b = sample_of(reference);
  Estimate estimate{scale * std::exp(a.mean - b.mean), {}};
  if (a.freedom + b.freedom <= 0) return estimate;
  const double error2 = a.error2 + b.error2;
  double half = 0;
  if (error2 > 0) {
    double below = 0;
    if (a.freedom > 0) below += a.error2 * a.error2 / a.freedom;
    if (b.freedom > 0) below += b.error2 * b.error2 / b.freedom;
    // Welch and Satterthwaite's degrees of freedom.
    half = student_quantile(error2 * error2 / below, kOutside95) * std::sqrt(error2);
  }
  estimate.bounds = Estimate::Bounds{estimate.value * std::exp(-half), estimate.value * std::exp(half)};
  return estimate;
}

}  // namespace lbf::tools
