#include "predictor/metric/extrapolation.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lbf {
namespace {

// Two-sided 95 % quantile of Student's t.
double t_quantile(std::size_t degrees) {
  static constexpr std::array<double, 31> kTable{0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                                 2.306, 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
                                                 2.120, 2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069,
                                                 2.064, 2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees < kTable.size()) return kTable[degrees];
  return 1.960 + 2.4 / static_cast<double>(degrees);  // within 0.002 of the true quantile from 31 on
}

}  // namespace

Extrapolated extrapolate(const SeenStretch& start, std::span<const SeenStretch> windows, Seconds run_s) {
  SeenStretch sum;
  for (const SeenStretch& window : windows) {
    sum.measured_s += window.measured_s;
    sum.predicted_s += window.predicted_s;
  }
  const Seconds seen_s = start.measured_s + sum.measured_s;
  const Seconds known_s = start.predicted_s + sum.predicted_s;
  const Seconds unseen_s = run_s - seen_s;
  if (unseen_s <= 0) return {known_s, known_s, known_s, 1};

  const double seen_share = seen_s / run_s;
  const SeenStretch& typical = sum.measured_s > 0 ? sum : start;
  if (typical.measured_s <= 0) return {known_s, 0, kNeverS, seen_share};
  const double ratio = typical.predicted_s / typical.measured_s;
  const Seconds predicted_s = known_s + ratio * unseen_s;
  const std::size_t n = windows.size();
  if (n < 2 || sum.measured_s <= 0) return {predicted_s, 0, kNeverS, seen_share};

  double squares = 0;
  for (const SeenStretch& window : windows) {
    const double residual = window.predicted_s - ratio * window.measured_s;
    squares += residual * residual;
  }
  // Cochran (6.12) with the finite population correction left out: windows are a small part, or the interval
  // a little wide.
  const auto count = static_cast<double>(n);
  const double ratio_deviation = std::sqrt(squares * count / (count - 1)) / sum.measured_s;
  const Seconds half_s = t_quantile(n - 1) * ratio_deviation * unseen_s;
  return {predicted_s, std::max(predicted_s - half_s, known_s), predicted_s + half_s, seen_share};
}

}  // namespace lbf
