#include "predictor/engine/metric/extrapolation.h"

#include <algorithm>
#include <cmath>

#include "base/student.h"

namespace lbf::engine {
namespace {

SeenStretch sum_of(std::span<const SeenStretch> parts) {
  SeenStretch sum;
  for (const SeenStretch& part : parts) {
    sum.measured_s += part.measured_s;
    sum.predicted_s += part.predicted_s;
  }
  return sum;
}

// Of the ratio of all parts together, from their scatter around it. REQUIRES: 2 parts, sum.measured_s > 0.
double ratio_deviation(std::span<const SeenStretch> parts, const SeenStretch& sum) {
  const double ratio = sum.predicted_s / sum.measured_s;
  double squares = 0;
  for (const SeenStretch& part : parts) {
    const double residual = part.predicted_s - ratio * part.measured_s;
    squares += residual * residual;
  }
  const auto count = static_cast<double>(parts.size());
  return std::sqrt(squares * count / (count - 1)) / sum.measured_s;
}

}  // namespace

Extrapolated extrapolate(const SeenStretch& start, std::span<const SeenStretch> windows, Seconds run_s,
                         std::span<const SeenStretch> blocks) {
  const SeenStretch sum = sum_of(windows);
  const Seconds seen_s = start.measured_s + sum.measured_s;
  const Seconds known_s = start.predicted_s + sum.predicted_s;
  const Seconds unseen_s = run_s - seen_s;
  if (unseen_s <= 0) return {known_s, known_s, known_s, 1};

  const double seen_share = seen_s / run_s;
  const SeenStretch& typical = sum.measured_s > 0 ? sum : start;
  if (typical.measured_s <= 0) return {known_s, 0, kNeverS, seen_share};
  const Seconds predicted_s = known_s + typical.predicted_s / typical.measured_s * unseen_s;

  const bool by_blocks = windows.size() < kEnoughWindows && blocks.size() >= std::max(kFewestBlocks, windows.size());
  const std::span<const SeenStretch> parts = by_blocks ? blocks : windows;
  const SeenStretch of_parts = by_blocks ? sum_of(blocks) : sum;
  const bool is_moment = by_blocks && seen_share < kLeastShareOfBlocks;
  if (parts.size() < 2 || of_parts.measured_s <= 0 || is_moment) return {predicted_s, 0, kNeverS, seen_share};
  // Cochran (6.12), with what the unseen part scatters by itself: sampled of unseen + sampled time.
  const double deviation = ratio_deviation(parts, of_parts);
  if (by_blocks && parts.size() < kBlocksThatMayAgree && !(deviation > 0)) return {predicted_s, 0, kNeverS, seen_share};
  const double scale = 1 + of_parts.measured_s / unseen_s;
  double variance = deviation * deviation * scale;
  if (by_blocks) {
    const double of_one = deviation * deviation * static_cast<double>(parts.size());
    variance += of_one * std::log2(1 + unseen_s / of_parts.measured_s);
  }
  const Seconds half_s =
      student_quantile(static_cast<double>(parts.size() - 1), kOutside95) * std::sqrt(variance) * unseen_s;
  return {predicted_s, std::max(predicted_s - half_s, known_s), predicted_s + half_s, seen_share};
}

}  // namespace lbf::engine
