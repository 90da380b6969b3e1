// Predicted time over nodes, per network: what --plot and --html draw.
#pragma once

#include <string>
#include <vector>

#include "report/step.h"

namespace lbf::report {

struct CurvePoint {
  std::uint32_t nodes = 0;
  const TargetPrediction* target = nullptr;  // the fastest of this network on so many nodes
};

struct Curve {
  std::string network;
  bool ran = false;                // the network that ran
  std::vector<CurvePoint> points;  // by nodes, ascending
};

// The network that ran first, the others by name. Targets without a predicted time or a number of nodes are left
// out. REQUIRES: `step` outlives the curves.
std::vector<Curve> curves_of(const Step& step);

struct TargetCost {
  const TargetPrediction* target = nullptr;
  Seconds time_s = 0;
  double node_hours = 0;
  bool on_front = false;  // no other target is as good in both and better in one
};

// Every target with its time and node-hours, by time.
std::vector<TargetCost> costs_of(const Step& step);

// "Round" values for the marks of an axis, about `count` of them, from at most `low` to at least `high`.
// REQUIRES: low <= high, count > 0.
std::vector<double> axis_ticks(double low, double high, int count);

}  // namespace lbf::report
