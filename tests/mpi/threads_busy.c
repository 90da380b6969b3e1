/* MPI_THREAD_MULTIPLE at its worst for somebody who makes one sequence of it, two processes:
 *  - kPairs threads play ping-pong with their opposite (tag = thread), message i has i bytes;
 *  - a thread waits in one MPI_Recv from the begin to the end (tag kStop);
 *  - a thread makes communicators, another one uses each at once and frees it.
 * With an argument the first ones call MPI_Pcontrol between their messages. Prints what the events have to be, for
 * run_case. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "counted.h"

enum { kPairs = 3, kRounds = 400, kComms = 100, kStop = 99, kSelfTag = 50 };

static int rank, scoped;
static _Atomic(MPI_Comm) handed_over = MPI_COMM_NULL;

static void* play(void* argument) {
  const int tag = *(int*)argument;
  static char buffers[kPairs][kRounds + 1];
  char* const buffer = buffers[tag];
  for (int i = 1; i <= kRounds; ++i) {
    if (rank == 0) MPI_Send(buffer, i, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
    MPI_Recv(buffer, i, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(buffer, i, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
    if (scoped && (i + tag) % 11 == 0) MPI_Pcontrol((i / 11 + tag) % 2);
  }
  return NULL;
}

static void* listen(void* argument) {
  MPI_Recv(argument, 1, MPI_INT, 1 - rank, kStop, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return NULL;
}

static void* make(void* argument) {
  for (int i = 0; i < kComms; ++i) {
    MPI_Comm made;
    MPI_Comm_dup(MPI_COMM_SELF, &made);
    while (atomic_load(&handed_over) != MPI_COMM_NULL) sched_yield();
    atomic_store(&handed_over, made);
  }
  return argument;
}

static void* use(void* argument) {
  for (int i = 0; i < kComms; ++i) {
    MPI_Comm made;
    while ((made = atomic_load(&handed_over)) == MPI_COMM_NULL) sched_yield();
    atomic_store(&handed_over, MPI_COMM_NULL);
    int out = i, in = -1;
    MPI_Sendrecv(&out, 1, MPI_INT, 0, kSelfTag, &in, 1, MPI_INT, 0, kSelfTag, made, MPI_STATUS_IGNORE);
    REQUIRE(in == i);
    MPI_Comm_free(&made);
  }
  return argument;
}

int main(int argc, char** argv) {
  int provided, stop = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) return 77;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  scoped = argc > 1;
  pthread_t players[kPairs], others[3];
  int tags[kPairs], heard = -1;
  REQUIRE(pthread_create(&others[0], NULL, listen, &heard) == 0);
  REQUIRE(pthread_create(&others[1], NULL, make, NULL) == 0);
  REQUIRE(pthread_create(&others[2], NULL, use, NULL) == 0);
  for (int i = 0; i < kPairs; ++i) {
    tags[i] = i;
    REQUIRE(pthread_create(&players[i], NULL, play, &tags[i]) == 0);
  }
  for (int i = 0; i < kPairs; ++i) pthread_join(players[i], NULL);
  for (int i = 1; i < 3; ++i) pthread_join(others[i], NULL);
  MPI_Send(&stop, 1, MPI_INT, 1 - rank, kStop, MPI_COMM_WORLD);
  pthread_join(others[0], NULL);
  REQUIRE(heard == 0);
  EVENTS("send", kPairs * kRounds + 1 + kComms);
  EVENTS("recv", kPairs * kRounds + 1);
  EVENTS("startRecv", kComms);
  EVENTS("endRecv", kComms);
  EVENTS("commFree", kComms);
  EVENTS("coll", kComms);
  EVENTS("gap", 0);
  EVENTS("exit", 1);
  if (rank == 0) printf("rounds %d\ntags %d\n", kRounds, kPairs);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
