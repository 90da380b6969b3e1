// CostMeter, see cost_meter.h.
#include "spank_plugin/relay/cost_meter.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lbf::relay {
namespace {

// A primitive takes longer than this only when its thread was put off the processor meanwhile: no cost of the
// capture.
constexpr Seconds kLongestOnceS = 20e-6;
// Nothing that counts takes less.
constexpr Seconds kShortestOnceS = 0.5e-9;

// Of the two, the capture's own measurement if it can be one.
Seconds ideal_once_s(const PrimitiveReading& reading, Seconds seconds_per_tick, Seconds of_node_s) {
  const Seconds own_s = static_cast<double>(reading.ideal_ticks_256) / 256 * seconds_per_tick;
  return own_s > 0 && own_s <= kLongestOnceS ? own_s : of_node_s;
}

// Mean of the sampled executions between two readings; 0: none, or none that can be believed.
Seconds sampled_once_s(std::uint64_t sampled, std::uint64_t ticks, Seconds seconds_per_tick) {
  if (sampled == 0) return 0;
  const Seconds once_s = static_cast<double>(ticks) * seconds_per_tick / static_cast<double>(sampled);
  return once_s <= kLongestOnceS ? once_s : 0;
}

}  // namespace

CostMeter::Use CostMeter::use_since(const PrimitiveReading& before, const PrimitiveReading& now,
                                    Seconds seconds_per_tick, Seconds passed_s, Seconds ideal_of_node_s) {
  Use use;
  use.believed = now.executions >= before.executions && now.sampled >= before.sampled &&
                 now.sampled_ticks >= before.sampled_ticks && now.dear_ticks >= before.dear_ticks &&
                 static_cast<double>(now.executions - before.executions) * kShortestOnceS <= passed_s;
  if (!use.believed) return use;
  use.executions = now.executions - before.executions;
  const Seconds ideal_s = ideal_once_s(now, seconds_per_tick, ideal_of_node_s);
  // Where no execution was sampled since the last look, all that ever were stand for it.
  Seconds once_s =
      sampled_once_s(now.sampled - before.sampled, now.sampled_ticks - before.sampled_ticks, seconds_per_tick);
  if (once_s == 0) once_s = sampled_once_s(now.sampled, now.sampled_ticks, seconds_per_tick);
  // Nothing is faster than with everything in the cache: a mean below that is the scatter of the samples.
  once_s = std::max(once_s, ideal_s);
  const std::array primitive{cost::PrimitiveUse{use.executions, 1U, once_s, ideal_s}};
  use.cost = cost::observed_cost(primitive);
  const Seconds dear_s = static_cast<double>(now.dear_ticks - before.dear_ticks) * seconds_per_tick;
  use.cost.direct_s += dear_s;
  use.cost.ideal_s += dear_s;
  // A thread cannot spend more than passed.
  use.cost.direct_s = std::min(use.cost.direct_s, passed_s);
  use.cost.ideal_s = std::min(use.cost.ideal_s, passed_s);
  return use;
}

Seconds CostMeter::procedures_since(const ProcedureReading& now, Seconds seconds_per_tick, Seconds passed_s,
                                    RankCost& cost) {
  const ProcedureReading before = std::exchange(procedures_, now);
  // Calls are told at the next MPI call: they may be older than the last look.
  if (now.calls < before.calls || now.record_ticks < before.record_ticks) {
    ++cost.disbelieved;
    return 0;
  }
  const std::uint64_t calls = now.calls - before.calls;
  const Seconds once_s = std::min(static_cast<double>(now.call_ticks_256) / 256 * seconds_per_tick, kLongestOnceS);
  const Seconds spent_s = static_cast<double>(calls) * once_s +
                          static_cast<double>(now.record_ticks - before.record_ticks) * seconds_per_tick;
  // A thread cannot spend more than passed; what is told late was spent since the last word about it.
  procedures_room_s_ += passed_s;
  const Seconds counted_s = std::min(spent_s, procedures_room_s_);
  if (calls > 0) procedures_room_s_ = 0;
  cost.procedure_calls += calls;
  cost.procedures_s += counted_s;
  return counted_s;
}

void CostMeter::observe(const RingStatus& status, Seconds seconds_per_tick, Seconds passed_s,
                        const PrimitiveCosts& node, RankCost& cost) {
  const Use recorded = use_since(recorded_, status.recorded, seconds_per_tick, passed_s, node.recorded_s);
  const Use counted = use_since(counted_, status.counted, seconds_per_tick, passed_s, node.counted_s);
  recorded_ = status.recorded;
  counted_ = status.counted;
  cost.recorded_calls += recorded.executions;
  cost.counted_calls += counted.executions;
  cost.recording_s += recorded.cost.direct_s;
  for (const Use& use : {recorded, counted}) {
    cost.observed.direct_s += use.cost.direct_s;
    cost.observed.ideal_s += use.cost.ideal_s;
  }
  const Seconds procedures_s = procedures_since(status.procedures, seconds_per_tick, passed_s, cost);
  cost.observed.direct_s += procedures_s;
  cost.observed.ideal_s += procedures_s;
  if (!recorded.believed || !counted.believed) ++cost.disbelieved;
}

}  // namespace lbf::relay
