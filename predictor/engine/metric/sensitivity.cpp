// Sensitivity, see sensitivity.h.
#include "predictor/engine/metric/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

namespace lbf::engine {
namespace {

constexpr std::array<std::string_view, kParameters.size()> kNames{"latency", "gap", "overhead", "speed"};
// Times that differ by less of themselves are the same: what sums of a long run lose to rounding is far below.
constexpr double kSame = 1e-10;

// Of the line through two points.
Seconds between(const SensitivityCurve::Point& left, const SensitivityCurve::Point& right, double factor) {
  const double share = (factor - left.factor) / (right.factor - left.factor);
  return left.time_s + share * (right.time_s - left.time_s);
}

}  // namespace

std::string_view parameter_name(Parameter parameter) {
  return kNames[static_cast<std::size_t>(parameter)];
}

std::optional<Parameter> parameter_named(std::string_view name) {
  const auto at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) return std::nullopt;
  return kParameters[static_cast<std::size_t>(at - kNames.begin())];
}

Target scaled(const Target& target, Parameter parameter, double factor) {
  Target out = target;
  NetworkFactors factors;
  switch (parameter) {
    case Parameter::kLatency:
      factors.latency = factor;
      break;
    case Parameter::kGap:
      factors.gap = factor;
      break;
    case Parameter::kOverhead:
      factors.overhead = factor;
      break;
    case Parameter::kSpeed:
      out.speed /= factor;
      for (double& speed : out.speed_of_node) speed /= factor;
      return out;
  }
  out.network = std::make_shared<const Network>(target.network->scaled(factors));
  return out;
}

Seconds scaled_s(const Composed& composition, Parameter parameter) {
  switch (parameter) {
    case Parameter::kLatency:
      return composition.of(Term::kLatencyInside) + composition.of(Term::kLatencyBetween);
    case Parameter::kGap:
      return composition.of(Term::kBytesInside) + composition.of(Term::kBytesBetween);
    case Parameter::kOverhead:
      return composition.of(Term::kOverhead);
    case Parameter::kSpeed:
      return composition.of(Term::kWork) + composition.of(Term::kLocal) + composition.of(Term::kOverhead) +
             composition.of(Term::kOtherPrograms);
  }
  return 0;
}

Tangent tangent_of(const Prediction& prediction, Parameter parameter, double factor) {
  const Composed& composition = *prediction.composition;
  return {composition.value, scaled_s(composition, parameter) / factor};
}

Seconds SensitivityCurve::time_s(double factor) const {
  auto right = std::find_if(points.begin(), points.end(), [&](const Point& point) { return point.factor >= factor; });
  if (right == points.begin()) return right->time_s;
  if (right == points.end()) --right;
  return between(*(right - 1), *right, factor);
}

std::optional<double> SensitivityCurve::next_breakpoint(double factor) const {
  for (std::size_t i = 1; i + 1 < points.size(); ++i) {
    if (points[i].factor > factor) return points[i].factor;
  }
  return std::nullopt;
}

std::optional<double> SensitivityCurve::reaches(Seconds asked_s, double from) const {
  Point before{from, time_s(from)};
  if (before.time_s >= asked_s) return from;
  for (const Point& point : points) {
    if (point.factor <= from) continue;
    if (point.time_s >= asked_s) {
      const double share = (asked_s - before.time_s) / (point.time_s - before.time_s);
      return before.factor + share * (point.factor - before.factor);
    }
    before = point;
  }
  return std::nullopt;
}

CurveSearch::CurveSearch(FactorRange range, std::size_t most_probes) : probes_left_(most_probes) {
  const double middle = range.low < 1 && 1 < range.high ? 1 : range.low + (range.high - range.low) / 3;
  wanted_ = {range.low, middle, (middle + range.high) / 2, range.high};
}

