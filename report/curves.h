// Predicted time over a count: of nodes, per network, or of ranks. What --plot and --html draw.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "advisor/trust/trust.h"
#include "report/step.h"

namespace lbf::report {

struct CurvePoint {
  std::uint32_t count = 0;
  const TargetPrediction* target = nullptr;  // of nodes: the fastest of this network on so many
  advisor::Saying saying;                    // but for kCannotTell: these are left out
  // The longest time that is drawn of it.
  Seconds highest_s() const { return saying.has_interval() ? saying.high_s : saying.low_s; }
};

struct Curve {
  std::string name;                // of nodes: the network
  bool ran = false;                // the network that ran
  std::vector<CurvePoint> points;  // by count, ascending
};

// Words below each count.
struct ChartAxis {
  std::string name;
  std::function<std::string(std::uint32_t count)> text;
};

struct TimeChart {
  std::vector<Curve> curves;
  std::vector<std::pair<std::uint32_t, Seconds>> measured;  // at counts that the curves have
  std::vector<ChartAxis> axes;                              // the counts themselves, and what else is below them
  std::optional<std::uint32_t> knee;                        // a count that is marked

  std::vector<std::uint32_t> counts() const;  // ascending
};

// The network that ran first, the others by name. Targets without a time that is said, or a number of nodes, are left
// out. REQUIRES: `step` outlives the curves.
std::vector<Curve> curves_of(const Step& step);
// With what was measured. REQUIRES: `step` outlives the chart.
TimeChart chart_of(const Step& step);

struct TargetCost {
  const TargetPrediction* target = nullptr;
  advisor::Saying saying;
  Seconds time_s = 0;
  double node_hours = 0;
  bool on_front = false;  // no other target is as good in both and better in one
};

// Every target that has an interval with its time and node-hours, by time: a bound is on no front.
std::vector<TargetCost> costs_of(const Step& step);

// "Round" values for the marks of an axis, about `count` of them, from at most `low` to at least `high`.
// REQUIRES: low <= high, count > 0.
std::vector<double> axis_ticks(double low, double high, int count);

}  // namespace lbf::report
