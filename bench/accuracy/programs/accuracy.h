// What the programs of bench/accuracy have in common: start and end of a run, its size, random numbers,
// checks.
//
// A run is   accuracy_begin(); ... the program's own work ...; return accuracy_end(...);
// Rank 0 prints, last of all, one line that bench/accuracy/run reads:
//   NAME size=W ranks=4 verified=... time_s=... job_s=...
// time_s: from the barrier after the start to the end of the slowest rank.
// job_s: from the return of MPI_Init to the end of the slowest rank: what lbf predicts (docs/limits.md).
#ifndef LBF_BENCH_ACCURACY_H
#define LBF_BENCH_ACCURACY_H

#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct accuracy_run {
  const char* name;
  char size;  // 'S' a test, 'W' seconds, 'A' more of everything
  int rank;
  int ranks;
  double init_s;   // MPI_Wtime when MPI_Init returned
  double start_s;  // ... when all ranks had come to the first barrier
};

static inline void accuracy_fail(const struct accuracy_run* run, const char* what) {
  fprintf(stderr, "%s: rank %d: %s\n", run->name, run->rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// Starts MPI and the clocks. The program's arguments are the size, S, W or A, and what `options` says.
static inline struct accuracy_run accuracy_begin(int* argc, char*** argv, const char* name, const char* options) {
  struct accuracy_run run = {.name = name};
  MPI_Init(argc, argv);
  run.init_s = MPI_Wtime();
  MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
  if (*argc < 2 || strlen((*argv)[1]) != 1 || strchr("SWA", (*argv)[1][0]) == NULL || (*argc > 2 && *options == '\0')) {
    if (run.rank == 0) fprintf(stderr, "usage: %s S|W|A%s\n", name, options);
    MPI_Finalize();
    exit(2);
  }
  run.size = (*argv)[1][0];
  MPI_Barrier(MPI_COMM_WORLD);
  run.start_s = MPI_Wtime();
  return run;
}

// One of three values, by the size of the run.
static inline double accuracy_by_size(const struct accuracy_run* run, double small, double medium, double large) {
  return run->size == 'S' ? small : run->size == 'W' ? medium : large;
}

// How often the work is done, for longer runs: the program's last argument where that is a number, else once.
static inline int accuracy_repeats(int argc, char** argv) {
  const int repeats = argc > 2 ? atoi(argv[argc - 1]) : 0;
  return repeats > 0 ? repeats : 1;
}

static inline void* accuracy_alloc(const struct accuracy_run* run, size_t count, size_t bytes_each) {
  void* memory = calloc(count > 0 ? count : 1, bytes_each);
  if (memory == NULL) accuracy_fail(run, "no memory");
  return memory;
}

static inline int accuracy_close(double value, double expected, double relative) {
  return fabs(value - expected) <= relative * fmax(fabs(value), fabs(expected));
}

// Ends the run: all ranks must be `right`; rank 0 prints the line, with the value that was checked. The exit
// status.
static inline int accuracy_end(const struct accuracy_run* run, int right, const char* format, ...) {
  const double end_s = MPI_Wtime();
  double mine[3] = {end_s - run->start_s, end_s - run->init_s, right ? 0 : 1}, all[3];
  MPI_Reduce(mine, all, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  int status = all[2] != 0;
  MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (run->rank == 0) {
    char value[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    printf("%s size=%c ranks=%d %s=%s time_s=%.6f job_s=%.6f\n", run->name, run->size, run->ranks,
           status == 0 ? "verified" : "WRONG", value, all[0], all[1]);
    fflush(stdout);
  }
  MPI_Finalize();
  return status;
}

// A 64-bit linear congruential generator (Knuth's MMIX), whose n-th number after this one is found in O(log
// n): a rank begins at its own place of one stream, and long chains of steps can be checked.
#define ACCURACY_LCG_FACTOR UINT64_C(6364136223846793005)
#define ACCURACY_LCG_ADD UINT64_C(1442695040888963407)

static inline uint64_t lcg_step(uint64_t state) {
  return state * ACCURACY_LCG_FACTOR + ACCURACY_LCG_ADD;
}

static inline uint64_t lcg_jump(uint64_t state, uint64_t steps) {
  uint64_t factor = ACCURACY_LCG_FACTOR, add = ACCURACY_LCG_ADD;
  for (; steps > 0; steps >>= 1) {
    if (steps & 1) state = state * factor + add;
    add *= factor + 1;
    factor *= factor;
  }
  return state;
}

// In [0, 1), from the 53 highest bits.
static inline double lcg_uniform(uint64_t state) {
  return (double)(state >> 11) * 0x1p-53;
}

#endif
