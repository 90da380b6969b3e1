/* MPI_THREAD_MULTIPLE: another thread calls MPI_Init for main(), which asks MPI whether it is there and goes on at
 * once: with slow_init.c, which lets nobody out of MPI_Init for a while, before the capture has seen that.
 * Communicators are used and made then, too. After that main() alone talks, and sleeps in between. For 2 ranks. */
#include <pthread.h>
#include <time.h>

#include "counted.h"

enum { kNaps = 4 };

static pthread_barrier_t ready, over;
static int provided;

static void* communicate(void* argument) {
  MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
  pthread_barrier_wait(&ready);
  pthread_barrier_wait(&over);
  MPI_Finalize();
  return argument;
}

int main(void) {
  int rank, other, flag = 0;
  MPI_Comm made;
  pthread_t thread;
  const struct timespec nap = {0, 100000000};
  pthread_barrier_init(&ready, NULL, 2);
  pthread_barrier_init(&over, NULL, 2);
  REQUIRE(pthread_create(&thread, NULL, communicate, NULL) == 0);
  while (!flag) CALL(MPI_Initialized, &flag);
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  CALL(MPI_Barrier, MPI_COMM_SELF);
  CALL(MPI_Comm_dup, MPI_COMM_WORLD, &made);
  CALL(MPI_Comm_rank, made, &rank);
  CALL(MPI_Sendrecv, &rank, 1, MPI_INT, 1 - rank, 3, &other, 1, MPI_INT, 1 - rank, 3, made, MPI_STATUS_IGNORE);
  REQUIRE(other == 1 - rank);
  CALL(MPI_Comm_free, &made);
  pthread_barrier_wait(&ready);
  if (provided != MPI_THREAD_MULTIPLE) return 77;
  for (int i = 0; i < kNaps; ++i) {
    nanosleep(&nap, NULL);
    CALL(MPI_Barrier, MPI_COMM_WORLD);
  }
  EVENTS("coll", 3 + kNaps);
  EVENTS("commCreate", 2);
  EVENTS("commFree", 1);
  EVENTS("send", 1);
  EVENTS("startRecv", 1);
  EVENTS("endRecv", 1);
  EVENTS("exit", 1);
  lbf_print_expectations(rank);
  pthread_barrier_wait(&over);
  pthread_join(thread, NULL);
  return 0;
}
