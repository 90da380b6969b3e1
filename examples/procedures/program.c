#define _GNU_SOURCE
#include "program.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static enum { kSpin, kSleep, kCompute } g_busy = kSpin;
static double g_unit_s = 0.002;
static uint64_t g_unit_steps = 1;
#ifndef PROGRAM_UNMARKED
static const char* g_trace;  // file; NULL: no trace
static char* g_lines;
static size_t g_used, g_room;
static double g_last_s;  // end of the last event, by the clock of the work
static int g_rank;
#endif

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
static double work_clock(void) {
  return seconds(g_busy == kSleep ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID);
}

static const uint64_t kFactor = 6364136223846793005u, kAdd = 1442695040888963407u;

// In O(log steps): a step is x * factor + add, and so are two, four ... of them.
uint64_t stepped(uint64_t state, int units) {
  uint64_t factor = kFactor, add = kAdd;
  for (uint64_t steps = (uint64_t)units * g_unit_steps; steps > 0; steps >>= 1) {
    if (steps & 1) state = state * factor + add;
    add *= factor + 1;
    factor *= factor;
  }
  return state;
}

uint64_t work(uint64_t state, int units) {
  if (g_busy == kCompute) {
    for (uint64_t step = (uint64_t)units * g_unit_steps; step > 0; --step) state = state * kFactor + kAdd;
    return state;
  }
  const double end_s = work_clock() + units * g_unit_s;
  if (g_busy == kSleep) {
    struct timespec until = {(time_t)end_s, (long)((end_s - (double)(time_t)end_s) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
  } else {
    volatile uint64_t sink = state;
    while (work_clock() < end_s) {
      for (int i = 0; i < 2000; ++i) sink = sink * 3 + 1;
    }
  }
  return stepped(state, units);
}

// --- the trace

#ifdef PROGRAM_UNMARKED
// A capture sees MPI_*, not PMPI_*.
#define PMPI_Barrier MPI_Barrier
#define PMPI_Reduce MPI_Reduce
#define PMPI_Allreduce MPI_Allreduce
#else
__attribute__((format(printf, 1, 2))) static void add_line(const char* format, ...) {
  if (g_room - g_used < 512) {
    g_room = 2 * g_room + 65536;
    g_lines = realloc(g_lines, g_room);
    if (g_lines == NULL) abort();
  }
  va_list arguments;
  va_start(arguments, format);
  g_used += (size_t)vsnprintf(g_lines + g_used, g_room - g_used, format, arguments);
  va_end(arguments);
}
// Process time since the last event.
static double passed_s(void) {
  const double passed = work_clock() - g_last_s;
  return passed > 0 ? passed : 0;
}
static void resume(void) {
  g_last_s = work_clock();
}

void procedure_enter(const char* name) {
  if (g_trace == NULL) return;
  add_line("%d enter %.9f proc=%s\n", g_rank, passed_s(), name);
  resume();
}
void procedure_leave(const char* name) {
  if (g_trace == NULL) return;
  add_line("%d leave %.9f proc=%s\n", g_rank, passed_s(), name);
  resume();
}

static int bytes_of(int count, MPI_Datatype type) {
  int size;
  PMPI_Type_size(type, &size);
  return count * size;
}

int MPI_Send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  if (g_trace == NULL) return PMPI_Send(buffer, count, type, to, tag, comm);
  add_line("%d send %.9f to=%d tag=%d bytes=%d\n", g_rank, passed_s(), to, tag, bytes_of(count, type));
  const int result = PMPI_Send(buffer, count, type, to, tag, comm);
  resume();
  return result;
}

int MPI_Recv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
  if (g_trace == NULL) return PMPI_Recv(buffer, count, type, from, tag, comm, status);
  MPI_Status own;
  const double before_s = passed_s();
  const int result = PMPI_Recv(buffer, count, type, from, tag, comm, &own);
  resume();
  char source[16] = "any";
  if (from != MPI_ANY_SOURCE) snprintf(source, sizeof source, "%d", from);
  add_line("%d startRecv %.9f from=%s tag=%d\n", g_rank, before_s, source, own.MPI_TAG);
  add_line("%d endRecv 0 from=%d tag=%d bytes=%d\n", g_rank, own.MPI_SOURCE, own.MPI_TAG, bytes_of(count, type));
  if (status != MPI_STATUS_IGNORE) *status = own;
  return result;
}

