// CostMeter: what the primitives of one ring cost, as far as the ring can be believed.
//
// Place in the cost system: ring -> RingReader -> *CostMeter* -> CostControl. The counters belong to the user's
// program, which may write anything into them: what a thread cannot have done in the time that passed does not
// count, and is counted as disbelieved (docs/cost-system.md, "The data's way").
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "cost/observed_cost.h"
#include "spank_plugin/relay/ring_reader.h"

namespace lbf::relay {

// What the node's own primitives cost, measured by the relay when it starts (primitive_probe.h).
struct PrimitiveCosts {
  Seconds recorded_s;    // capture: one recorded call, everything in the cache
  Seconds counted_s;     // capture: one counted call
  Seconds relayed_s;     // relay: one event encoded and compressed
  Seconds looked_s = 0;  // relay: one look at one ring in which nothing is new
};

// What the capture of one rank cost so far, all its threads, ended ones included.
struct RankCost {
  cost::ObservedCost observed;
  Seconds recording_s = 0;  // of observed.direct_s: recorded calls
  std::uint64_t recorded_calls = 0;
  std::uint64_t counted_calls = 0;
  std::uint64_t procedure_calls = 0;  // of measured procedures
  Seconds procedures_s = 0;           // what they cost; in `observed` too
  Seconds cpu_s = 0;                  // processor time of the process since it was taken, the capture's included
  Seconds once_s =
      0;  // what was spent once, whatever was ordered: starting the capture, choosing procedures; not in `observed`
  Seconds late_once_s = 0;        // of it what is in cpu_s: threads that begin late, procedures of "auto"
  std::uint64_t disbelieved = 0;  // looks at counters that cannot be true
  Seconds delayed_s = 0;          // ready to run without a processor, since it was taken
  Seconds watched_s =
      0;  // wall time in which calls were recorded or counted: since MPI_Init, until the capture was off

  Seconds program_cpu_s() const { return std::max(cpu_s - observed.direct_s - late_once_s, 0.0); }
};

class CostMeter {
 public:
  // Adds to COST what STATUS has beyond the last look, PASSED_S before (of the first one: since the ring began).
  // NODE stands in for what the capture has not measured.
  void observe(const RingStatus& status, Seconds seconds_per_tick, Seconds passed_s, const PrimitiveCosts& node,
               RankCost& cost);

 private:
  struct Use {
    cost::ObservedCost cost;
    std::uint64_t executions = 0;
    bool believed = true;
  };
  static Use use_since(const PrimitiveReading& before, const PrimitiveReading& now, Seconds seconds_per_tick,
                       Seconds passed_s, Seconds ideal_of_node_s);
  // Measured calls cost what they cost when they were calibrated: nobody times them while they run.
  Seconds procedures_since(const ProcedureReading& now, Seconds seconds_per_tick, Seconds passed_s, RankCost& cost);

  PrimitiveReading recorded_;
  PrimitiveReading counted_;
  ProcedureReading procedures_;
  Seconds procedures_room_s_ = 0;  // passed since calls were told last
};

}  // namespace lbf::relay
