// Predicted time over nodes, per network: what --plot and --html draw.
#pragma once

#include <string>
#include <vector>

#include "advisor/trust/trust.h"
#include "report/step.h"

namespace lbf::report {

struct CurvePoint {
  std::uint32_t nodes = 0;
  const TargetPrediction* target = nullptr;  // the fastest of this network on so many nodes
  advisor::Saying saying;                    // but for kCannotTell: these are left out
  // The longest time that is drawn of it.
  Seconds highest_s() const { return saying.has_interval() ? saying.high_s : saying.low_s; }
};

struct Curve {
  std::string network;
  bool ran = false;                // the network that ran
  std::vector<CurvePoint> points;  // by nodes, ascending
};

// The network that ran first, the others by name. Targets without a time that is said, or a number of nodes, are left
// out. REQUIRES: `step` outlives the curves.
std::vector<Curve> curves_of(const Step& step);

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
