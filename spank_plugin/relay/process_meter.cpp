// ProcessMeter, see process_meter.h.
#include "spank_plugin/relay/process_meter.h"

#include <algorithm>

#include "spank_plugin/relay/process_probe.h"

namespace lbf::relay {
namespace {

// Since the last look at RING; at the first one: since it began.
Seconds passed_s(const CapturedRing& ring, const Pass& pass) {
  // Of a ring that says it is older than this: a ring's word is not enough for more.
  constexpr Seconds kOldestRingS = 3600;
  if (ring.metered_ns > 0) return static_cast<double>(pass.now_ns() - std::min(ring.metered_ns, pass.now_ns())) * 1e-9;
  const std::uint64_t at = ring.now_ticks(pass);
  const std::uint64_t began = std::min(ring.reader.identity().start_ticks, at);
  return std::min(static_cast<double>(at - began) * ring.tick_s(pass), kOldestRingS);
}

}  // namespace

void ProcessMeter::observe(std::int32_t pid, std::span<CapturedRing> rings, const RingTotals& ended, Seconds watched_s,
                           const PrimitiveCosts& primitives, const Pass& pass, RankCost& cost) {
  Seconds once_s = ended.once_s;
  for (CapturedRing& ring : rings) {
    if (ring.broken) continue;
    ring.meter.observe(ring.status, ring.tick_s(pass), passed_s(ring, pass), primitives, cost);
    ring.metered_ns = pass.now_ns();
    once_s += ring.once_s();
  }
  cost.once_s = std::max(cost.once_s, once_s);
  if (watched_s > 0) cost.watched_s = watched_s;
  if (const auto delay_ns = read_run_delay_ns(pid)) {
    if (!first_delay_ns_) first_delay_ns_ = *delay_ns;
    const std::uint64_t since_ns = *delay_ns - std::min(*first_delay_ns_, *delay_ns);
    cost.delayed_s = std::max(cost.delayed_s, static_cast<double>(since_ns) * 1e-9);
  }
  const auto cpu_ns = read_process_cpu_ns(pid);
  if (!cpu_ns) return;
  // What was used before MPI_Init returned pays for nothing.
  if (!first_cpu_ns_) {
    first_cpu_ns_ = *cpu_ns;
    first_once_s_ = once_s;
  }
  cost.late_once_s = std::max(cost.late_once_s, once_s - first_once_s_);
  const std::uint64_t used_ns = *cpu_ns - std::min(*first_cpu_ns_, *cpu_ns);
  cost.cpu_s = std::max(cost.cpu_s, static_cast<double>(used_ns) * 1e-9);
}

}  // namespace lbf::relay
