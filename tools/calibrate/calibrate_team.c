/* See calibrate_team.h. */
#define _GNU_SOURCE
#include "tools/calibrate/calibrate_team.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kBatches = 25, kRegions = 400, kAllCounted = 8 };
static const int64_t kLongestBatchNs = 100000000;
/* GNU's, LLVM's by their common names. */
static const char* const kLibraries[] = {"libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so"};
enum { kGnu = 1 };

typedef void (*Parallel)(void (*body)(void*), void* data, unsigned threads, unsigned flags);

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void do_nothing(void* data) {
  (void)data;
}

/* Nanoseconds of one region. The first team of a size makes threads: the batch before the first is not counted. */
static int64_t run_batch(Parallel parallel, unsigned threads) {
  const int64_t start_ns = now_ns();
  int64_t regions = 0;
  int64_t passed_ns = 0;
  while (regions < kRegions && passed_ns < kLongestBatchNs) {
    parallel(do_nothing, NULL, threads, 0);
    ++regions;
    passed_ns = now_ns() - start_ns;
  }
  return (passed_ns + regions / 2) / regions;
}

static int measure_library(const char* library, int processors) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) return 0;
  const Parallel parallel = (Parallel)dlsym(handle, "GOMP_parallel");
  if (parallel == NULL) return 0;
  for (int threads = 1; threads <= processors;) {
    run_batch(parallel, (unsigned)threads);
    for (int batch = 0; batch < kBatches; ++batch)
      printf("team %s %d %lld\n", library, threads, (long long)run_batch(parallel, (unsigned)threads));
    fflush(stdout);
    const int next = threads < kAllCounted ? threads + 1 : threads + threads / 4;
    threads = threads < processors && next > processors ? processors : next;
  }
  return 1;
}

int measure_teams(int processors) {
  const int libraries = (int)(sizeof kLibraries / sizeof kLibraries[0]);
  for (int i = 0; i < libraries; ++i) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      const int measured = measure_library(kLibraries[i], processors);
      fflush(stdout);
      _exit(measured ? 0 : 3);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) < 0) {
      fprintf(stderr, "lbf-calibrate-node: no process for %s: raise the job's limits\n", kLibraries[i]);
      return 1;
    }
    if (!WIFEXITED(status)) {
      fprintf(stderr, "lbf-calibrate-node: %s ended by signal %d: is it installed completely?\n", kLibraries[i],
              WTERMSIG(status));
      return 1;
    }
    if (i >= kGnu && WEXITSTATUS(status) == 0) break; /* the others are the same one by other names */
  }
  return 0;
}
