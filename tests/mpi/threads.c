/* MPI_THREAD_MULTIPLE: 4 threads of each of 2 processes exchange messages with their opposite at the same
 * time, half of them on a communicator of their own that is duplicated meanwhile by nobody else.
 * threads environment: MPI_Init, and the thread level is what the environment says. */
#include <pthread.h>

#include "counted.h"

enum { kThreads = 4, kRounds = 500 };

static int rank;
static MPI_Comm comms[kThreads];

static void* work(void* argument) {
  const int id = *(int*)argument;
  const int other = 1 - rank;
  int out = id, in[2];
  for (int i = 0; i < kRounds; ++i) {
    MPI_Request requests[2];
    MPI_Irecv(in, 2, MPI_INT, other, id, comms[id], &requests[0]);
    MPI_Isend(&out, 1, MPI_INT, other, id, comms[id], &requests[1]);
    if (i % 2 == 0) {
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    REQUIRE(in[0] == id);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  if (argc > 1 && strcmp(argv[1], "environment") == 0) {
    CALL(MPI_Init, &argc, &argv);
    CALL(MPI_Query_thread, &provided);
  } else {
    CALL(MPI_Init_thread, &argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  }
  if (provided != MPI_THREAD_MULTIPLE) return 77;
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  for (int i = 0; i < kThreads; ++i) {
    comms[i] = MPI_COMM_WORLD;
    if (i % 2 != 0) CALL(MPI_Comm_dup, MPI_COMM_WORLD, &comms[i]);
  }
  pthread_t threads[kThreads];
  int ids[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    ids[i] = i;
    REQUIRE(pthread_create(&threads[i], NULL, work, &ids[i]) == 0);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  lbf_add(0, "MPI_Isend", kThreads * kRounds);
  lbf_add(0, "MPI_Irecv", kThreads * kRounds);
  lbf_add(0, "MPI_Wait", kThreads * kRounds);
  lbf_add(0, "MPI_Waitall", kThreads * kRounds / 2);
  EVENTS("isend", kThreads * kRounds);
  EVENTS("startRecv", kThreads * kRounds);
  EVENTS("endRecv", kThreads * kRounds);
  EVENTS("wait", kThreads * kRounds);
  EVENTS("exit", 1);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
