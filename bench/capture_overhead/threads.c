/* What the capture adds to the calls of several threads that are in MPI at once: threads THREADS SECONDS [WAIT_NS]. One
   process (MPI_THREAD_MULTIPLE); each thread has messages to itself (Irecv, Send, Wait) on a communicator of its own,
   in slices that take turns: through the MPI_ names, which lead into the capture, and through the PMPI_ names, which
   lead past it. So both are timed in the same process, with the same memory, in the same moment: what differs is the
   way through the capture. Times are of the thread's processor clock. The first second does not count: the capture may
   still change its mode. With WAIT_NS the calls through the MPI_ names are PMPI_ calls, too, each after a busy wait of
   so long: what any time spent there adds, which is more than itself, because the library's locks and lines are with
   the other threads more often then. Prints "MPI_ NS_PER_CALL", "PMPI_ NS_PER_CALL", and per pair of slices "added LOW
   MEDIAN HIGH" in ns per call (quartiles). */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kMostThreads = 64, kRounds = 500, kCalls = 3, kMostPairs = 1 << 16 };

static double end_s, begin_s;
static MPI_Comm own_comm[kMostThreads];
static struct slices {
  double mpi_ns[kMostPairs], pmpi_ns[kMostPairs];
  int pairs;
} * slices[kMostThreads];
static pthread_barrier_t start;

static double clock_s(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static long wait_turns; /* 0: none */

static void wait_turns_long(long turns) {
  for (volatile long turn = 0; turn < turns; ++turn) {
  }
}

static long turns_of(double ns) {
  enum { kTurns = 100000000 };
  const double from_s = clock_s(CLOCK_THREAD_CPUTIME_ID);
  wait_turns_long(kTurns);
  return (long)(ns * 1e-9 / (clock_s(CLOCK_THREAD_CPUTIME_ID) - from_s) * kTurns + 0.5);
}

static double after_a_wait(MPI_Comm comm) {
  char out[8] = {0}, in[8];
  const double from_s = clock_s(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < kRounds; ++i) {
    MPI_Request request;
    wait_turns_long(wait_turns);
    PMPI_Irecv(in, 8, MPI_BYTE, 0, 0, comm, &request);
    wait_turns_long(wait_turns);
    PMPI_Send(out, 8, MPI_BYTE, 0, 0, comm);
    wait_turns_long(wait_turns);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return 1e9 * (clock_s(CLOCK_THREAD_CPUTIME_ID) - from_s) / kRounds / kCalls;
}

static double through_mpi(MPI_Comm comm) {
  if (wait_turns != 0) return after_a_wait(comm);
  char out[8] = {0}, in[8];
  const double from_s = clock_s(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < kRounds; ++i) {
    MPI_Request request;
    MPI_Irecv(in, 8, MPI_BYTE, 0, 0, comm, &request);
    MPI_Send(out, 8, MPI_BYTE, 0, 0, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return 1e9 * (clock_s(CLOCK_THREAD_CPUTIME_ID) - from_s) / kRounds / kCalls;
}

static double past_it(MPI_Comm comm) {
  char out[8] = {0}, in[8];
  const double from_s = clock_s(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < kRounds; ++i) {
    MPI_Request request;
    PMPI_Irecv(in, 8, MPI_BYTE, 0, 0, comm, &request);
    PMPI_Send(out, 8, MPI_BYTE, 0, 0, comm);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return 1e9 * (clock_s(CLOCK_THREAD_CPUTIME_ID) - from_s) / kRounds / kCalls;
}

static void* thread_main(void* number) {
  const size_t i = (size_t)number;
  pthread_barrier_wait(&start);
  for (unsigned turn = (unsigned)i;; ++turn) {
    const double at_s = clock_s(CLOCK_MONOTONIC);
    if (at_s >= end_s || slices[i]->pairs == kMostPairs) return NULL;
    double mpi_ns, pmpi_ns;
    if (turn % 2 == 0) {
      mpi_ns = through_mpi(own_comm[i]);
      pmpi_ns = past_it(own_comm[i]);
    } else {
      pmpi_ns = past_it(own_comm[i]);
      mpi_ns = through_mpi(own_comm[i]);
    }
    if (at_s < begin_s) continue;
    slices[i]->mpi_ns[slices[i]->pairs] = mpi_ns;
    slices[i]->pmpi_ns[slices[i]->pairs++] = pmpi_ns;
  }
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 0;
  const double seconds = argc > 2 ? atof(argv[2]) : 0;
  const double wait_ns = argc > 3 ? atof(argv[3]) : 0;
  if (threads < 1 || threads > kMostThreads || seconds <= 1) {
    fprintf(stderr, "usage: threads THREADS SECONDS [WAIT_NS] (1 to %d threads, more than a second)\n", kMostThreads);
    return 2;
  }
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 1);
  if (wait_ns > 0) wait_turns = turns_of(wait_ns);
  pthread_t handles[kMostThreads];
  pthread_barrier_init(&start, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i) {
    MPI_Comm_dup(MPI_COMM_SELF, &own_comm[i]);
    slices[i] = calloc(1, sizeof(*slices[i]));
  }
  begin_s = clock_s(CLOCK_MONOTONIC) + 1;
  end_s = begin_s - 1 + seconds;
  for (size_t i = 0; i < (size_t)threads; ++i) pthread_create(&handles[i], NULL, thread_main, (void*)i);
  long pairs = 0;
  for (int i = 0; i < threads; ++i) {
    pthread_join(handles[i], NULL);
    pairs += slices[i]->pairs;
  }
  double* const mpi_ns = calloc((size_t)pairs, sizeof(double));
  double* const pmpi_ns = calloc((size_t)pairs, sizeof(double));
  double* const added_ns = calloc((size_t)pairs, sizeof(double));
  long n = 0;
  for (int i = 0; i < threads; ++i) {
    for (int k = 0; k < slices[i]->pairs; ++k, ++n) {
      mpi_ns[n] = slices[i]->mpi_ns[k];
      pmpi_ns[n] = slices[i]->pmpi_ns[k];
      added_ns[n] = mpi_ns[n] - pmpi_ns[n];
    }
  }
  if (n < 4) MPI_Abort(MPI_COMM_WORLD, 1);
  qsort(mpi_ns, (size_t)n, sizeof(double), ascending);
  qsort(pmpi_ns, (size_t)n, sizeof(double), ascending);
  qsort(added_ns, (size_t)n, sizeof(double), ascending);
  printf("MPI_ %.2f\nPMPI_ %.2f\nadded %.2f %.2f %.2f\npairs %ld\n", mpi_ns[n / 2], pmpi_ns[n / 2], added_ns[n / 4],
         added_ns[n / 2], added_ns[3 * n / 4], n);
  for (int i = 0; i < threads; ++i) MPI_Comm_free(&own_comm[i]);
  MPI_Finalize();
  return 0;
}
