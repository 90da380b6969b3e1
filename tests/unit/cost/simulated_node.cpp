#include "tests/unit/cost/simulated_node.h"

#include <algorithm>
#include <cmath>

namespace lbf::cost {

std::vector<Moment> simulate(const SimulatedProgram& program, RegulatorSettings settings, const WindowGrid& grid,
                             Seconds duration_s, Seconds pace_s) {
  settings.depth_s = 2.0 * program.ranks;
  Regulator regulator(settings, grid);
  NodeUsage usage;
  std::vector<Moment> moments;
  Order order;
  double grant = 0;
  double count_grant = 1e18;
  bool ended = false;
  Nanoseconds decide_ns = kStart_ns;
  double recorded = 0;
  double counted = 0;
  double counting_bytes = 0;
  constexpr Nanoseconds kTick_ns = 1'000'000;
  const Nanoseconds end_ns = kStart_ns + static_cast<Nanoseconds>(duration_s * 1e9);
  for (Nanoseconds now_ns = kStart_ns; now_ns < end_ns; now_ns += kTick_ns) {
    const Seconds at_s = seconds_from_ns(now_ns - kStart_ns);
    bool opened = false;
    if (now_ns >= decide_ns) {
      usage.recorded_calls = static_cast<std::uint64_t>(recorded);
      usage.counted_calls = static_cast<std::uint64_t>(counted);
      usage.counting_bytes = static_cast<std::uint64_t>(counting_bytes);
      const bool was_open = order.state == CaptureState::kOpen && now_ns > kStart_ns;
      order = regulator.decide(now_ns, usage);
      opened = !was_open && order.state == CaptureState::kOpen;
      grant = static_cast<double>(order.call_grant);
      count_grant = static_cast<double>(order.count_grant);
      decide_ns = std::min(now_ns + static_cast<Nanoseconds>(pace_s * 1e9), std::max(order.until_ns, now_ns + 1));
    }
    const Seconds tick_s = seconds_from_ns(kTick_ns);
    const double calls = program.calls_per_s(at_s) * program.ranks * tick_s;
    const double open_calls = order.state == CaptureState::kOpen && !ended ? std::min(calls, grant) : 0;
    double counted_calls = order.state == CaptureState::kOff || ended ? 0 : calls - open_calls;
    if (counted_calls >= count_grant) {
      counted_calls = count_grant;
      ended = true;
      regulator.end();
    }
    count_grant -= counted_calls;
    grant -= open_calls;
    recorded += open_calls;
    counted += counted_calls;
    usage.program_cpu_s += program.ranks * tick_s;
    usage.capture_s += open_calls * program.recorded_call_s + counted_calls * program.counted_call_s;
    usage.relay_cpu_s += open_calls * program.relayed_call_s + counted_calls * program.relayed_count_s +
                         program.relay_idle_per_s * tick_s;
    counting_bytes += counted_calls * program.bytes_of_count;
    moments.push_back({at_s, order.state, usage.program_cpu_s, usage.capture_s + usage.relay_cpu_s, opened});
  }
  return moments;
}

}  // namespace lbf::cost
