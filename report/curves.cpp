#include "report/curves.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "report/advice.h"

namespace lbf::report {

std::vector<Curve> curves_of(const Step& step) {
  const TargetPrediction* self = step.self();
  const std::string ran = !step.network.empty() ? step.network : self != nullptr ? self->network : "";
  std::map<std::string, std::map<std::uint32_t, const TargetPrediction*>> fastest;
  for (const TargetPrediction& target : step.predictions) {
    if (!target.predicted_s || !target.nodes) continue;
    const TargetPrediction*& best = fastest[target.network][*target.nodes];
    if (best == nullptr || *target.predicted_s < *best->predicted_s) best = &target;
  }
  std::vector<Curve> curves;
  for (const auto& [network, points] : fastest) {
    Curve curve{network, network == ran, {}};
    for (const auto& [nodes, target] : points) {
      auto saying = saying_of(step, *target);
      if (saying && saying->form != advisor::Saying::Form::kCannotTell)
        curve.points.push_back({nodes, target, std::move(*saying)});
    }
    if (!curve.points.empty()) curves.push_back(std::move(curve));
  }
  std::stable_partition(curves.begin(), curves.end(), [](const Curve& curve) { return curve.ran; });
  return curves;
}

TimeChart chart_of(const Step& step) {
  TimeChart chart{curves_of(step), {}, {{"nodes", [](std::uint32_t count) { return std::to_string(count); }}}, {}};
  const TargetPrediction* const self = step.self();
  const auto measured_s = self != nullptr && self->nodes ? reference_s(step, *self) : std::nullopt;
  const std::vector<std::uint32_t> counts = chart.counts();
  if (measured_s && *measured_s > 0 && std::binary_search(counts.begin(), counts.end(), *self->nodes))
    chart.measured.emplace_back(*self->nodes, *measured_s);
  return chart;
}

std::vector<std::uint32_t> TimeChart::counts() const {
  std::set<std::uint32_t> all;
  for (const Curve& curve : curves) {
    for (const CurvePoint& point : curve.points) all.insert(point.count);
  }
  return {all.begin(), all.end()};
}

std::vector<TargetCost> costs_of(const Step& step) {
  std::vector<TargetCost> costs;
  for (const TargetPrediction& target : step.predictions) {
    auto saying = saying_of(step, target);
    if (!saying || !saying->has_interval() || !target.nodes) continue;
    costs.push_back(
        {&target, std::move(*saying), *target.predicted_s, *target.predicted_s * *target.nodes / 3600, false});
  }
  std::stable_sort(costs.begin(), costs.end(), [](const TargetCost& a, const TargetCost& b) {
    return a.time_s != b.time_s ? a.time_s < b.time_s : a.node_hours < b.node_hours;
  });
  double cheapest = kNeverS;
  for (TargetCost& cost : costs) {
    cost.on_front = cost.node_hours < cheapest;
    cheapest = std::min(cheapest, cost.node_hours);
  }
  return costs;
}

std::vector<double> axis_ticks(double low, double high, int count) {
  if (!(high > low)) high = low > 0 ? low * 1.1 : low + 1;
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const double first = std::floor(low / step);
  const double last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

}  // namespace lbf::report
