// Sensitivity, see sensitivity.h.
#include "advisor/advice/sensitivity.h"

#include <fmt/format.h>

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

// TOML tells floats by their point or exponent.
std::string number(double value) {
  std::string text = fmt::format("{:.17g}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string curve(const char* key, const engine::CostCurve& costs, double first, double beyond) {
  if (costs.points().empty()) return {};
  std::string text = fmt::format("{} = [", key);
  const Seconds least_s = costs.points().front().second;
  for (const auto& [bytes, time_s] : costs.points()) {
    // A curve need not rise: never below 0.
    const double scaled_us = std::max(0.0, 1e6 * (least_s * first + (time_s - least_s) * beyond));
    text += fmt::format("[{}, {}], ", bytes, number(scaled_us));
  }
  return text + "]\n";
}

std::string path_text(const std::string& locality, const engine::PathCost& path, double latency, double bandwidth) {
  std::string text = fmt::format("[[path]]\nlocality = \"{}\"\n", locality);
  std::string flight = curve("table", path.flight, latency, 1 / bandwidth);
  text += flight.empty() ? "table = [[0, 0.0]]\n" : flight;
  text += curve("send_cpu", path.send_cpu, 1, 1) + curve("recv_cpu", path.recv_cpu, 1, 1);
  if (path.eager_limit_bytes < (Bytes{1} << 62))
    text += fmt::format("eager_limit_bytes = {}\n", path.eager_limit_bytes);
  // What the library's polling costs stays.
  for (const auto& [key, cost_s] :
       {std::pair{"first_message_us", path.first_message_s}, std::pair{"first_peer_us", path.first_peer_s},
        std::pair{"turn_us", path.turn_s}, std::pair{"switch_us", path.switch_s}}) {
    if (cost_s > 0) text += fmt::format("{} = {}\n", key, number(1e6 * cost_s));
  }
  return text;
}

}  // namespace

std::string Sensitivity::bound_by() const {
  const std::vector<std::pair<double, std::string>> shares{
      {processor_share, "processor speed"}, {bandwidth_share, "bandwidth"}, {latency_share, "latency"}};
  const auto most =
      std::max_element(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return most->first < kNoticeableShare ? "nothing of these" : most->second;
}

Result<std::shared_ptr<const engine::Network>> scaled(const std::shared_ptr<const engine::Network>& network,
                                                      std::uint32_t levels, double latency, double bandwidth) {
  if (network->name() == "zero") return network;
  std::string text = fmt::format("name = \"{}\"\n", network->name());
  text += path_text("self-node", network->path(0), latency, bandwidth);
  text += path_text("remote", network->path(engine::kUnknownHops), latency, bandwidth);
  for (std::uint32_t level = 1; level <= levels; ++level) {
    if (level == 1 || &network->path(level) != &network->path(level - 1))
      text += path_text(fmt::format("hop:{}", level), network->path(level), latency, bandwidth);
  }
  // Work, as protocol processing is.
  if (network->local().known())
    text += "[local]\n" + curve("copy", network->local().copy, 1, 1) + curve("reduce", network->local().reduce, 1, 1);
  if (network->fork_join_s().known()) {
    text += "[threads]\nfork_join_us = [";
    for (const auto& [threads, time_s] : network->fork_join_s().points())
      text += fmt::format("[{}, {}], ", threads, number(1e6 * time_s));
    text += "]\n";
  }
  const double link = network->contention_bytes_per_s() * bandwidth / 1e6;
  if (network->contention() != engine::Contention::kNone && std::isfinite(link) && link > 0) {
    text += fmt::format("[contention]\nmodel = \"{}\"\nbandwidth_MBps = {}\n",
                        network->contention() == engine::Contention::kBus ? "bus" : "nic", number(link));
  }
  Result<engine::Network> made = engine::Network::parse(text, network->name());
  if (!made) return Error{ErrorCode::kInternal, "a variant of the network: " + made.error().message};
  return std::make_shared<const engine::Network>(std::move(*made));
}

Result<Sensitivity> sensitivity(const engine::Target& target, const ReplayBatch& replay) {
  Sensitivity curves;
  for (const double factor : {0.0, 0.5, 2.0, 4.0}) curves.latency.push_back({factor, 0});
  for (const double factor : {0.5, 2.0, 4.0, kInfinite}) curves.bandwidth.push_back({factor, 0});
  for (const double factor : {0.5, 2.0, 4.0, kInfinite}) curves.speed.push_back({factor, 0});

  std::vector<engine::Target> targets{target};
  const std::uint32_t levels = target.topology == nullptr ? 0 : target.topology->levels();
  const auto add_network = [&](double latency, double bandwidth) -> Result<void> {
    auto network = scaled(target.network, levels, latency, finite(bandwidth));
    if (!network) return network.error();
    targets.push_back(target);
    targets.back().network = std::move(*network);
    return {};
  };
  for (const SensitivityPoint& point : curves.latency) {
    if (Result<void> added = add_network(point.factor, 1); !added) return added.error();
  }
  for (const SensitivityPoint& point : curves.bandwidth) {
    if (Result<void> added = add_network(1, point.factor); !added) return added.error();
  }
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
