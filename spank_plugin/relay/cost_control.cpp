// CostControl, see cost_control.h.
#include "spank_plugin/relay/cost_control.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lbf::relay {
namespace {

constexpr Nanoseconds kCellNs = 1'000'000'000;
// A ring's call rate as seen so long ago counts 1/e of that of now.
constexpr Seconds kRateMemoryS = 0.5;
// This part of a grant is shared equally, the rest by call rates: a silent rank may begin to call.
constexpr double kEqualPart = 0.5;
constexpr double kMostCallsPerCpuS = 1e9;
constexpr Seconds kMostStoredCallS = 20e-6;
constexpr double kMostRelayShare = 1;
// Of what the node may count each ring gets this many equal parts, or twice its part by call rates: one that uses it up
// ends its capture for good, and most do not need theirs.
constexpr double kCountParts = 4;
// Rings that are all off, though the node has more ranks: the others do not come any more.
constexpr Seconds kLateRingsS = 2;
// Seen for so long, the relay's own rate says more than the prediction.
constexpr Seconds kSeenRelayS = 1;

cost::RegulatorSettings regulator_settings(const CostSettings& settings) {
  cost::RegulatorSettings out;
  out.limit = settings.limit;
  out.relay_limit = settings.relay_limit;
  out.depth_s = cost::kDepthPerRankS * settings.ranks;
  out.recorded_call_s = settings.primitives.recorded_s + settings.primitives.relayed_s;
  out.counted_call_s = settings.primitives.counted_s;
  out.calls_per_s = settings.calls_per_cpu_s * settings.ranks;
  out.alone = settings.alone;
  return out;
}

ring::CaptureOrder order_of(cost::CaptureState state) {
  switch (state) {
    case cost::CaptureState::kOpen:
      return ring::CaptureOrder::kOpen;
    case cost::CaptureState::kCounting:
      return ring::CaptureOrder::kCounting;
    case cost::CaptureState::kOff:
      break;
  }
  return ring::CaptureOrder::kOff;
}

}  // namespace

std::uint64_t window_seed(std::string_view step_key) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : step_key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

CostControl::CostControl(const CostSettings& settings)
    : settings_(settings),
      regulator_(regulator_settings(settings), cost::WindowGrid(kCellNs, settings.seed)),
      relay_share_(cost::default_relay_share(settings.ranks, settings.primitives.looked_s)) {
  predicted_share_ = predict({settings_.calls_per_cpu_s, settings_.primitives.recorded_s, relay_share_});
}

double CostControl::predict(const cost::CostHistory& history) const {
  const std::array parts{cost::PrimitiveForecast{history.calls_per_s, history.call_s},
                         cost::PrimitiveForecast{history.calls_per_s, settings_.primitives.relayed_s},
                         // The relay's looks are the node's: each of its ranks bears a part of them.
                         cost::PrimitiveForecast{1.0 / settings_.ranks, history.relay_share}};
  return cost::predicted_share(parts);
}

void CostControl::expect(const cost::CostHistory& history) {
  const auto known = [](double value, double most) { return value > 0 && value <= most; };
  cost::CostHistory used{settings_.calls_per_cpu_s, settings_.primitives.recorded_s, relay_share_};
  const bool calls_known = known(history.calls_per_s, kMostCallsPerCpuS);
  if (calls_known) used.calls_per_s = history.calls_per_s;
  if (known(history.call_s, kMostStoredCallS)) used.call_s = history.call_s;
  if (known(history.relay_share, kMostRelayShare)) used.relay_share = relay_share_ = history.relay_share;
  predicted_share_ = predict(used);
  const bool called = std::any_of(rings_.begin(), rings_.end(), [](const auto& ring) { return ring.second.calls > 0; });
  if (calls_known && !called) regulator_.expect(used.calls_per_s * settings_.ranks);
}

// What the relay takes beside its share of each call, of the program's processor time.
double CostControl::looks_share() const {
  if (open_program_s_ < kSeenRelayS) return relay_share_ / settings_.ranks;
  return std::max(open_relay_s_ - open_calls_ * settings_.primitives.relayed_s, 0.0) / open_program_s_;
}

double CostControl::corrected_share() const {
  const double calls = regulator_.predicted_share(settings_.ranks);
  return regulator_.recorded_call_seen() ? calls : calls + looks_share();
}

// What a ring may record is gone although the window goes on. A rank that has not called since the window opened does
// not know of it yet and still counts as before.
bool CostControl::used_up(const Ring& ring, const RingUse& use, bool is_new) const {
  if (use.recording || use.off || ring.told.order != ring::CaptureOrder::kOpen) return false;
  if (is_new) return use.recorded_calls > 0;
  if (use.recorded_calls >= ring.told.grant) return true;
  return ring.looked_in_window && use.counted_calls > ring.counted_calls;
}

