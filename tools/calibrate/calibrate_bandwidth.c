/* See calibrate_bandwidth.h. */
#define _GNU_SOURCE
#include "tools/calibrate/calibrate_bandwidth.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { kRounds = 15, kChunk = 1 << 16, kArrays = 3, kAllCounted = 8 };
static const int64_t kRoundNs = 100000000;
static const int64_t kLeastBytes = (int64_t)96 << 20; /* of a core's three arrays */
static const int kCaches = 4;
static const double kBytes = 1e9;

static struct {
  pthread_barrier_t begin, end;
  int active; /* cores of the round; 0: that was the last */
} round_;

struct Worker {
  pthread_t thread;
  int number, cpu, failed;
  int64_t elements; /* of an array */
  double* array[kArrays];
  double bytes_per_ns;
  int64_t passed_ns, worked_ns; /* of all rounds */
};

static int64_t clock_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

__attribute__((noinline)) static void triad(double* restrict a, const double* restrict b, const double* restrict c,
                                            int64_t count) {
  for (int64_t i = 0; i < count; ++i) a[i] = b[i] + 3.0 * c[i];
}

static void stream(struct Worker* me) {
  const int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
  const int64_t cpu_start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  int64_t passed_ns = 0;
  int64_t done = 0;
  for (int64_t at = 0; passed_ns < kRoundNs; at = at + 2 * kChunk <= me->elements ? at + kChunk : 0) {
    triad(me->array[0] + at, me->array[1] + at, me->array[2] + at, kChunk);
    done += kChunk;
    passed_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
  }
  me->passed_ns += passed_ns;
  me->worked_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_start_ns;
  me->bytes_per_ns = (double)(done * kArrays * (int64_t)sizeof(double)) / (double)passed_ns;
}

/* Pages are where they are first written. */
static void* work(void* argument) {
  struct Worker* const me = argument;
  me->failed = !pin_to(me->cpu);
  for (int i = 0; i < kArrays; ++i) {
    for (int64_t at = 0; at < me->elements; ++at) me->array[i][at] = i;
  }
  for (;;) {
    pthread_barrier_wait(&round_.begin);
    if (round_.active == 0) return NULL;
    if (me->number < round_.active) stream(me);
    pthread_barrier_wait(&round_.end);
  }
}

/* 1 to 8, then steps of a quarter, and all. */
static int more_cores(int cores, int all) {
  const int next = cores < kAllCounted ? cores + 1 : cores + cores / 4;
  return cores < all && next > all ? all : next;
}

static void run_round(struct Worker* workers, int cores) {
  round_.active = cores;
  pthread_barrier_wait(&round_.begin);
  if (cores == 0) return;
  pthread_barrier_wait(&round_.end);
  double bytes_per_ns = 0;
  for (int i = 0; i < cores; ++i) bytes_per_ns += workers[i].bytes_per_ns;
  printf("bandwidth %d %lld\n", cores, (long long)(kBytes / bytes_per_ns + 0.5));
  fflush(stdout);
}

static int64_t available_bytes(void) {
  char line[256];
  long long kilobytes = -1;
  FILE* const file = fopen("/proc/meminfo", "r");
  while (file != NULL && kilobytes < 0 && fgets(line, sizeof line, file) != NULL)
    sscanf(line, "MemAvailable: %lld kB", &kilobytes);
  if (file != NULL) fclose(file);
  return kilobytes < 0 ? INT64_MAX : (int64_t)kilobytes << 10;
}

static int start(struct Worker* workers, const struct Cores* cores, int64_t bytes_of_array) {
  pthread_barrier_init(&round_.begin, NULL, (unsigned)cores->count + 1);
  pthread_barrier_init(&round_.end, NULL, (unsigned)cores->count + 1);
  for (int i = 0; i < cores->count; ++i) {
    struct Worker* const worker = &workers[i];
    worker->number = i;
    worker->cpu = cores->cpu[i];
    worker->elements = bytes_of_array / (int64_t)sizeof(double);
    for (int array = 0; array < kArrays; ++array) {
      worker->array[array] = aligned_alloc(4096, (size_t)bytes_of_array);
      if (worker->array[array] == NULL) return 0;
    }
    if (pthread_create(&worker->thread, NULL, work, worker) != 0) return 0;
  }
  return 1;
}

int measure_bandwidth(const struct Cores* cores) {
  int64_t bytes = kCaches * cores->cache_bytes;
  if (bytes < kLeastBytes) bytes = kLeastBytes;
  const int64_t bytes_of_array =
      bytes / kArrays / (kChunk * (int64_t)sizeof(double)) * kChunk * (int64_t)sizeof(double);
  if (bytes * cores->count > available_bytes() / 10 * 9) {
    fprintf(
        stderr,
        "lbf-calibrate-node: %lld MiB of memory are needed, and %lld MiB are free: measure on an idle node, or with "
        "fewer processors (--srun \"srun --cpus-per-task=N\")\n",
        (long long)(bytes * cores->count >> 20), (long long)(available_bytes() >> 20));
    return 1;
  }
  struct Worker* const workers = calloc((size_t)cores->count, sizeof *workers);
  if (workers == NULL || !start(workers, cores, bytes_of_array)) {
    fprintf(stderr, "lbf-calibrate-node: no memory or no thread for %d processors: raise the job's limits\n",
            cores->count);
    return 1;
  }
  for (int round = 0; round < kRounds; ++round) {
    for (int count = 1; count <= cores->count; count = more_cores(count, cores->count)) run_round(workers, count);
  }
  run_round(workers, 0);
  int failed = 0;
  int64_t passed_ns = 0;
  int64_t worked_ns = 0;
  for (int i = 0; i < cores->count; ++i) {
    pthread_join(workers[i].thread, NULL);
    failed |= workers[i].failed;
    passed_ns += workers[i].passed_ns;
    worked_ns += workers[i].worked_ns;
    for (int array = 0; array < kArrays; ++array) free(workers[i].array[array]);
  }
  free(workers);
  printf("others %d\n", worked_ns < passed_ns ? (int)(100 * (passed_ns - worked_ns) / passed_ns) : 0);
  if (failed)
    fprintf(stderr,
            "lbf-calibrate-node: a processor could not be had alone: the job's processors have changed; try again\n");
  return failed;
}