static void write_trace(const struct program* run) {
  enum { kLines = 32001 };
  if (run->rank != 0) {
    PMPI_Send(g_lines, (int)g_used, MPI_CHAR, 0, kLines, MPI_COMM_WORLD);
    return;
  }
  FILE* out = fopen(g_trace, "w");
  if (out == NULL) {
    fprintf(stderr, "cannot write %s: %s\n", g_trace, strerror(errno));
    PMPI_Abort(MPI_COMM_WORLD, 1);
    return;
  }
  fprintf(out, "lbf-trace 1\nranks %d\n", run->ranks);
  fwrite(g_lines, 1, g_used, out);
  for (int rank = 1; rank < run->ranks; ++rank) {
    MPI_Status status;
    int size;
    PMPI_Probe(rank, kLines, MPI_COMM_WORLD, &status);
    PMPI_Get_count(&status, MPI_CHAR, &size);
    char* lines = malloc((size_t)size + 1);
    if (lines == NULL) abort();
    PMPI_Recv(lines, size, MPI_CHAR, rank, kLines, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    fwrite(lines, 1, (size_t)size, out);
    free(lines);
  }
  fclose(out);
}
#endif

// --- start and end

struct program program_begin(int* argc, char*** argv, int least_ranks, const char* const* modifications) {
  struct program run = {0, 0, 0, 0, 0};
  MPI_Init(argc, argv);
  run.init_s = seconds(CLOCK_MONOTONIC);
  MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
#ifndef PROGRAM_UNMARKED
  g_rank = run.rank;
#endif
  const char* wanted = *argc > 1 ? (*argv)[1] : "original";
  int known = strcmp(wanted, "original") == 0;
  for (int i = 0; modifications[i] != NULL; ++i) {
    if (strcmp(wanted, modifications[i]) != 0) continue;
    run.moved = i + 1;
    known = 1;
  }
  if (!known || run.ranks < least_ranks) {
    if (run.rank == 0) {
      fprintf(stderr, "usage: %s [original", (*argv)[0]);
      for (int i = 0; modifications[i] != NULL; ++i) fprintf(stderr, " | %s", modifications[i]);
      fprintf(stderr, "], with at least %d ranks\n", least_ranks);
    }
    MPI_Finalize();
    exit(2);
  }
  const char* busy = getenv("PROGRAM_BUSY");
  if (busy != NULL && strcmp(busy, "sleep") == 0) g_busy = kSleep;
  if (busy != NULL && strcmp(busy, "compute") == 0) {
    g_busy = kCompute;
    g_unit_steps = 2000000;
    if (getenv("UNIT_STEPS") != NULL) g_unit_steps = strtoull(getenv("UNIT_STEPS"), NULL, 10);
  }
  if (getenv("UNIT_MS") != NULL) g_unit_s = 1e-3 * atof(getenv("UNIT_MS"));
#ifndef PROGRAM_UNMARKED
  g_trace = getenv("PROGRAM_TRACE");
#endif
  // Everybody starts at the same time, and connections are there.
  PMPI_Barrier(MPI_COMM_WORLD);
  PMPI_Barrier(MPI_COMM_WORLD);
  run.started_s = seconds(CLOCK_MONOTONIC);
#ifndef PROGRAM_UNMARKED
  resume();
#endif
  return run;
}

int program_end(const struct program* run, uint64_t result, uint64_t expected) {
#ifndef PROGRAM_UNMARKED
  if (g_trace != NULL) add_line("%d exit %.9f\n", g_rank, passed_s());
#endif
  const double end_s = seconds(CLOCK_MONOTONIC);
  const double mine_s[2] = {end_s - run->started_s, end_s - run->init_s};
  double longest_s[2];
  int right = result == expected;
  int all_right;
  uint64_t all;
  PMPI_Reduce(mine_s, longest_s, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  PMPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  PMPI_Reduce(&result, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
#ifndef PROGRAM_UNMARKED
  if (g_trace != NULL) write_trace(run);
#endif
  if (run->rank == 0) {
    printf("time_s %.6f job_s %.6f result %016llx %s\n", longest_s[0], longest_s[1], (unsigned long long)all,
           all_right ? "ok" : "wrong");
  }
  MPI_Finalize();
  return all_right ? 0 : 1;
}