std::span<const RingOrder> CostControl::decide(Nanoseconds now_ns, cost::NodeUsage usage,
                                               std::span<const RingUse> rings) {
  const Seconds passed_s = last_ns_ == 0 ? 0 : seconds_from_ns(std::max<Nanoseconds>(now_ns - last_ns_, 0));
  last_ns_ = std::max(last_ns_, now_ns);
  const bool was_open = state() == cost::CaptureState::kOpen;
  regulated_s_ += passed_s;
  if (was_open) {
    open_s_ += passed_s;
    open_relay_s_ += std::max(usage.relay_cpu_s - last_usage_.relay_cpu_s, 0.0);
    open_program_s_ += std::max(usage.program_cpu_s - last_usage_.program_cpu_s, 0.0);
    if (usage.recorded_calls > last_usage_.recorded_calls) {
      open_calls_ += static_cast<double>(usage.recorded_calls - last_usage_.recorded_calls);
    }
  }
  last_usage_ = usage;

  for (const RingUse& use : rings) {
    const auto [at, is_new] = rings_.try_emplace(use.id);
    Ring& ring = at->second;
    // Of the window that its process is in: an order for an older one is none.
    if (is_new) {
      ring.told.window = use.window != 0 ? use.window : window_;
      ring.told.grant = std::max<std::uint64_t>(use.recorded_calls, 1);  // 0 would be without bound
    }
    ring.told.window = std::max(ring.told.window, use.window);
    if (was_open && used_up(ring, use, is_new)) {
      usage.must_close = true;
      ++grants_used_up_;
    }
    const std::uint64_t calls = use.recorded_calls + use.counted_calls;
    if (!is_new && passed_s > 0) {
      const double seen_per_s = calls > ring.calls ? static_cast<double>(calls - ring.calls) / passed_s : 0;
      ring.calls_per_s = seen_per_s + (ring.calls_per_s - seen_per_s) * std::exp(-passed_s / kRateMemoryS);
    }
    ring.calls = calls;
    ring.counted_calls = use.counted_calls;
    ring.looked_in_window = was_open;
    ring.seen = true;
  }
  std::erase_if(rings_, [](const auto& entry) { return !entry.second.seen; });
  for (auto& [id, ring] : rings_) ring.seen = false;

  const bool all_off =
      !rings.empty() && std::all_of(rings.begin(), rings.end(), [](const RingUse& use) { return use.off; });
  if (all_off && (rings.size() >= settings_.ranks || regulated_s_ > kLateRingsS)) regulator_.end();
  const cost::Order order = regulator_.decide(now_ns, usage);
  until_ns_ = order.until_ns;
  const bool opens = order.state == cost::CaptureState::kOpen && !was_open;
  if (opens) {
    ++windows_;
    window_ = order.window;
  }
  for (auto& [id, ring] : rings_) {
    ring.told.order = order_of(order.state);
    if (!opens) continue;
    // A ring that began inside a window stays in its own first one until that is over.
    ring.told.window = window_;
    ring.looked_in_window = false;
  }
  if (order.state != cost::CaptureState::kOff) share_out(order, rings);
  orders_.clear();
  for (const RingUse& use : rings) orders_.push_back(rings_.at(use.id).told);
  return orders_;
}

void CostControl::share_out(const cost::Order& order, std::span<const RingUse> rings) {
  double calls_per_s = 0;
  std::size_t taking = 0;
  for (const RingUse& use : rings) {
    if (use.off) continue;
    ++taking;
    calls_per_s += rings_.at(use.id).calls_per_s;
  }
  for (const RingUse& use : rings) {
    Ring& ring = rings_.at(use.id);
    const double equal = taking > 0 ? 1.0 / static_cast<double>(taking) : 0;
    const double by_rate = calls_per_s > 0 ? ring.calls_per_s / calls_per_s : equal;
    const double counted = std::min(1.0, std::max(kCountParts * equal, 2 * by_rate));
    ring.told.counted_grant =
        use.counted_calls +
        std::max<std::uint64_t>(static_cast<std::uint64_t>(counted * static_cast<double>(order.count_grant)), 1);
    if (order.state != cost::CaptureState::kOpen) continue;
    const double share = kEqualPart * equal + (1 - kEqualPart) * by_rate;
    const auto calls = static_cast<std::uint64_t>(share * static_cast<double>(order.call_grant));
    // 0 would be without bound.
    ring.told.grant = std::max<std::uint64_t>(use.off ? use.recorded_calls : use.recorded_calls + calls, 1);
  }
}

}  // namespace lbf::relay
