// ProcessMeter, see process_meter.h.
#include "spank_plugin/relay/process_meter.h"

#include <unistd.h>

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

struct ProcessTimes {
  std::uint64_t init_ns = 0;  // 0: not said
  std::uint64_t end_ns = 0;
};

// The process's own word of its processor time.
ProcessTimes told_times(std::span<const CapturedRing> rings) {
  ProcessTimes times;
  for (const CapturedRing& ring : rings) {
    times.init_ns = std::max(times.init_ns, ring.status.init_cpu_ns);
    times.end_ns = std::max(times.end_ns, ring.status.end_cpu_ns);
  }
  return times;
}

// No process uses more in so long a time.
double most_cpu_s(Seconds wall_s) {
  static const long kProcessors = std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L);
  return wall_s * static_cast<double>(kProcessors);
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
  const ProcessTimes told = told_times(rings);
  const auto asked_ns = read_process_cpu_ns(pid);
  if (!asked_ns && told.end_ns == 0) return;
  const std::uint64_t cpu_ns = asked_ns.value_or(told.end_ns);  // of a process that is gone what it said
  // What was used before MPI_Init returned pays for nothing.
  if (!first_cpu_ns_) {
    first_cpu_ns_ = told.init_ns > 0 && told.init_ns <= cpu_ns ? told.init_ns : cpu_ns;
    first_once_s_ = once_s;
  }
  cost.late_once_s = std::max(cost.late_once_s, once_s - first_once_s_);
  Seconds used_s = static_cast<double>(cpu_ns - std::min(*first_cpu_ns_, cpu_ns)) * 1e-9;
  if (!asked_ns) used_s = std::min(used_s, most_cpu_s(cost.watched_s));
  cost.cpu_s = std::max(cost.cpu_s, used_s);
}

}  // namespace lbf::relay
