// The control record `cost` (docs/formats/http-v1.md): what the capture of a program costs on one node, and what was
// decided about it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "spank_plugin/relay/cost_control.h"
#include "spank_plugin/relay/cost_meter.h"

namespace lbf::relay {

struct CostFacts {
  std::uint32_t node_index = 0;
  const CostControl* control = nullptr;  // nullptr: nothing is regulated
  PrimitiveCosts primitives{};
  Seconds relay_cpu_s = 0;   // since the first process was taken
  Seconds once_relay_s = 0;  // before
  Seconds pressed_s = 0;     // the capture was closed because too much waited to be sent
  Seconds held_up_s = 0;     // other ranks, by the relay (cost/held_up.h)
};

// Without the list of ranks where it would be too long for a control record.
std::string cost_record(const CostFacts& facts, const std::map<Rank, RankCost>& ranks);

}  // namespace lbf::relay
