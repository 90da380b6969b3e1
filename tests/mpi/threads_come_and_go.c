/* MPI_THREAD_MULTIPLE: threads that start, call and end while others are inside MPI, two processes. Each of kCarriers
 * slots has one thread after another; every one of them sends messages to its own process on the slot's communicator
 * (in several ways, also to a wildcard), looks for one that never comes, synchronises, and now and then exchanges a
 * message with its opposite. A message's size is its number on its channel, across all threads that the slot had: two
 * ends that are wrongly paired differ. Prints what all of it was, for run_case. */
#include <pthread.h>

#include "counted.h"

enum { kCarriers = 3, kLives = 5, kRounds = 1280, kMost = 4096, kTag = 7, kNever = 8 };

static int rank;
static MPI_Comm own[kCarriers];

struct life {
  int carrier, number;
};

static int bytes_of(long n) {
  return (int)(1 + n * 7 % (kMost - 1));
}

static void* live(void* argument) {
  const struct life* const life = argument;
  const MPI_Comm comm = own[life->carrier];
  char out[kMost] = {0}, in[kMost];
  for (int i = 0; i < kRounds; ++i) {
    const long n = (long)life->number * kRounds + i;
    const int any = life->carrier == 0 && i % 16 == 0;
    MPI_Request requests[2];
    int found = 0;
    MPI_Irecv(in, kMost, MPI_BYTE, 0, any ? MPI_ANY_TAG : kTag, comm, &requests[0]);
    if (i % 2 == 0) {
      MPI_Isend(out, bytes_of(n), MPI_BYTE, 0, kTag, comm, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
      MPI_Send(out, bytes_of(n), MPI_BYTE, 0, kTag, comm);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    MPI_Iprobe(0, kNever, comm, &found, MPI_STATUS_IGNORE);
    REQUIRE(!found);
    if (i % 8 == 0) MPI_Barrier(comm);
    if (i % 128 == 0) {
      MPI_Sendrecv(out, bytes_of(n), MPI_BYTE, 1 - rank, life->carrier, in, kMost, MPI_BYTE, 1 - rank, life->carrier,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  return NULL;
}

/* Calls no MPI itself. */
static void* carry(void* argument) {
  struct life life = {*(int*)argument, 0};
  for (; life.number < kLives; ++life.number) {
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, live, &life) == 0);
    pthread_join(thread, NULL);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  CALL(MPI_Init_thread, &argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) return 77;
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  pthread_t carriers[kCarriers];
  int numbers[kCarriers];
  for (int i = 0; i < kCarriers; ++i) CALL(MPI_Comm_dup, MPI_COMM_SELF, &own[i]);
  for (int i = 0; i < kCarriers; ++i) {
    numbers[i] = i;
    REQUIRE(pthread_create(&carriers[i], NULL, carry, &numbers[i]) == 0);
  }
  for (int i = 0; i < kCarriers; ++i) pthread_join(carriers[i], NULL);
  for (int i = 0; i < kCarriers; ++i) CALL(MPI_Comm_free, &own[i]);
  const long rounds = (long)kCarriers * kLives * kRounds;
  lbf_add(0, "MPI_Irecv", rounds);
  lbf_add(0, "MPI_Isend", rounds / 2);
  lbf_add(0, "MPI_Waitall", rounds / 2);
  lbf_add(0, "MPI_Send", rounds / 2);
  lbf_add(0, "MPI_Wait", rounds / 2);
  lbf_add(0, "MPI_Iprobe", rounds);
  lbf_add(0, "MPI_Barrier", rounds / 8);
  lbf_add(0, "MPI_Sendrecv", rounds / 128);
  EVENTS("send", rounds + rounds / 128);
  EVENTS("coll", rounds / 8 + kCarriers);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
