// Common looks: the relays of all nodes look at their rings at the same moments.
//
// A look holds up the ranks of its node where no processor is idle, and with them all that wait for them. On
// many nodes at many moments these delays add up; at one moment they pass together (Petrini, Kerbyson &
// Pakin, "The Case of the Missing Supercomputer Performance", SC 2003; Jones et al., "Improving the
// Scalability of Parallel Jobs by adding Parallel Awareness to the Operating System", SC 2003).
#pragma once

#include <algorithm>

#include "base/units.h"

namespace lbf::relay {

// Until the next multiple of PERIOD_NS on CLOCK_REALTIME, which nodes agree on as far as their clocks do; the
// one after it where that is less than a millisecond away. Those of periods that divide each other fall
// together.
inline Nanoseconds until_common_look_ns(Nanoseconds realtime_ns, Nanoseconds period_ns) {
  constexpr Nanoseconds kTooSoonNs = 1'000'000;
  const Nanoseconds rest_ns = period_ns - realtime_ns % period_ns;
  return rest_ns < kTooSoonNs ? rest_ns + period_ns : rest_ns;
}

// Between looks while calls are recorded: such that a ring is hardly ever more than an eighth full when it is looked
// at. Sleeps grow from SLEEP_MS, after which the FULLEST ring was so full, to LONGEST_MS at most.
inline int next_sleep_ms(int sleep_ms, double fullest, int shortest_ms, int longest_ms) {
  if (fullest > 0.25) return shortest_ms;
  if (fullest > 0.125) return std::max(sleep_ms / 2, shortest_ms);
  if (fullest > 0.03) return std::min(sleep_ms, longest_ms);
  constexpr int kCommonMs = 50;  // from here on they end together: multiples of it
  const bool becomes_common = sleep_ms < kCommonMs && sleep_ms * 2 > kCommonMs;
  return std::min(becomes_common ? kCommonMs : sleep_ms * 2, longest_ms);
}

}  // namespace lbf::relay
