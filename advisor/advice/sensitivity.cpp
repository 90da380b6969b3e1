// Sensitivity, see sensitivity.h.
#include "advisor/advice/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lbf::advisor {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kAsGoodAsInfinite = 1e9;
constexpr double kNoticeableShare = 0.05;

double finite(double factor) {
  return std::min(factor, kAsGoodAsInfinite);
}

}  // namespace

std::string Sensitivity::bound_by() const {
  const std::vector<std::pair<double, std::string>> shares{
      {processor_share, "processor speed"}, {bandwidth_share, "bandwidth"}, {latency_share, "latency"}};
  const auto most =
      std::max_element(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return most->first < kNoticeableShare ? "nothing of these" : most->second;
}

Result<Sensitivity> sensitivity(const engine::Target& target, const ReplayBatch& replay) {
  Sensitivity curves;
  for (const double factor : {0.0, 0.5, 2.0, 4.0}) curves.latency.push_back({factor, 0});
  for (const double factor : {0.5, 2.0, 4.0, kInfinite}) curves.bandwidth.push_back({factor, 0});
  for (const double factor : {0.5, 2.0, 4.0, kInfinite}) curves.speed.push_back({factor, 0});

  std::vector<engine::Target> targets{target};
  const auto add_network = [&](const engine::NetworkFactors& factors) {
    targets.push_back(target);
    targets.back().network = std::make_shared<const engine::Network>(target.network->scaled(factors));
  };
  for (const SensitivityPoint& point : curves.latency) add_network({.latency = point.factor});
  for (const SensitivityPoint& point : curves.bandwidth) add_network({.gap = 1 / finite(point.factor)});
  for (const SensitivityPoint& point : curves.speed) {
    targets.push_back(target);
    targets.back().speed *= finite(point.factor);
    for (double& speed : targets.back().speed_of_node) speed *= finite(point.factor);
  }

  const Result<std::vector<Replayed>> replayed = replay(targets);
  if (!replayed) return replayed.error();
  std::size_t next = 0;
  curves.time_s = (*replayed)[next++].time_s;
  for (auto* const points : {&curves.latency, &curves.bandwidth, &curves.speed}) {
    for (SensitivityPoint& point : *points) point.time_s = (*replayed)[next++].time_s;
  }
  const auto saved = [&](Seconds perfect_s) {
    return curves.time_s > 0 ? std::max(0.0, 1 - perfect_s / curves.time_s) : 0;
  };
  curves.latency_share = saved(curves.latency.front().time_s);
  curves.bandwidth_share = saved(curves.bandwidth.back().time_s);
  curves.processor_share = saved(curves.speed.back().time_s);
  return curves;
}

}  // namespace lbf::advisor
