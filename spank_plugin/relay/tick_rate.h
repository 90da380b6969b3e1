// TickRate: how long one tick of the ring's clock is.
//
// Place in the event's way: ring -> *relay* -> batches: capture writes raw TSC values (docs of
// spank_plugin/capture/ring.h), the relay makes times of them. The rate comes from the relay's own pairs of
// TSC and CLOCK_MONOTONIC readings, never from the program's: over a baseline of at least kMinBaselineNs
// before the first conversion (kLeastBaselineNs where the step is over before), refined until kFixedBaselineNs and
// constant from then on. Only differences of ticks are converted, so a refinement never makes a step in time.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"

namespace lbf::relay {

struct ClockReading {
  std::uint64_t ticks = 0;
  std::uint64_t monotonic_ns = 0;
};

inline constexpr std::uint64_t kMinBaselineNs = 50'000'000;
inline constexpr std::uint64_t kLeastBaselineNs = 2'000'000;  // of a step that is over: 20 ns in it are 1e-5
inline constexpr std::uint64_t kFixedBaselineNs = 2'000'000'000;

// True where ring clock source 0 (the TSC, or the generic timer on aarch64) can be read.
bool has_tick_counter();
// Both clocks as close together as they can be read (the closest of several tries).
ClockReading read_clocks();
std::uint64_t monotonic_ns();
// Of the counter that ring clock source 0 is.
std::uint64_t read_ticks();

class TickRate {
 public:
  explicit TickRate(ClockReading first) : first_(first) {}

  // Refines the rate, until it is fixed.
  void observe(ClockReading reading);
  // The same where nothing comes any more: a shorter baseline has to do.
  void observe_last(ClockReading reading);
  bool ready() const { return seconds_per_tick_ > 0; }
  // REQUIRES: ready()
  Seconds seconds_per_tick() const { return seconds_per_tick_; }

 private:
  void observe_over(ClockReading reading, std::uint64_t least_ns);

  ClockReading first_;
  Seconds seconds_per_tick_ = 0;
  bool fixed_ = false;
};

}  // namespace lbf::relay
