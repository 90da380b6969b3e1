/* What the capture adds to a parallel region: slices of regions through its entry (GOMP_parallel) and past it (the
 * runtime's own function) take turns, an MPI call between them.
 * usage: regions THREADS WORK_US SECONDS; prints ns per region of both, and the quartiles of the pairs. */
#include <dlfcn.h>
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef void (*parallel)(void (*)(void*), void*, unsigned, unsigned);
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void body(void* data) {
  const long rounds = *(const long*)data;
  for (volatile long i = 0; i < rounds; i = i + 1) {
  }
}

static double slice_ns(parallel enter, long* rounds, int regions, unsigned threads) {
  const double begin = now_ns();
  for (int i = 0; i < regions; ++i) enter(body, rounds, threads, 0);
  const double ns = (now_ns() - begin) / regions;
  MPI_Pcontrol(1);
  return ns;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double quantile(double* values, int count, double at) {
  qsort(values, (size_t)count, sizeof(*values), compare);
  return values[(int)((count - 1) * at)];
}

int main(int argc, char** argv) {
  enum { kMost = 100000 };
  static double through[kMost], past[kMost], added[kMost];
  const unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
  const double work_us = argc > 2 ? atof(argv[2]) : 100;
  const double seconds = argc > 3 ? atof(argv[3]) : 4;
  MPI_Init(&argc, &argv);
  const parallel next = (parallel)dlsym(dlopen("libgomp.so.1", RTLD_LAZY), "GOMP_parallel");
  long rounds = 1000000;
  double begin = now_ns();
  body(&rounds);
  rounds = (long)(1e6 * work_us * 1e3 / (now_ns() - begin));
  const int regions = work_us >= 10 ? 64 : 1024;
  for (int i = 0; i < 20; ++i) slice_ns(next, &rounds, regions, threads);
  int count = 0;
  for (begin = now_ns(); now_ns() - begin < seconds * 1e9 && count < kMost; ++count) {
    const int first = count % 2;
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == first) {
        through[count] = slice_ns(GOMP_parallel, &rounds, regions, threads);
      } else {
        past[count] = slice_ns(next, &rounds, regions, threads);
      }
    }
    added[count] = through[count] - past[count];
  }
  const double low = quantile(added, count, 0.25), middle = quantile(added, count, 0.5);
  printf("regions %u %g %.0f %.0f %.1f %.1f %.1f\n", threads, work_us, quantile(through, count, 0.5),
         quantile(past, count, 0.5), middle, low, quantile(added, count, 0.75));
  MPI_Finalize();
  return 0;
}
