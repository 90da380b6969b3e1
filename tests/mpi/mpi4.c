/* What MPI 4.0 added, as MPICH has it: large counts, partitioned messages. `mpi4 sessions`: MPI without MPI_Init. */
#include <string.h>

#include "counted.h"

static int rank, size;

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
  CALL(MPI_Isendrecv, out, 4, MPI_INT, right, 3, in, 4, MPI_INT, left, 3, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  CALL(MPI_Isendrecv_replace, out, 4, MPI_INT, right, 4, left, 4, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  EVENTS("isend", 1);
  EVENTS("startRecv", 4);
  EVENTS("endRecv", 4);
  EVENTS("wait", 1);
  EVENTS("send", 3);
  EVENTS("coll", 2);
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

static int sessions(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int sum = 0, one = 1;
  REQUIRE(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) == MPI_SUCCESS);
  REQUIRE(MPI_Group_from_session_pset(session, "mpi://WORLD", &group) == MPI_SUCCESS);
  REQUIRE(MPI_Comm_create_from_group(group, "lbf", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm) == MPI_SUCCESS);
  MPI_Comm_rank(comm, &rank);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  if (rank == 0) printf("sum %d\n", sum);
  MPI_Group_free(&group);
  MPI_Comm_free(&comm);
  return MPI_Session_finalize(&session);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "sessions") == 0) return sessions();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  large_counts((rank + 1) % size, (rank + size - 1) % size);
  partitioned((rank + 1) % size, (rank + size - 1) % size);
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  EVENTS("coll", 1);
  EVENTS("unmodelled", 0);
  EVENTS("exit", 1);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
