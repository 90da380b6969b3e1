// TickRate, see tick_rate.h.
#include "spank_plugin/relay/tick_rate.h"

#include <ctime>
#include <limits>

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

namespace lbf::relay {

std::uint64_t read_ticks() {
#if defined(__x86_64__) || defined(__i386__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return 0;
#endif
}

bool has_tick_counter() {
#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

ClockReading read_clocks() {
  ClockReading best;
  std::uint64_t best_width = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t before = read_ticks();
    const std::uint64_t ns = monotonic_ns();
    const std::uint64_t after = read_ticks();
    if (after - before >= best_width) continue;  // interrupted in between
    best_width = after - before;
    best = {before + best_width / 2, ns};
  }
  return best;
}

void TickRate::observe(ClockReading reading) {
  observe_over(reading, kMinBaselineNs);
}

void TickRate::observe_last(ClockReading reading) {
  if (!ready()) observe_over(reading, kLeastBaselineNs);
}

void TickRate::observe_over(ClockReading reading, std::uint64_t least_ns) {
  if (fixed_ || reading.monotonic_ns <= first_.monotonic_ns || reading.ticks <= first_.ticks) return;
  const std::uint64_t baseline_ns = reading.monotonic_ns - first_.monotonic_ns;
  if (baseline_ns < least_ns) return;
  seconds_per_tick_ = static_cast<double>(baseline_ns) * 1e-9 / static_cast<double>(reading.ticks - first_.ticks);
  fixed_ = baseline_ns >= kFixedBaselineNs;
}

}  // namespace lbf::relay
