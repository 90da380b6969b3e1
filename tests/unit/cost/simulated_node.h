// A node with ranks that make MPI calls, a relay that asks the regulator at its own pace, and a clock of its
// own.
#pragma once

#include <functional>
#include <vector>

#include "cost/regulator.h"

namespace lbf::cost {

struct SimulatedProgram {
  int ranks = 4;
  std::function<double(Seconds)> calls_per_s;  // of one rank, at a time since the start
  // What things really cost, whatever the regulator believes.
  Seconds recorded_call_s = 80e-9;  // capture
  Seconds relayed_call_s = 120e-9;  // relay
  Seconds counted_call_s = 8e-9;
  Seconds relayed_count_s = 0;  // relay: records that a counted call leaves
  double bytes_of_count = 0;
  Seconds relay_idle_per_s = 20e-6;
};

struct Moment {
  Seconds at_s = 0;
  CaptureState state = CaptureState::kOpen;
  Seconds program_cpu_s = 0;
  Seconds cost_s = 0;
  bool opened = false;  // the capture was opened at this moment
};

inline constexpr Nanoseconds kStart_ns = 1'795'000'000'123'456'789;

// One moment per millisecond; the relay decides every `pace_s`, and when the last order said so.
std::vector<Moment> simulate(const SimulatedProgram& program, RegulatorSettings settings, const WindowGrid& grid,
                             Seconds duration_s, Seconds pace_s = 0.05);

}  // namespace lbf::cost
