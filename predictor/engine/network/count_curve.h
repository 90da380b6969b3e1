// CountCurve: a value by a number of processors or threads, measured for some numbers ([memory] and [threads] of a
// network file, docs/formats/network-v1.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace lbf::engine {

class CountCurve {
 public:
  using Point = std::pair<std::uint32_t, double>;

  CountCurve() = default;  // nothing is known
  // REQUIRES: numbers ascend strictly.
  explicit CountCurve(std::vector<Point> points) : points_(std::move(points)) {}

  bool known() const { return !points_.empty(); }
  const std::vector<Point>& points() const { return points_; }
  // Linear between two numbers, the nearest one's value beyond the first and the last. REQUIRES: known().
  double at(double number) const {
    const auto upper = std::find_if(points_.begin(), points_.end(), [number](const Point& point) {
      return static_cast<double>(point.first) >= number;
    });
    if (upper == points_.begin()) return upper->second;
    if (upper == points_.end()) return points_.back().second;
    const auto lower = upper - 1;
    const double share = (number - lower->first) / (upper->first - lower->first);
    return lower->second + share * (upper->second - lower->second);
  }

 private:
  std::vector<Point> points_;
};

}  // namespace lbf::engine
