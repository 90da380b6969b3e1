/* The processors that lbf-calibrate-node may use, and their memory domains, from sched_getaffinity(2) and
 * /sys/devices/system (Linux, sysfs-devices-system-cpu). One hardware thread of each core counts. */
#ifndef LBF_TOOLS_CALIBRATE_CORES_H
#define LBF_TOOLS_CALIBRATE_CORES_H

#include <stdint.h>

enum { kMostCores = 4096 };

struct Cores {
  int domains;         /* memory domains of the node that have processors */
  int online;          /* cores of the measured domain, also those that this process may not use */
  int count;           /* cores of it that it may use: the domain is that with the most of them */
  int cpu[kMostCores]; /* their numbers */
  int64_t cache_bytes; /* of the largest cache of the first one */
};

/* 0: /sys says nothing, or this process may use no core. */
int find_cores(struct Cores* cores);

/* The calling thread runs on this processor from now on. 0: it may not. */
int pin_to(int cpu);

#endif
