/* One program in three languages (bindings.c, bindings_mpifh.f90, bindings_f08.f90): the same calls in the
 * same order, so that the capture must leave the same events. Here they are counted as well. Even number of
 * ranks. */
#include "counted.h"

enum { kWords = 16 };

int main(int argc, char** argv) {
  int rank, size, flag, index, outcount;
  int a[kWords] = {0}, b[kWords * 64] = {0}, c[kWords * 64] = {0};
  int counts[64], displs[64], indices[4];
  MPI_Request requests[4];
  MPI_Status status, statuses[4];
  MPI_Comm dup, half, cart;
  MPI_Message message;

  CALL(MPI_Init, &argc, &argv);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  CALL(MPI_Comm_size, MPI_COMM_WORLD, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size, pair = rank ^ 1;

  /* blocking, all modes */
  if (rank % 2 == 0) {
    CALL(MPI_Send, a, 3, MPI_INTEGER, pair, 10, MPI_COMM_WORLD);
    CALL(MPI_Ssend, a, 4, MPI_INTEGER, pair, 11, MPI_COMM_WORLD);
    CALL(MPI_Recv, b, kWords, MPI_INTEGER, pair, 12, MPI_COMM_WORLD, &status);
    CALL(MPI_Send, a, 0, MPI_INTEGER, MPI_PROC_NULL, 10, MPI_COMM_WORLD);
    EVENTS("send", 2);
    EVENTS("recv", 1);
  } else {
    CALL(MPI_Recv, b, kWords, MPI_INTEGER, pair, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CALL(MPI_Recv, b, kWords, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CALL(MPI_Send, a, 5, MPI_DOUBLE_PRECISION, pair, 12, MPI_COMM_WORLD);
    CALL(MPI_Recv, b, 0, MPI_INTEGER, MPI_PROC_NULL, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EVENTS("send", 1);
    EVENTS("recv", 2);
  }
  CALL(MPI_Sendrecv, a, 6, MPI_INTEGER, right, 13, b, kWords, MPI_INTEGER, left, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CALL(MPI_Sendrecv_replace, a, 7, MPI_INTEGER, left, 14, right, 14, MPI_COMM_WORLD, &status);
  EVENTS("startRecv", 2);
  EVENTS("send", 2);
  EVENTS("endRecv", 2);

  /* non-blocking */
  CALL(MPI_Irecv, b, kWords, MPI_INTEGER, left, 20, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Irecv, c, kWords, MPI_INTEGER, MPI_ANY_SOURCE, 21, MPI_COMM_WORLD, &requests[1]);
  CALL(MPI_Isend, a, 8, MPI_INTEGER, right, 20, MPI_COMM_WORLD, &requests[2]);
  CALL(MPI_Issend, a, 9, MPI_INTEGER, left, 21, MPI_COMM_WORLD, &requests[3]);
  CALL(MPI_Waitall, 4, requests, MPI_STATUSES_IGNORE);
  EVENTS("startRecv", 2);
  EVENTS("endRecv", 2);
  EVENTS("isend", 2);
  EVENTS("wait", 2);
  CALL(MPI_Irecv, b, kWords, MPI_INTEGER, left, 22, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Isend, a, 10, MPI_INTEGER, right, 22, MPI_COMM_WORLD, &requests[1]);
  CALL(MPI_Wait, &requests[0], &status);
  CALL(MPI_Wait, &requests[1], MPI_STATUS_IGNORE);
  CALL(MPI_Wait, &requests[1], MPI_STATUS_IGNORE); /* null: nothing */
  EVENTS("startRecv", 1);
  EVENTS("endRecv", 1);
  EVENTS("isend", 1);
  EVENTS("wait", 1);
  CALL(MPI_Irecv, b, kWords, MPI_INTEGER, left, 23, MPI_COMM_WORLD, &requests[0]);
  requests[1] = MPI_REQUEST_NULL;
  CALL(MPI_Send, a, 1, MPI_INTEGER, right, 23, MPI_COMM_WORLD);
  CALL(MPI_Waitany, 2, requests, &index, MPI_STATUS_IGNORE);
  REQUIRE(index == 0);
  CALL(MPI_Irecv, b, kWords, MPI_INTEGER, left, 24, MPI_COMM_WORLD, &requests[1]);
  CALL(MPI_Send, a, 2, MPI_INTEGER, right, 24, MPI_COMM_WORLD);
  CALL(MPI_Waitsome, 2, requests, &outcount, indices, MPI_STATUSES_IGNORE);
  REQUIRE(outcount == 1 && indices[0] == 1);
  EVENTS("startRecv", 2);
  EVENTS("endRecv", 2);
  EVENTS("send", 2);
  CALL(MPI_Irecv, b, kWords, MPI_INTEGER, left, 25, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Send, a, 2, MPI_INTEGER, right, 25, MPI_COMM_WORLD);
  for (flag = 0; !flag;) CALL(MPI_Test, &requests[0], &flag, MPI_STATUS_IGNORE);
  CALL(MPI_Irecv, b, kWords, MPI_INTEGER, left, 26, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Send, a, 3, MPI_INTEGER, right, 26, MPI_COMM_WORLD);
  for (flag = 0; !flag;) CALL(MPI_Testall, 2, requests, &flag, statuses);
  CALL(MPI_Irecv, b, kWords, MPI_INTEGER, left, 27, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Send, a, 4, MPI_INTEGER, right, 27, MPI_COMM_WORLD);
  for (flag = 0; !flag;) CALL(MPI_Testany, 2, requests, &index, &flag, &status);
  CALL(MPI_Irecv, b, kWords, MPI_INTEGER, left, 28, MPI_COMM_WORLD, &requests[1]);
  CALL(MPI_Send, a, 5, MPI_INTEGER, right, 28, MPI_COMM_WORLD);
  for (outcount = 0; outcount == 0;) CALL(MPI_Testsome, 2, requests, &outcount, indices, statuses);
  EVENTS("startRecv", 4);
  EVENTS("endRecv", 4);
  EVENTS("send", 4);

  /* persistent */
  CALL(MPI_Recv_init, b, kWords, MPI_INTEGER, left, 30, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Send_init, a, 11, MPI_INTEGER, right, 30, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < 3; ++i) {
    CALL(MPI_Startall, 2, requests);
    CALL(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);
  }
  CALL(MPI_Start, &requests[0]);
  CALL(MPI_Start, &requests[1]);
  CALL(MPI_Wait, &requests[1], MPI_STATUS_IGNORE);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE); /* inactive: nothing */
  CALL(MPI_Request_free, &requests[0]);
  CALL(MPI_Request_free, &requests[1]);
  EVENTS("startRecv", 4);
  EVENTS("endRecv", 4);
  EVENTS("isend", 4);
  EVENTS("wait", 4);

  /* probes */
  CALL(MPI_Isend, a, 12, MPI_INTEGER, right, 31, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Probe, left, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  CALL(MPI_Recv, b, kWords, MPI_INTEGER, left, 31, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  CALL(MPI_Isend, a, 13, MPI_INTEGER, right, 32, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Mprobe, left, 32, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  CALL(MPI_Mrecv, b, kWords, MPI_INTEGER, &message, MPI_STATUS_IGNORE);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  CALL(MPI_Isend, a, 14, MPI_INTEGER, right, 33, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Mprobe, left, 33, MPI_COMM_WORLD, &message, &status);
  CALL(MPI_Imrecv, b, kWords, MPI_INTEGER, &message, &requests[1]);
  CALL(MPI_Wait, &requests[1], &status);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  EVENTS("isend", 3);
  EVENTS("wait", 3);
  EVENTS("probe", 1);
  EVENTS("recv", 1);
  EVENTS("startRecv", 2);
  EVENTS("endRecv", 2);

  /* cancel */
  CALL(MPI_Irecv, b, kWords, MPI_INTEGER, left, 99, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Cancel, &requests[0]);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  EVENTS("startRecv", 1);
  EVENTS("cancel", 1);

  /* communicators */
  CALL(MPI_Comm_dup, MPI_COMM_WORLD, &dup);
  CALL(MPI_Comm_split, MPI_COMM_WORLD, rank % 2, -rank, &half);
  EVENTS("coll", 2);
  EVENTS("commCreate", 2);
  int half_rank, half_size;
  CALL(MPI_Comm_rank, half, &half_rank);
  CALL(MPI_Comm_size, half, &half_size);
  CALL(MPI_Sendrecv, a, 2, MPI_INTEGER, (half_rank + 1) % half_size, 40, b, kWords, MPI_INTEGER,
       (half_rank + half_size - 1) % half_size, 40, half, MPI_STATUS_IGNORE);
  EVENTS("startRecv", 1);
  EVENTS("send", 1);
  EVENTS("endRecv", 1);
  const int dims[1] = {size}, periods[1] = {0};
  CALL(MPI_Cart_create, MPI_COMM_WORLD, 1, dims, periods, 0, &cart);
  CALL(MPI_Neighbor_allgather, a, 2, MPI_INTEGER, b, 2, MPI_INTEGER, cart);
  EVENTS("coll", 2);
  EVENTS("commCreate", 1);

  /* collectives */
  CALL(MPI_Barrier, half);
  CALL(MPI_Bcast, a, 5, MPI_INTEGER, size - 1, dup);
  CALL(MPI_Reduce, a, b, 6, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD);
  CALL(MPI_Allreduce, MPI_IN_PLACE, b, 7, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD);
  CALL(MPI_Gather, a, 3, MPI_INTEGER, b, 3, MPI_INTEGER, 0, MPI_COMM_WORLD);
  CALL(MPI_Scatter, b, 4, MPI_INTEGER, a, 4, MPI_INTEGER, 0, MPI_COMM_WORLD);
  CALL(MPI_Allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 5, MPI_INTEGER, MPI_COMM_WORLD);
  CALL(MPI_Alltoall, b, 2, MPI_INTEGER, c, 2, MPI_INTEGER, MPI_COMM_WORLD);
  CALL(MPI_Scan, a, b, 8, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD);
  CALL(MPI_Exscan, a, b, 9, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD);
  CALL(MPI_Reduce_scatter_block, b, a, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) {
    counts[i] = i + 1;
    displs[i] = i * kWords;
  }
  CALL(MPI_Gatherv, a, rank + 1, MPI_INTEGER, b, counts, displs, MPI_INTEGER, 1, MPI_COMM_WORLD);
  CALL(MPI_Scatterv, b, counts, displs, MPI_INTEGER, a, rank + 1, MPI_INTEGER, 1, MPI_COMM_WORLD);
  CALL(MPI_Allgatherv, a, rank + 1, MPI_INTEGER, b, counts, displs, MPI_INTEGER, MPI_COMM_WORLD);
  CALL(MPI_Reduce_scatter, b, a, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) counts[i] = 3;
  CALL(MPI_Alltoallv, b, counts, displs, MPI_INTEGER, c, counts, displs, MPI_INTEGER, MPI_COMM_WORLD);
  EVENTS("coll", 16);
  CALL(MPI_Iallreduce, a, b, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  CALL(MPI_Ibarrier, half, &requests[0]);
  CALL(MPI_Ibcast, b, 3, MPI_INTEGER, 0, MPI_COMM_WORLD, &requests[1]);
  CALL(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);
  EVENTS("icoll", 3);
  EVENTS("wait", 3);

  CALL(MPI_Comm_free, &cart);
  CALL(MPI_Comm_free, &half);
  CALL(MPI_Comm_free, &dup);
  EVENTS("commFree", 3);
  CALL(MPI_Pcontrol, 2);
  EVENTS("phase", 1);
  EVENTS("exit", 1);
  EVENTS("unmodelled", 0);
  EVENTS("requestFree", 0);
  EVENTS("gap", 0);
  lbf_add(0, "MPI_Finalize", 1);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
