// A program whose procedures are measured (--lbf-procedures): a ring of ranks. Each procedure counts its calls and its
// time by the thread's processor clock, and each rank prints at the end, for each of them:
//   procedure RANK NAME CALLS SECONDS
// usage: procedures ROUNDS [storm|nested|apart]; storm: also a procedure that is called too often for any limit;
// nested: by another one that takes most of the time; apart: pairs of ranks that work in turns, each in a procedure of
// its own.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROCEDURE __attribute__((noinline, noclone))

static double cpu_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct own {
  const char* name;
  long calls;
  double seconds;
};
static struct own solve_own = {"solve", 0, 0};
static struct own inner_own = {"inner", 0, 0};
static struct own check_own = {"check", 0, 0};
static struct own storm_own = {"storm", 0, 0};

static uint64_t spin(uint64_t state, double seconds) {
  const double until = cpu_s() + seconds;
  do {
    for (int i = 0; i < 2000; ++i) state = state * 6364136223846793005u + 1442695040888963407u;
  } while (cpu_s() < until);
  return state;
}

PROCEDURE static uint64_t inner(uint64_t state) {
  const double begin = cpu_s();
  state = spin(state, 50e-6);
  ++inner_own.calls;
  inner_own.seconds += cpu_s() - begin;
  return state;
}
PROCEDURE static uint64_t solve(uint64_t state, int rank) {
  const double begin = cpu_s();
  for (int i = 0; i < 10; ++i) state = inner(state);
  state = spin(state, rank == 0 ? 4e-3 : 1e-3);
  ++solve_own.calls;
  solve_own.seconds += cpu_s() - begin;
  return state;
}
// Spans a call of MPI: what it waits there is nobody's time.
PROCEDURE static uint64_t check(uint64_t state) {
  uint64_t sum = 0;
  MPI_Allreduce(&state, &sum, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
  ++check_own.calls;
  return sum;
}
// Some tens of nanoseconds: far too little to be measured, and far more than its caller's loop takes, so that samples
// of that loop are in here on every processor, whichever instruction of a call and a return a signal interrupts there.
PROCEDURE static uint64_t storm(uint64_t state) {
  ++storm_own.calls;
  for (int i = 0; i < 16; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    __asm__ volatile("" : "+r"(state));
  }
  return state;
}

static struct own stormy_own = {"stormy", 0, 0};
PROCEDURE static uint64_t stormy(uint64_t state) {
  const double begin = cpu_s();
  for (int i = 0; i < 100000; ++i) state = storm(state);
  ++stormy_own.calls;
  stormy_own.seconds += cpu_s() - begin;
  return state;
}

static struct own left_own = {"left", 0, 0};
static struct own right_own = {"right", 0, 0};
PROCEDURE static uint64_t left(uint64_t state) {
  const double begin = cpu_s();
  state = spin(state, 5e-3);
  ++left_own.calls;
  left_own.seconds += cpu_s() - begin;
  return state;
}
PROCEDURE static uint64_t right(uint64_t state) {
  const double begin = cpu_s();
  state = spin(state, 4e-3) + 1;
  ++right_own.calls;
  right_own.seconds += cpu_s() - begin;
  return state;
}
// One of two works while the other one waits: the critical path runs through both.
static uint64_t work_in_turns(uint64_t state, int rank, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    if (rank % 2 == 0) {
      state = left(state);
      MPI_Send(&state, 1, MPI_UINT64_T, rank + 1, 2, MPI_COMM_WORLD);
      MPI_Recv(&state, 1, MPI_UINT64_T, rank + 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&state, 1, MPI_UINT64_T, rank - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      state = right(state);
      MPI_Send(&state, 1, MPI_UINT64_T, rank - 1, 2, MPI_COMM_WORLD);
    }
  }
  return state;
}

static void say(int rank, const struct own* own) {
  printf("procedure %d %s %ld %.6f\n", rank, own->name, own->calls, own->seconds);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int rounds = argc > 1 ? atoi(argv[1]) : 20;
  const int nested = argc > 2 && strcmp(argv[2], "nested") == 0;
  const int with_storm = nested || (argc > 2 && strcmp(argv[2], "storm") == 0);
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  uint64_t state = (uint64_t)rank + 1;
  if (argc > 2 && strcmp(argv[2], "apart") == 0 && size % 2 == 0) {
    state = work_in_turns(state, rank, rounds);
    say(rank, rank % 2 == 0 ? &left_own : &right_own);
    fflush(stdout);
    MPI_Finalize();
    return state == 0x123456789;
  }
  for (int round = 0; round < rounds; ++round) {
    state = solve(state, rank);
    if (nested) state = stormy(state);
    if (with_storm) {
      for (int i = 0; i < 20000; ++i) state = storm(state);
    }
    MPI_Request request;
    uint64_t got = 0;
    MPI_Irecv(&got, 1, MPI_UINT64_T, previous, 1, MPI_COMM_WORLD, &request);
    MPI_Send(&state, 1, MPI_UINT64_T, next, 1, MPI_COMM_WORLD);
    int done = 0;
    while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    state ^= got;
    if (round % 5 == 4) state = check(state);
  }
  say(rank, &solve_own);
  say(rank, &inner_own);
  say(rank, &check_own);
  if (with_storm) say(rank, &storm_own);
  if (nested) say(rank, &stormy_own);
  fflush(stdout);
  MPI_Finalize();
  return state == 0x123456789;  // it is used
}
