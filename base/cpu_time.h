// Processor time of the calling thread.
#pragma once

#include <ctime>

#include "base/units.h"

namespace lbf {

// Of the calling thread since it began (clock_gettime(2), CLOCK_THREAD_CPUTIME_ID).
inline Seconds thread_cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<Seconds>(now.tv_sec) + 1e-9 * static_cast<Seconds>(now.tv_nsec);
}

}  // namespace lbf
