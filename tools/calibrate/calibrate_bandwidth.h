/* The memory bandwidth of a domain's cores: McCalpin's STREAM triad, a[i] = b[i] + s c[i], 24 bytes for each i
 * (https://www.cs.virginia.edu/stream/ref.html), on arrays of each core's own, four times the largest cache. */
#ifndef LBF_TOOLS_CALIBRATE_BANDWIDTH_H
#define LBF_TOOLS_CALIBRATE_BANDWIDTH_H

#include "tools/calibrate/calibrate_cores.h"

/* Prints "bandwidth CORES NS" for 1, 2 ... all cores that compute at the same time: so long 10^9 bytes of all of them
 * together take, for each of some rounds. Numbers of cores take turns, so that a short disturbance spoils none.
 * Then "others PERCENT": of the threads' time others had the processors. Returns the exit status. */
int measure_bandwidth(const struct Cores* cores);

#endif
