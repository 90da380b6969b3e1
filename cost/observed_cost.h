// Observed cost: what the capture really costs the program, as a range (Hollingsworth & Miller, Sec. 3.2).
//
// Place in the cost system: rings (counts of primitives, sampled ticks) -> *observed cost* -> regulator, db.
// C_obs_direct is the time spent in instrumentation, found by statistical sampling: of each primitive some
// executions are timed, and their mean counts for all. C_obs_ideal is what the same executions take when
// all memory is in the cache, measured once on the node. What is beyond it is waiting for memory, and each
// such miss may have cost the program a line that it must fetch again, or not:
//   C_obs_cache = C_obs_direct - C_obs_ideal
//   C_obs_low   = C_obs_direct
//   C_obs_high  = C_obs_direct + C_obs_cache
#pragma once

#include <cstdint>
#include <span>

#include "base/units.h"

namespace lbf::cost {

// One primitive of the capture, one or several threads.
struct PrimitiveUse {
  std::uint64_t executions = 0;
  std::uint64_t sampled = 0;  // executions that were timed
  Seconds sampled_s = 0;      // what these took together
  Seconds ideal_s = 0;        // one execution with all memory in the cache
};

struct ObservedCost {
  Seconds direct_s = 0;
  Seconds ideal_s = 0;

  Seconds cache_s() const { return direct_s > ideal_s ? direct_s - ideal_s : 0; }
  Seconds low_s() const { return direct_s; }
  Seconds high_s() const { return direct_s + cache_s(); }
};

// A primitive that was never sampled counts as ideal.
ObservedCost observed_cost(std::span<const PrimitiveUse> primitives);

}  // namespace lbf::cost
