/* A stand-in for libamdhip64.so.6, with names of HIP's functions that the tests need. No line of AMD's. */
#include "hip.h"

#include <string.h>
#include <time.h>

static double busy_until;

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void stand_in_hip_kernel(double seconds) {
  busy_until = now_s() + seconds;
}
int hipDeviceSynchronize(void) {
  while (now_s() < busy_until) {
  }
  return 0;
}
int hipStreamSynchronize(void* stream) {
  return stream == NULL ? hipDeviceSynchronize() : 400;
}
int hipMemcpy(void* to, const void* from, size_t bytes, int kind) {
  (void)kind;
  memcpy(to, from, bytes);
  return hipDeviceSynchronize();
}
