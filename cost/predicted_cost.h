// Predicted cost: what the capture will cost, before it is switched on (Hollingsworth & Miller, Sec. 3.1).
//
// Place in the cost system: history of the program (db) or defaults -> *predicted cost* -> regulator's start,
// db. "We multiply the instrumentation overhead by the point's expected execution frequency"; the
// frequencies are a guess until the program has run: "since we adjust this value based on runtime data the
// initial value does not need to be accurate".
#pragma once

#include <span>

#include "base/units.h"

namespace lbf::cost {

struct PrimitiveForecast {
  double executions_per_s = 0;  // per second of the program's processor time
  Seconds once_s = 0;           // one execution, measured on the node; the relay's share with it
};

// C_pred as a share of the program's processor time: 0.02 is 2 %.
double predicted_share(std::span<const PrimitiveForecast> primitives);

// What earlier runs let expect (docs/formats/http-v1.md, the answer of a registration). 0: no run tells.
struct CostHistory {
  double calls_per_s = 0;  // per second and rank
  Seconds call_s = 0;      // C_obs_direct of one recorded call
  // The relay's processor time on a node per second of one rank's, beside what each recorded call takes there.
  double relay_share = 0;
};

// While calls are recorded the relay looks at its rings at least this often (docs/relay.md, "Wake-ups"); more often
// only where rings fill, which is another part.
inline constexpr double kLooksPerS = 5;
// What one such look takes beside what the relay can measure of it before the program runs: waking up, and finding
// nothing in the caches that the ranks use meanwhile. docs/cost-system.md, "Predicted cost", says what it was seen to
// be.
inline constexpr Seconds kDefaultLookS = 130e-6;
// One recorded call in the relay (docs/relay.md, "Cost"), where a history of many programs is compared.
inline constexpr Seconds kDefaultRelayedCallS = 70e-9;

// CostHistory::relay_share of a node with so many ranks where no run tells. `looked_s`: one ring looked at.
inline double default_relay_share(double ranks, Seconds looked_s) {
  return kLooksPerS * (kDefaultLookS + ranks * looked_s);
}

// A frequency as later runs should expect it: what was expected, corrected by what run number `runs` saw. The
// mean of all runs; of more than `most` recent ones count more. The default before the first run counts for
// nothing. REQUIRES: runs >= 1, most >= 1.
double corrected(double expected, double seen, unsigned runs, unsigned most = 4);

}  // namespace lbf::cost
