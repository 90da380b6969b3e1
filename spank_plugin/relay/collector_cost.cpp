// Collector: what the capture of the processes costs, and the orders that keep it below the limit
// (docs/cost-system.md).
#include <algorithm>

#include "spank_plugin/relay/collector.h"
#include "spank_plugin/relay/process_probe.h"

namespace lbf::relay {
namespace {

// Of a ring that says it is older than this: a ring's word is not enough for more.
constexpr Seconds kOldestRingS = 3600;
// Starting the capture of one thread does not take longer, whatever its ring says.
constexpr std::uint64_t kMostOnceNs = 10'000'000'000;

}  // namespace

Seconds Collector::once_of(const RingStatus& status) {
  return static_cast<double>(std::min(status.once_cpu_ns, kMostOnceNs)) * 1e-9;
}

bool Collector::is_off(const Process& process) {
  return std::any_of(process.rings.begin(), process.rings.end(), [](const Ring& ring) { return ring.status.off; });
}

// Until the capture was off; 0: it is, and its rings do not say since when.
Seconds Collector::watched_s(const Process& process, ClockReading now, Seconds seconds_per_tick) const {
  const Seconds until_now_s = elapsed_s(process, now, seconds_per_tick);
  if (!is_off(process)) return until_now_s;
  const Ring& first = process.rings.front();
  std::uint64_t off = 0;
  for (const Ring& ring : process.rings) off = std::max(off, ring.status.off_ticks);
  const std::uint64_t begin = first.status.init_leave_ticks;
  if (off <= begin) return 0;
  const Seconds tick_s = first.reader.identity().clock_source == 0 ? seconds_per_tick : 1e-9;
  return std::min(static_cast<double>(off - begin) * tick_s, until_now_s);
}

void Collector::meter(Process& process, ClockReading now, Seconds seconds_per_tick) {
  RankCost& cost = costs_[process.rank];
  Seconds once_s = process.left.once_s;
  for (Ring& ring : process.rings) {
    if (ring.broken) continue;
    const bool ticks = ring.reader.identity().clock_source == 0;
    const Seconds tick_s = ticks ? seconds_per_tick : 1e-9;
    Seconds passed_s = 0;
    if (ring.metered_ns > 0) {
      passed_s = static_cast<double>(now.monotonic_ns - std::min(ring.metered_ns, now.monotonic_ns)) * 1e-9;
    } else {
      const std::uint64_t at = ticks ? now.ticks : now.monotonic_ns;
      const std::uint64_t began = std::min(ring.reader.identity().start_ticks, at);
      passed_s = std::min(static_cast<double>(at - began) * tick_s, kOldestRingS);
    }
    ring.metered_ns = now.monotonic_ns;
    ring.meter.observe(ring.status, tick_s, passed_s, options_.primitives, cost);
    once_s += once_of(ring.status);
  }
  cost.once_s = std::max(cost.once_s, once_s);
  if (const Seconds until_s = watched_s(process, now, seconds_per_tick); until_s > 0) cost.watched_s = until_s;
  if (const auto delay_ns = read_run_delay_ns(process.pid)) {
    if (!process.first_delay_ns) process.first_delay_ns = *delay_ns;
    const std::uint64_t since_ns = *delay_ns - std::min(*process.first_delay_ns, *delay_ns);
    cost.delayed_s = std::max(cost.delayed_s, static_cast<double>(since_ns) * 1e-9);
  }
  const auto cpu_ns = read_process_cpu_ns(process.pid);
  if (!cpu_ns) return;
  // What was used before MPI_Init returned pays for nothing.
  if (!process.first_total_cpu_ns) {
    process.first_total_cpu_ns = *cpu_ns;
    process.first_once_s = once_s;
  }
  cost.late_once_s = std::max(cost.late_once_s, once_s - process.first_once_s);
  const std::uint64_t used_ns = *cpu_ns - std::min(*process.first_total_cpu_ns, *cpu_ns);
  cost.cpu_s = std::max(cost.cpu_s, static_cast<double>(used_ns) * 1e-9);
}

template <typename Use>
void Collector::for_each_ring(const Use& use) {
  for (auto& [pid, process] : processes_) {
    if (!process.taken || process.ended) continue;
    for (Ring& ring : process.rings) {
      if (!ring.broken) use(process, ring);
    }
  }
}

std::vector<RingUse> Collector::ring_uses() {
  std::vector<RingUse> uses;
  for_each_ring([&](const Process& process, const Ring& ring) {
    // Also a ring whose thread had ended when the process's capture did.
    uses.push_back({ring.number, ring.status.recorded.executions, ring.status.counted.executions,
                    ring.status.recording_window != 0, is_off(process), ring.status.recording_window});
  });
  return uses;
}

void Collector::give_orders(std::span<const RingOrder> orders, ClockReading now, BatchBuilder& out) {
  std::size_t i = 0;
  for_each_ring([&](Process& process, Ring& ring) {
    if (i == orders.size()) return;
    const RingOrder& order = orders[i++];
    if (auto done = ring.reader.write_control(order.order, order.window, order.grant, order.counted_grant); !done) {
      close_ring(process, ring, done.error(), now, out);
    }
  });
}

}  // namespace lbf::relay
