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

// A frequency as later runs should expect it: what was expected, corrected by what run number `runs` saw. The
// mean of all runs; of more than `most` recent ones count more. The default before the first run counts for
// nothing. REQUIRES: runs >= 1, most >= 1.
double corrected(double expected, double seen, unsigned runs, unsigned most = 4);

}  // namespace lbf::cost
