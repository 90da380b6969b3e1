// MeasuredRun: what is known of the run that predictions are compared with.
#pragma once

#include "base/units.h"

namespace lbf::daemon {

struct MeasuredRun {
  bool is_finished = false;    // all its streams ended and were replayed
  bool is_partial = false;     // something of it is missing, or contradicts itself
  Seconds measured_s = 0;      // 0: not known
  Seconds longest_stop_s = 0;  // of a rank, in a suspended job
  Seconds lost_s = 0;          // of a rank, to others than the job, where that shows
  std::uint64_t threads = 0;   // of the largest team of a parallel region; 0: none was seen

  bool is_whole() const { return is_finished && !is_partial; }
};

}  // namespace lbf::daemon
