/* What MPI 4.0 added, as far as MPICH 4 and Open MPI 5 have it: large counts (not Open MPI 5), messages that go both
 * ways, partitioned ones, persistent collectives. `mpi4 mpifh`, `mpi4 f08`: what mpi4_body.inc does, too. */
#include <string.h>

#include "counted.h"

static int rank, size;

#if !defined(OPEN_MPI) || OMPI_MAJOR_VERSION >= 6
static void large_counts(int right, int left) {
  static int out[64], in[64];
  MPI_Count counts[64];
  MPI_Aint places[64];
  MPI_Request requests[2];
  MPI_Status status;
  CALL(MPI_Irecv_c, in, 8, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Isend_c, out, 8, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[1]);
  CALL(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);
  CALL(MPI_Sendrecv_c, out, 3, MPI_INT, right, 2, in, 64, MPI_INT, left, 2, MPI_COMM_WORLD, &status);
  CALL(MPI_Allreduce_c, out, in, 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) counts[i] = 2, places[i] = 2 * i;
  CALL(MPI_Alltoallv_c, out, counts, places, MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
  EVENTS("isend", 1);
  EVENTS("startRecv", 2);
  EVENTS("endRecv", 2);
  EVENTS("wait", 1);
  EVENTS("send", 1);
  EVENTS("coll", 2);
}
#else
static void large_counts(int right, int left) {
  (void)right, (void)left;
}
#endif

static void both_ways(int right, int left) {
  static int out[64], in[64];
  MPI_Request request;
  CALL(MPI_Isendrecv, out, 4, MPI_INT, right, 3, in, 4, MPI_INT, left, 3, MPI_COMM_WORLD, &request);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  CALL(MPI_Isendrecv_replace, out, 4, MPI_INT, right, 4, left, 4, MPI_COMM_WORLD, &request);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  EVENTS("startRecv", 2);
  EVENTS("endRecv", 2);
  EVENTS("send", 2);
}

static void partitioned(int right, int left) {
  enum { kPartitions = 4, kEach = 100, kRounds = 3 };
  static double out[kPartitions * kEach], in[kPartitions * kEach];
  int last[1] = {3}, arrived = 0;
  MPI_Request send, receive;
  CALL(MPI_Psend_init, out, kPartitions, kEach, MPI_DOUBLE, right, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  CALL(MPI_Precv_init, in, kPartitions, kEach, MPI_DOUBLE, left, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kPartitions * kEach; ++i) out[i] = rank + round;
    CALL(MPI_Start, &receive);
    CALL(MPI_Start, &send);
    CALL(MPI_Pready, 0, send);
    CALL(MPI_Pready_range, 1, 2, send);
    CALL(MPI_Pready_list, 1, last, send);
    while (!arrived) MPI_Parrived(receive, 3, &arrived);
    CALL(MPI_Wait, &send, MPI_STATUS_IGNORE);
    CALL(MPI_Wait, &receive, MPI_STATUS_IGNORE);
    REQUIRE(in[kPartitions * kEach - 1] == left + round);
    arrived = 0;
    EVENTS("startRecv", 1);
    EVENTS("isend", 1);
    EVENTS("wait", 1);
    EVENTS("endRecv", 1);
  }
  CALL(MPI_Request_free, &send);
  CALL(MPI_Request_free, &receive);
}

/* Each is started kRounds times, alone or with others; those of kinds with values (v, w, neighbourhood) too. */
static void persistent_collectives(void) {
  enum { kRounds = 3, kKinds = 7 };
  static int out[64], in[64], all[256];
  int counts[64], same[64], places[64], bytes[64], periods[1] = {1}, sum = 0;
  MPI_Datatype types[64];
  MPI_Comm ring;
  MPI_Request requests[kKinds];
  for (int i = 0; i < size; ++i)
    counts[i] = i + 1, same[i] = rank + 1, places[i] = 4 * i, bytes[i] = 16 * i, types[i] = MPI_INT;
  CALL(MPI_Cart_create, MPI_COMM_WORLD, 1, &size, periods, 0, &ring);
  EVENTS("coll", 1);
  EVENTS("commCreate", 1);
  for (int again = 0; again < 2; ++again) { /* freed, and made again */
    int k = 0;
    CALL(MPI_Barrier_init, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[k++]);
    CALL(MPI_Bcast_init, out, 5, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[k++]);
    CALL(MPI_Allreduce_init, &rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[k++]);
    CALL(MPI_Gatherv_init, in, rank + 1, MPI_INT, all, counts, places, MPI_INT, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
         &requests[k++]);
    CALL(MPI_Alltoallw_init, in, counts, bytes, types, all, same, bytes, types, MPI_COMM_WORLD, MPI_INFO_NULL,
         &requests[k++]);
    CALL(MPI_Reduce_scatter_init, all, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[k++]);
    CALL(MPI_Neighbor_alltoall_init, out, 3, MPI_INT, in, 3, MPI_INT, ring, MPI_INFO_NULL, &requests[k++]);
    for (int i = 0; i < kRounds; ++i) {
      for (int j = 0; j < k; ++j) {
        CALL(MPI_Start, &requests[j]);
        CALL(MPI_Wait, &requests[j], MPI_STATUS_IGNORE);
      }
      REQUIRE(sum == size * (size - 1) / 2);
      sum = 0;
    }
    CALL(MPI_Startall, 2, &requests[1]);
    CALL(MPI_Waitall, 2, &requests[1], MPI_STATUSES_IGNORE);
    for (int j = 0; j < k; ++j) CALL(MPI_Request_free, &requests[j]);
    EVENTS("icoll", kKinds * kRounds + 2);
    EVENTS("wait", kKinds * kRounds + 2);
  }
  CALL(MPI_Comm_free, &ring);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
#ifdef F08_LARGE_COUNTS
  if (argc == 1 || strcmp(argv[1], "f08") == 0) large_counts(right, left);
#else
  if (argc == 1) large_counts(right, left);
#endif
  both_ways(right, left);
  if (argc == 1 || strcmp(argv[1], "f08") != 0) partitioned(right, left);
  persistent_collectives();
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  EVENTS("coll", 1);
  EVENTS("unmodelled", 0);
  EVENTS("exit", 1);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
