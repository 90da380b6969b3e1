// Extrapolation: from what was captured to the whole run, with an interval.
//
// Place in the event's way: replay of captured windows -> *extrapolation* -> db. Above the overhead limit the
// capture records in windows (cost/regulator.h), and may end for good before the program. Of each window it is known
// how long it took and how long it is predicted to take on a target; the rest of the run is taken to behave as the
// windows do. The estimator is the ratio estimator of survey sampling (Cochran, Sampling Techniques, ch. 6): unseen
// time times sum(predicted) / sum(measured), with the variance of the ratio from the windows' own scatter around it.
//
// Where windows are few, blocks of what was seen (predictor/engine/match/blocks.h) stand for them. They lie side by
// side: how much their mean differs from that of the rest cannot be read off their scatter alone, because what changes
// slowly changes little within them. So their interval is widened with the share that is extrapolated, as if each
// doubling of the time scattered once more as much as one block does (1/f noise: its variance is the same on
// every scale). docs/cost-system.md, "Extrapolation".
#pragma once

#include <cstddef>
#include <span>

#include "base/units.h"

namespace lbf::engine {

// One window, one block, or one stretch that was captured whole.
struct SeenStretch {
  Seconds measured_s = 0;   // in the run that was captured
  Seconds predicted_s = 0;  // on the target
};

struct Extrapolated {
  Seconds predicted_s = 0;  // the whole run on the target
  Seconds low_s = 0;        // 95 % interval; both equal predicted_s where everything was seen,
  Seconds high_s = 0;       // 0 and kNeverS where it cannot be told (too little was seen)
  double seen_share = 1;    // of the run's measured time
};

// So many windows speak for themselves; of fewer, their blocks.
inline constexpr std::size_t kEnoughWindows = 4;
// Two differ, and Student's t of one degree of freedom says what that is worth. That less than so many do not differ at
// all says nothing.
inline constexpr std::size_t kFewestBlocks = 2;
inline constexpr std::size_t kBlocksThatMayAgree = 4;
// Blocks of less than this share of the run lie in one moment of it: of the rest they say nothing.
inline constexpr double kLeastShareOfBlocks = 0.01;

// `start` was captured from the first event on without a break; `windows` are the later ones in their order;
// `blocks`: what the windows, or where there is none the start, are made of; `run_s` is the measured time of the whole
// run. Where there is no window the start stands for the rest. REQUIRES: times >= 0. Seen time beyond `run_s` counts
// as all of it.
Extrapolated extrapolate(const SeenStretch& start, std::span<const SeenStretch> windows, Seconds run_s,
                         std::span<const SeenStretch> blocks = {});

}  // namespace lbf::engine
