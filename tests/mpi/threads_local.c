/* Many threads that never communicate, and one that does after a while. */
#include <pthread.h>

#include "counted.h"

enum { kThreads = 40, kTimes = 25 };

static int rank;

static void* ask(void* argument) {
  for (int i = 0; i < kTimes; ++i) {
    int own;
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    REQUIRE(own == rank && MPI_Wtime() >= 0);
  }
  return argument;
}

static void* ask_and_talk(void* argument) {
  int x = 0;
  ask(argument);
  MPI_Sendrecv_replace(&x, 1, MPI_INT, 1 - rank, 0, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return ask(argument);
}

int main(int argc, char** argv) {
  int provided, flag;
  pthread_t threads[kThreads];
  for (int i = 0; i < 3; ++i) CALL(MPI_Initialized, &flag);
  CALL(MPI_Init_thread, &argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) return 77;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < kThreads; ++i)
    REQUIRE(pthread_create(&threads[i], NULL, i == kThreads / 2 ? ask_and_talk : ask, NULL) == 0);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  lbf_add(0, "MPI_Comm_rank", 1 + (kThreads + 1) * kTimes);
  lbf_add(0, "MPI_Wtime", (kThreads + 1) * kTimes);
  lbf_add(0, "MPI_Sendrecv_replace", 1);
  EVENTS("send", 1);
  EVENTS("exit", 1);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
