// Many calls of a short procedure. Printed: ns of processor time per call, the least of the rounds, and seconds of
// processor time of all rounds together.
// usage: calls [CALLS_OF_A_ROUND [ROUNDS [STEPS]]]; STEPS of a generator make a call longer (0: about a nanosecond).
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

volatile long sink;
static long steps;

__attribute__((noinline)) long work(long n) {
  unsigned long state = (unsigned long)n;
  for (long i = 0; i < steps; i++) state = state * 6364136223846793005u + 1442695040888963407u;
  sink = (long)state;
  return n + 1;
}

__attribute__((noinline, no_instrument_function)) static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((no_instrument_function)) int main(int count, char** arguments) {
  const long calls = count > 1 ? atol(arguments[1]) : 200000;
  const int rounds = count > 2 ? atoi(arguments[2]) : 15;
  steps = count > 3 ? atol(arguments[3]) : 0;
  const double began = now();
  double best = 1e9;
  long sum = 0;
  for (int round = 0; round < rounds; round++) {
    const double from = now();
    for (long i = 0; i < calls; i++) sum += work(i);
    const double one = (now() - from) / (double)calls;
    if (one < best) best = one;
  }
  printf("%.3f %.6f\n", best * 1e9, now() - began);
  return sum == 42;
}