void CurveSearch::look_between(const Probe& left, const Probe& right) {
  const Seconds same_s = kSame * std::max(left.tangent.time_s, right.tangent.time_s);
  const Seconds left_below_s = right.tangent.time_s - left.at(right.factor);  // of the left line at the right end
  const Seconds right_below_s = left.tangent.time_s - right.at(left.factor);
  if (left_below_s < -same_s || right_below_s < -same_s) {
    not_convex_.push_back({left.factor, right.factor});
    return;
  }
  if (left_below_s <= same_s || right_below_s <= same_s) return;  // one line is all there is in between
  const double factor = left.factor + right_below_s / (right.tangent.slope_s - left.tangent.slope_s);
  if (!(left.factor < factor && factor < right.factor)) return;  // they meet at an end, but for rounding
  if (probes_left_ == 0) {
    const Seconds chord_s = between({left.factor, left.tangent.time_s}, {right.factor, right.tangent.time_s}, factor);
    most_above_s_ = std::max(most_above_s_, chord_s - left.at(factor));
    return;
  }
  --probes_left_;
  wanted_.push_back(factor);
  around_.emplace_back(left, right);
}

void CurveSearch::take(std::span<const Tangent> tangents) {
  const std::vector<double> factors = std::exchange(wanted_, {});
  const std::vector<std::pair<Probe, Probe>> around = std::exchange(around_, {});
  std::vector<Probe> probes;
  for (std::size_t i = 0; i < factors.size(); ++i) probes.push_back({factors[i], tangents[i]});
  probes_.insert(probes_.end(), probes.begin(), probes.end());
  if (around.empty()) {
    for (std::size_t i = 1; i < probes.size(); ++i) look_between(probes[i - 1], probes[i]);
  }
  for (std::size_t i = 0; i < around.size(); ++i) {
    look_between(around[i].first, probes[i]);
    look_between(probes[i], around[i].second);
  }
}

SensitivityCurve CurveSearch::curve() const {
  SensitivityCurve curve;
  curve.most_above_s = most_above_s_;
  std::vector<SensitivityCurve::Point> all;
  for (const Probe& probe : probes_) all.push_back({probe.factor, probe.tangent.time_s});
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.factor < b.factor; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_end = i == 0 || i + 1 == all.size();
    if (!is_end) {  // on the line of its neighbours it is no breakpoint
      const Seconds line_s = between(curve.points.back(), all[i + 1], all[i].factor);
      if (std::abs(line_s - all[i].time_s) <= kSame * all[i].time_s) continue;
    }
    curve.points.push_back(all[i]);
  }
  curve.not_convex = not_convex_;
  std::sort(curve.not_convex.begin(), curve.not_convex.end(),
            [](const FactorRange& a, const FactorRange& b) { return a.low < b.low; });
  return curve;
}

Result<std::vector<SensitivityCurve>> find_curves(std::vector<CurveSearch> searches, const ReplayProbes& replay) {
  for (;;) {
    std::vector<ProbeRequest> requests;
    for (std::size_t s = 0; s < searches.size(); ++s) {
      for (const double factor : searches[s].wanted()) requests.push_back({s, factor});
    }
    if (requests.empty()) break;
    std::vector<Tangent> tangents;
    for (std::span<const ProbeRequest> left = requests; !left.empty();) {
      const std::size_t count = std::min(left.size(), kProbesPerPass);
      const Result<std::vector<Tangent>> replayed = replay(left.first(count));
      if (!replayed) return replayed.error();
      tangents.insert(tangents.end(), replayed->begin(), replayed->end());
      left = left.subspan(count);
    }
    std::span<const Tangent> left = tangents;
    for (CurveSearch& search : searches) {
      const std::size_t count = search.wanted().size();
      if (count == 0) continue;
      search.take(left.first(count));
      left = left.subspan(count);
    }
  }
  std::vector<SensitivityCurve> curves;
  for (const CurveSearch& search : searches) curves.push_back(search.curve());
  return curves;
}

}  // namespace lbf::engine
