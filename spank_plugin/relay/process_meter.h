// ProcessMeter: what the capture of one process costs, from its rings and from what /proc says of it
// (docs/cost-system.md).
//
// Place in the cost system: ring -> *ProcessMeter* (CostMeter for each ring) -> RankCost -> CostControl.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "spank_plugin/relay/captured_ring.h"
#include "spank_plugin/relay/cost_meter.h"
#include "spank_plugin/relay/pass.h"

namespace lbf::relay {

class ProcessMeter {
 public:
  // Adds what was spent since the last look to COST. ENDED: rings that were given back. WATCHED_S: for how
  // long calls were recorded or counted; 0: not known.
  void observe(std::int32_t pid, std::span<CapturedRing> rings, const RingTotals& ended, Seconds watched_s,
               const PrimitiveCosts& primitives, const Pass& pass, RankCost& cost);

 private:
  // When the process was taken:
  std::optional<std::uint64_t> first_cpu_ns_;    // of all its threads
  std::optional<std::uint64_t> first_delay_ns_;  // ready to run without a processor
  Seconds first_once_s_ = 0;                     // what its rings said
};

}  // namespace lbf::relay
