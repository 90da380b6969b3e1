/* Communicators that are made and freed all the time: communicators [ROUNDS]; any number of ranks from 2. Most are not
 * used, some at once, some long after they were made, some only to make others of them; intercommunicators, too. What
 * each rank sends and takes part in is counted and printed. `communicators ROUNDS unused`: none is used. */
#include "counted.h"

static int rank, size;
static long sent, collectives;

static void use(MPI_Comm comm, int bytes) {
  static char out[4096], in[4096];
  int me, all;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &all);
  MPI_Barrier(comm);
  collectives += 1;
  MPI_Request request;
  MPI_Irecv(in, sizeof in, MPI_BYTE, (me + all - 1) % all, 3, comm, &request);
  MPI_Send(out, bytes, MPI_BYTE, (me + 1) % all, 3, comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  sent += 1;
}

static MPI_Comm duplicate(MPI_Comm comm) {
  MPI_Comm made;
  MPI_Comm_dup(comm, &made);
  collectives += 1;
  return made;
}

static MPI_Comm halves(MPI_Comm comm) {
  MPI_Comm made;
  MPI_Comm_split(comm, rank % 2, -rank, &made); /* in the opposite order */
  collectives += 1;
  return made;
}

static void do_without(MPI_Comm comm) {
  MPI_Comm_free(&comm);
}

/* Of the two halves, and what is made of it. */
static void across(long i) {
  MPI_Comm half = halves(MPI_COMM_WORLD), inter, merged;
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? (size - 1) / 2 * 2 : size / 2 * 2 - 1, 7, &inter);
  do_without(half);
  MPI_Comm twin = duplicate(inter);
  if (i % 2 == 0) MPI_Barrier(twin);
  MPI_Intercomm_merge(inter, rank % 2, &merged);
  collectives += 2 + (i % 2 == 0);
  use(merged, 100);
  do_without(merged);
  do_without(twin);
  do_without(inter);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const long rounds = argc > 1 ? atol(argv[1]) : 300;
  const int unused = argc > 2;
  MPI_Comm kept = MPI_COMM_NULL;
  for (long i = 0; i < rounds; ++i) {
    do_without(duplicate(MPI_COMM_WORLD));
    do_without(halves(MPI_COMM_WORLD));
    if (unused) continue;
    if (i % 4 == 0) { /* its child is used, too */
      MPI_Comm used = halves(MPI_COMM_WORLD);
      MPI_Comm child = duplicate(used);
      use(used, 1 + (int)(i % 1000));
      do_without(used);
      use(child, 2 + (int)(i % 1000));
      do_without(child);
    }
    if (i % 8 == 0) {
      MPI_Request request;
      MPI_Comm late;
      MPI_Comm_idup(MPI_COMM_WORLD, &late, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      collectives += 1;
      if (i % 16 == 0) use(late, 5);
      do_without(late);
    }
    if (i % 64 == 0) kept = duplicate(MPI_COMM_WORLD);
    if (i % 64 == 40) use(kept, 3);
    if (i % 64 == 60) MPI_Comm_free(&kept);
    if (i % 100 == 0) across(i / 100);
  }
  if (kept != MPI_COMM_NULL) MPI_Comm_free(&kept);
  EVENTS("send", sent);
  EVENTS("coll", collectives);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
