// Many calls of a short procedure: how long one takes, bare and measured. Printed: ns per call, the least of the rounds.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

volatile long sink;

__attribute__((noinline)) long work(long n) {
  sink = n;
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
  double best = 1e9;
  long sum = 0;
  for (int round = 0; round < rounds; round++) {
    const double from = now();
    for (long i = 0; i < calls; i++) sum += work(i);
    const double one = (now() - from) / (double)calls;
    if (one < best) best = one;
  }
  printf("%.3f\n", best * 1e9);
  return sum == 42;
}
