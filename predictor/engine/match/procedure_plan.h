// ProcedurePlan: which procedures' time a prediction moves or shortens (docs/procedures.md).
//
// Place in the event's way: the matcher makes ops whose work differs by scenario; a Target says which scenario
// it replays.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace lbf::engine {

// Where a procedure's time goes.
enum class MoveTo : std::uint8_t {
  kNowhere,   // it is not needed any more: Critical Path Zeroing (TR Sec. 3.2), or a faster procedure
  kReceiver,  // TR Sec. 3.1: what ran between two inter-process events, the second of them a send, is done by the
              // message's receiver just before its receive
  kSender,    // what ran between a receive and the next inter-process event is done by the message's sender just
              // before its send
  kRank,      // to one rank: as kReceiver where the second event is a send to it, else as kSender where the first is
              // a receive from it
};

struct ProcedureChange {
  std::uint32_t procedure = 0;  // number in the trace
  MoveTo to = MoveTo::kNowhere;
  double share = 1;  // of its time, 0 to 1
};

// Changes that are made together, each procedure at most once. Where one procedure runs inside another, its
// time goes where the innermost changed one's goes; a changed procedure's time is inclusive.
struct Scenario {
  std::vector<ProcedureChange> changes;
  Rank rank = kAnyRank;  // of MoveTo::kRank
};

struct ProcedurePlan {
  std::vector<Scenario> scenarios;      // Target::scenario n is scenarios[n - 1]; 0: as it ran
  std::vector<std::uint32_t> profiled;  // procedures whose exclusive time ops are to carry (critical paths)
  bool empty() const { return scenarios.empty() && profiled.empty(); }
};

// What became of a scenario's procedure time, all ranks together.
struct ScenarioStats {
  Seconds moved_s = 0;
  Seconds removed_s = 0;  // MoveTo::kNowhere
  Seconds stayed_s = 0;   // to be moved, but no message was there to go with
};

// What the trace says of a procedure, all ranks together.
struct ProcedureStats {
  std::uint64_t calls = 0;
  Seconds inclusive_s = 0;
  Seconds exclusive_s = 0;
};

}  // namespace lbf::engine
