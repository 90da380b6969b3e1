/* MPI_THREAD_MULTIPLE, two processes, threads that work together:
 *  - kCollective threads make collectives, each on a communicator of its own, so that they are under way at the same
 *    time and in another order on each rank;
 *  - a thread starts requests (persistent ones too), another one completes them.
 * Prints what the events have to be, for run_case. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "counted.h"

enum { kCollective = 3, kRounds = 60, kStarted = 300 };

static int rank;
static MPI_Comm comms[kCollective];
static MPI_Request handed_over[2];
static atomic_int full;

static void nap(int microseconds) {
  const struct timespec t = {0, microseconds * 1000L};
  nanosleep(&t, NULL);
}

static void* reduce(void* argument) {
  const int id = *(int*)argument;
  for (int i = 0; i < kRounds; ++i) {
    int one = 1, sum = 0;
    nap((rank == 0 ? id : kCollective - id) * 100); /* the first on one rank is the last on the other */
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[id]);
    REQUIRE(sum == 2);
    MPI_Barrier(comms[id]); /* both wait for all: what check_order.py takes for granted */
  }
  return NULL;
}

static void* start(void* argument) {
  static int out[2], in[2];
  MPI_Request persistent[2];
  MPI_Send_init(&out[1], 1, MPI_INT, 1 - rank, 8, MPI_COMM_WORLD, &persistent[0]);
  MPI_Recv_init(&in[1], 1, MPI_INT, 1 - rank, 8, MPI_COMM_WORLD, &persistent[1]);
  for (int i = 0; i < kStarted; ++i) {
    if (i % 3 == 0) {
      MPI_Startall(2, persistent);
      handed_over[0] = persistent[0];
      handed_over[1] = persistent[1];
    } else {
      MPI_Irecv(&in[0], 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, &handed_over[1]);
      MPI_Isend(&out[0], 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, &handed_over[0]);
    }
    atomic_store(&full, 1);
    while (atomic_load(&full)) sched_yield();
  }
  MPI_Request_free(&persistent[0]);
  MPI_Request_free(&persistent[1]);
  return argument;
}

static void* complete(void* argument) {
  for (int i = 0; i < kStarted; ++i) {
    while (!atomic_load(&full)) sched_yield();
    if (i % 2 == 0) {
      MPI_Waitall(2, handed_over, MPI_STATUSES_IGNORE);
    } else {
      for (int done = 0; !done;) MPI_Testall(2, handed_over, &done, MPI_STATUSES_IGNORE);
    }
    atomic_store(&full, 0);
  }
  return argument;
}

int main(int argc, char** argv) {
  int provided, ids[kCollective];
  pthread_t threads[kCollective + 2];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) return 77;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < kCollective; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < kCollective; ++i) {
    ids[i] = i;
    REQUIRE(pthread_create(&threads[i], NULL, reduce, &ids[i]) == 0);
  }
  REQUIRE(pthread_create(&threads[kCollective], NULL, start, NULL) == 0);
  REQUIRE(pthread_create(&threads[kCollective + 1], NULL, complete, NULL) == 0);
  for (int i = 0; i < kCollective + 2; ++i) pthread_join(threads[i], NULL);
  EVENTS("isend", kStarted);
  EVENTS("startRecv", kStarted);
  EVENTS("endRecv", kStarted);
  EVENTS("gap", 0);
  EVENTS("unmodelled", 0);
  EVENTS("exit", 1);
  /* each blocking collective as its begin and its end; those before the threads may be one event */
  if (rank == 0) printf("collectives %d\n", kCollective * (2 * kRounds + 1));
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
