// A node with ranks whose capture obeys the control word of its ring, and a clock of its own: what CostControl
// decides is carried out as spank_plugin/capture/ring.h says.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "spank_plugin/relay/cost_control.h"

namespace lbf::relay {

// One rank with one thread.
struct SimulatedRank {
  std::function<double(Seconds)> calls_per_s;
  Seconds starts_s = 0;
  std::uint64_t first_grant = 0;  // LBF_CAPTURE_GRANT
  bool answers = true;            // false: never looks at its control word again (it makes no call)

  // What its ring holds.
  RingOrder control{};
  std::uint32_t recording_window = 1;
  std::uint32_t last_window = 1;
  double recorded = 0;
  double counted = 0;
  bool off = false;
  std::uint64_t windows_seen = 1;

  // TICK_S of calls.
  void run(Seconds at_s, Seconds tick_s) {
    double calls = answers && at_s >= starts_s ? calls_per_s(at_s) * tick_s : 0;
    if (calls <= 0) return;
    if (control.order == ring::CaptureOrder::kOff) off = true;
    if (off) recording_window = 0;
    if (control.order == ring::CaptureOrder::kCounting) recording_window = 0;
    if (!off && control.order == ring::CaptureOrder::kOpen && control.window != last_window) {
      recording_window = last_window = control.window;
      ++windows_seen;
    }
    if (off) return;
    if (recording_window != 0) {
      const double left = control.grant == 0 ? calls : std::max(static_cast<double>(control.grant) - recorded, 0.0);
      const double now = std::min(calls, left);
      recorded += now;
      calls -= now;
      if (calls > 0) recording_window = 0;
    }
    if (control.counted_grant != 0 && counted + calls >= static_cast<double>(control.counted_grant)) {
      calls = std::max(static_cast<double>(control.counted_grant) - counted, 0.0);
      off = true;
    }
    counted += calls;
  }
};

struct SimulatedCosts {
  Seconds recorded_s = 80e-9;
  Seconds relayed_s = 120e-9;
  Seconds counted_s = 8e-9;
  Seconds relay_look_s = 30e-6;
};

struct SimulatedMoment {
  Seconds at_s = 0;
  cost::CaptureState state = cost::CaptureState::kOpen;
  Seconds program_cpu_s = 0;
  Seconds cost_s = 0;
  std::size_t recording = 0;  // ranks
};

inline constexpr Nanoseconds kSimulationStartNs = 1'795'000'000'123'456'789;

// One moment per millisecond; the relay looks every 50 ms, and when the control asked for it.
inline std::vector<SimulatedMoment> simulate(CostControl& control, std::vector<SimulatedRank>& ranks,
                                             Seconds duration_s, const SimulatedCosts& costs = {},
                                             const std::function<bool(Seconds)>& pressed = {}) {
  constexpr Nanoseconds kTickNs = 1'000'000;
  constexpr Nanoseconds kPaceNs = 50'000'000;
  const Seconds tick_s = seconds_from_ns(kTickNs);
  std::vector<SimulatedMoment> moments;
  Seconds relay_cpu_s = 0;
  Seconds program_cpu_s = 0;
  Nanoseconds decide_ns = kSimulationStartNs;
  double relayed = 0;
  for (SimulatedRank& rank : ranks) {
    rank.control.grant = rank.first_grant;
    rank.control.counted_grant = rank.first_grant * ring::kFirstCountedPerRecorded;
  }
  for (Nanoseconds now_ns = kSimulationStartNs; seconds_from_ns(now_ns - kSimulationStartNs) < duration_s;
       now_ns += kTickNs) {
    const Seconds at_s = seconds_from_ns(now_ns - kSimulationStartNs);
    double recorded = 0;
    double counted = 0;
    for (SimulatedRank& rank : ranks) {
      rank.run(at_s, tick_s);
      recorded += rank.recorded;
      counted += rank.counted;
      if (at_s >= rank.starts_s) program_cpu_s += tick_s;
    }
    relay_cpu_s += (recorded - relayed) * costs.relayed_s;
    relayed = recorded;
    const Seconds capture_s = recorded * costs.recorded_s + counted * costs.counted_s;
    if (now_ns >= decide_ns) {
      relay_cpu_s += costs.relay_look_s;
      cost::NodeUsage usage;
      usage.program_cpu_s = program_cpu_s;
      usage.capture_s = capture_s;
      usage.relay_cpu_s = relay_cpu_s;
      usage.recorded_calls = static_cast<std::uint64_t>(recorded);
      usage.counted_calls = static_cast<std::uint64_t>(counted);
      usage.must_close = pressed && pressed(at_s);
      std::vector<RingUse> uses;
      std::vector<SimulatedRank*> of;
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (at_s < ranks[i].starts_s) continue;
        uses.push_back({i + 1, static_cast<std::uint64_t>(ranks[i].recorded),
                        static_cast<std::uint64_t>(ranks[i].counted), ranks[i].recording_window != 0, ranks[i].off,
                        ranks[i].recording_window});
        of.push_back(&ranks[i]);
      }
      const auto orders = control.decide(now_ns, usage, uses);
      for (std::size_t i = 0; i < of.size(); ++i) of[i]->control = orders[i];
      decide_ns = std::min(now_ns + kPaceNs, std::max(control.until_ns(), now_ns + 1));
    }
    const auto recording =
        std::count_if(ranks.begin(), ranks.end(), [](const SimulatedRank& rank) { return rank.recording_window != 0; });
    moments.push_back(
        {at_s, control.state(), program_cpu_s, capture_s + relay_cpu_s, static_cast<std::size_t>(recording)});
  }
  return moments;
}

}  // namespace lbf::relay
