/* What bindings.c leaves out: intercommunicators, groups, idup, topologies, neighbourhood and v-collectives
 * in place, derived types, PROC_NULL requests, Request_free, spawned-by-nobody calls without a model. 4
 * ranks. */
#include "counted.h"

enum { kWords = 64 };

static int rank, size;
static int a[kWords], b[kWords * 8], c[kWords * 8];

static void requests_of_all_kinds(void) {
  MPI_Request requests[6];
  MPI_Status statuses[6];
  int flag = 1, outcount, indices[6], done = 0;
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;

  /* MPI_PROC_NULL among real ones: Open MPI gives requests that are complete at once one common handle */
  CALL(MPI_Irecv, b, 4, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Isend, a, 4, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[1]);
  CALL(MPI_Isend, a, 5, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[2]);
  CALL(MPI_Isend, a, 6, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[3]);
  CALL(MPI_Irecv, b, 8, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[4]);
  CALL(MPI_Irecv, c, 8, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &requests[5]);
  while (done < 6) {
    CALL(MPI_Waitsome, 6, requests, &outcount, indices, MPI_STATUSES_IGNORE);
    REQUIRE(outcount != MPI_UNDEFINED);
    done += outcount;
  }
  CALL(MPI_Waitsome, 6, requests, &outcount, indices, MPI_STATUSES_IGNORE);
  REQUIRE(outcount == MPI_UNDEFINED);
  EVENTS("isend", 2);
  EVENTS("wait", 2);
  EVENTS("startRecv", 2);
  EVENTS("endRecv", 2);

  /* failed polls leave no events */
  CALL(MPI_Irecv, b, 4, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  EVENTS("coll", 1);
  CALL(MPI_Test, &requests[0], &flag, MPI_STATUS_IGNORE);
  REQUIRE(!flag);
  CALL(MPI_Testall, 1, requests, &flag, statuses);
  REQUIRE(!flag);
  CALL(MPI_Request_get_status, requests[0], &flag, MPI_STATUS_IGNORE);
  REQUIRE(!flag);
  CALL(MPI_Iprobe, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  REQUIRE(!flag);
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  EVENTS("coll", 1);
  CALL(MPI_Send, a, 2, MPI_INT, right, 2, MPI_COMM_WORLD);
  CALL(MPI_Waitall, 1, requests, statuses);
  int count;
  CALL(MPI_Get_count, &statuses[0], MPI_INT, &count);
  REQUIRE(count == 2 && statuses[0].MPI_SOURCE == left);
  EVENTS("startRecv", 1);
  EVENTS("endRecv", 1);
  EVENTS("send", 1);

  /* freed while active; many at once (beyond the inline snapshot) */
  CALL(MPI_Isend, a, 1, MPI_INT, right, 3, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Request_free, &requests[0]);
  CALL(MPI_Recv, b, 1, MPI_INT, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EVENTS("isend", 1);
  EVENTS("requestFree", 1);
  EVENTS("recv", 1);
  enum { kMany = 100 };
  static MPI_Request many[2 * kMany];
  for (int i = 0; i < kMany; ++i) {
    CALL(MPI_Irecv, &c[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &many[2 * i]);
    CALL(MPI_Isend, &b[i], 1, MPI_INT, right, i, MPI_COMM_WORLD, &many[2 * i + 1]);
  }
  CALL(MPI_Waitall, 2 * kMany, many, MPI_STATUSES_IGNORE);
  EVENTS("isend", kMany);
  EVENTS("wait", kMany);
  EVENTS("startRecv", kMany);
  EVENTS("endRecv", kMany);

  /* Improbe until it finds */
  MPI_Message message;
  CALL(MPI_Isend, a, 7, MPI_INT, right, 4, MPI_COMM_WORLD, &requests[0]);
  for (flag = 0; !flag;) CALL(MPI_Improbe, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
  CALL(MPI_Mrecv, b, 8, MPI_INT, &message, &statuses[0]);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  CALL(MPI_Mprobe, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  CALL(MPI_Mrecv, b, 8, MPI_INT, &message, MPI_STATUS_IGNORE);
  EVENTS("isend", 1);
  EVENTS("wait", 1);
  EVENTS("startRecv", 1);
  EVENTS("endRecv", 1);
}

static void derived_types(void) {
  MPI_Datatype vector;
  for (int i = 1; i <= 3; ++i) { /* the handle is likely reused with another size */
    CALL(MPI_Type_vector, i, 2, 4, MPI_INT, &vector);
    CALL(MPI_Type_commit, &vector);
    if (rank == 0) CALL(MPI_Send, a, 2, vector, 1, 5, MPI_COMM_WORLD);
    if (rank == 1) {
      MPI_Status status;
      CALL(MPI_Recv, b, 4 * i, MPI_INT, 0, 5, MPI_COMM_WORLD, &status);
    }
    CALL(MPI_Type_free, &vector);
  }
  EVENTS("send", rank == 0 ? 3 : 0);
  EVENTS("recv", rank == 1 ? 3 : 0);
}

static void communicators(void) {
  MPI_Comm comm, inter, merged, dup, self_dup;
  MPI_Request request;
  MPI_Group world_group, group;

  /* MPI_UNDEFINED: only some are members, and the next creation still agrees */
  CALL(MPI_Comm_split, MPI_COMM_WORLD, rank == 3 ? MPI_UNDEFINED : 0, rank, &comm);
  EVENTS("coll", 1);
  if (rank != 3) {
    EVENTS("commCreate", 1);
    CALL(MPI_Barrier, comm);
    CALL(MPI_Comm_free, &comm);
    EVENTS("coll", 1);
    EVENTS("commFree", 1);
  }
  CALL(MPI_Comm_split_type, MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  CALL(MPI_Comm_free, &comm);
  EVENTS("coll", 1);
  EVENTS("commCreate", 1);
  EVENTS("commFree", 1);

  /* over a group only, twice with the same arguments */
  CALL(MPI_Comm_group, MPI_COMM_WORLD, &world_group);
  const int members[2] = {3, 1};
  CALL(MPI_Group_incl, world_group, 2, members, &group);
  for (int i = 0; i < 2 && rank % 2 == 1; ++i) {
    CALL(MPI_Comm_create_group, MPI_COMM_WORLD, group, 9, &comm);
    int x = 0;
    if (rank == 3) CALL(MPI_Send, &x, 1, MPI_INT, 1, 0, comm);
    if (rank == 1) CALL(MPI_Recv, &x, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
    CALL(MPI_Comm_free, &comm);
    EVENTS("coll", 1);
    EVENTS("commCreate", 1);
    EVENTS("commFree", 1);
    EVENTS(rank == 3 ? "send" : "recv", 1);
  }
  CALL(MPI_Comm_create, MPI_COMM_WORLD, group, &comm);
  EVENTS("coll", 1);
  if (rank % 2 == 1) {
    EVENTS("commCreate", 1);
    CALL(MPI_Comm_disconnect, &comm);
    EVENTS("commFree", 1);
  }
  CALL(MPI_Group_free, &group);
  CALL(MPI_Group_free, &world_group);

  /* intercommunicator between even and odd ranks */
  CALL(MPI_Comm_split, MPI_COMM_WORLD, rank % 2, rank, &comm);
  CALL(MPI_Intercomm_create, comm, 0, MPI_COMM_WORLD, rank % 2 == 0 ? 1 : 0, 8, &inter);
  EVENTS("coll", 2);
  EVENTS("commCreate", 2);
  int x = rank, y = -1;
  CALL(MPI_Sendrecv, &x, 1, MPI_INT, rank / 2, 6, &y, 1, MPI_INT, rank / 2, 6, inter, MPI_STATUS_IGNORE);
  REQUIRE(y == (rank ^ 1));
  EVENTS("startRecv", 1);
  EVENTS("send", 1);
  EVENTS("endRecv", 1);
  CALL(MPI_Bcast, &x, 1, MPI_INT, rank == 0 ? MPI_ROOT : rank % 2 == 0 ? MPI_PROC_NULL : 0, inter);
  CALL(MPI_Allgather, &x, 1, MPI_INT, b, 1, MPI_INT, inter);
  CALL(MPI_Barrier, inter);
  CALL(MPI_Comm_dup, inter, &dup);
  CALL(MPI_Intercomm_merge, inter, rank % 2, &merged);
  EVENTS("coll", 5);
  EVENTS("commCreate", 2);
  CALL(MPI_Barrier, merged);
  EVENTS("coll", 1);
  CALL(MPI_Comm_free, &merged);
  CALL(MPI_Comm_free, &dup);
  CALL(MPI_Comm_free, &inter);
  CALL(MPI_Comm_free, &comm);
  EVENTS("commFree", 4);

  CALL(MPI_Comm_idup, MPI_COMM_WORLD, &dup, &request);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  EVENTS("icoll", 1);
  EVENTS("wait", 1);
  EVENTS("commCreate", 1);
  CALL(MPI_Allreduce, &x, &y, 1, MPI_INT, MPI_SUM, dup);
  EVENTS("coll", 1);
  CALL(MPI_Comm_free, &dup);
  EVENTS("commFree", 1);

  /* MPI_COMM_SELF is defined when it is first used */
  CALL(MPI_Sendrecv, &x, 1, MPI_INT, 0, 1, &y, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  CALL(MPI_Comm_dup, MPI_COMM_SELF, &self_dup);
  CALL(MPI_Barrier, self_dup);
  CALL(MPI_Comm_free, &self_dup);
  EVENTS("commCreate", 2);
  EVENTS("startRecv", 1);
  EVENTS("send", 1);
  EVENTS("endRecv", 1);
  EVENTS("coll", 2);
  EVENTS("commFree", 1);
}

static void collectives(void) {
  MPI_Request requests[4];
  MPI_Datatype types[8];
  int counts[8], displs[8];
  for (int i = 0; i < size; ++i) {
    counts[i] = i;
    displs[i] = i * 16;
    types[i] = MPI_INT;
  }
  int to[8], to_displs[8];
  for (int i = 0; i < size; ++i) {
    to[i] = rank;
    to_displs[i] = i * 16 * (int)sizeof(int);
  }
  CALL(MPI_Alltoallw, b, to, to_displs, types, c, counts, to_displs, types, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) counts[i] = 2;
  CALL(MPI_Alltoallv, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, c, counts, displs, MPI_INT, MPI_COMM_WORLD);
  CALL(MPI_Gather, rank == 2 ? MPI_IN_PLACE : (void*)a, 2, MPI_INT, b, 2, MPI_INT, 2, MPI_COMM_WORLD);
  CALL(MPI_Scatterv, b, counts, displs, MPI_INT, rank == 2 ? MPI_IN_PLACE : (void*)a, 2, MPI_INT, 2, MPI_COMM_WORLD);
  CALL(MPI_Allgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, counts, displs, MPI_INT, MPI_COMM_WORLD);
  CALL(MPI_Reduce, rank == 1 ? MPI_IN_PLACE : (void*)a, rank == 1 ? b : NULL, 3, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
  CALL(MPI_Bcast, NULL, 0, MPI_INT, 0, MPI_COMM_WORLD);
  EVENTS("coll", 7);
  CALL(MPI_Igatherv, a, 2, MPI_INT, b, counts, displs, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Ialltoall, b, 1, MPI_INT, c, 1, MPI_INT, MPI_COMM_WORLD, &requests[1]);
  CALL(MPI_Ireduce_scatter, b, a, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
  CALL(MPI_Ibarrier, MPI_COMM_SELF, &requests[3]);
  for (int flag = 0; !flag;) CALL(MPI_Testall, 4, requests, &flag, MPI_STATUSES_IGNORE);
  EVENTS("icoll", 4);
  EVENTS("wait", 4);

  MPI_Comm cart, graph;
  const int dims[2] = {2, 2}, periods[2] = {1, 0};
  CALL(MPI_Cart_create, MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
  CALL(MPI_Neighbor_alltoall, b, 3, MPI_INT, c, 3, MPI_INT, cart);
  CALL(MPI_Ineighbor_allgather, a, 3, MPI_INT, c, 3, MPI_INT, cart, &requests[0]);
  CALL(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);
  MPI_Comm row;
  const int remain[2] = {0, 1};
  CALL(MPI_Cart_sub, cart, remain, &row);
  CALL(MPI_Barrier, row);
  CALL(MPI_Comm_free, &row);
  CALL(MPI_Comm_free, &cart);
  EVENTS("coll", 4);
  EVENTS("icoll", 1);
  EVENTS("wait", 1);
  EVENTS("commCreate", 2);
  EVENTS("commFree", 2);
  const int from = (rank + size - 1) % size, next = (rank + 1) % size, send_count = rank + 1, recv_count = from + 1;
  const int zero = 0;
  CALL(MPI_Dist_graph_create_adjacent, MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED,
       MPI_INFO_NULL, 0, &graph);
  CALL(MPI_Neighbor_alltoallv, b, &send_count, &zero, MPI_INT, c, &recv_count, &zero, MPI_INT, graph);
  CALL(MPI_Comm_free, &graph);
  EVENTS("coll", 2);
  EVENTS("commCreate", 1);
  EVENTS("commFree", 1);
}

static int query(void* state, MPI_Status* status) {
  (void)state;
  MPI_Status_set_elements(status, MPI_INT, 0);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
static int free_state(void* state) {
  (void)state;
  return MPI_SUCCESS;
}
static int cancel(void* state, int complete) {
  (void)state;
  return complete ? MPI_SUCCESS : MPI_ERR_OTHER;
}

/* Without a model: counted, timed, and said so. */
static void without_model(void) {
  MPI_Request request;
  CALL(MPI_Grequest_start, query, free_state, cancel, NULL, &request);
  CALL(MPI_Grequest_complete, request);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  EVENTS("unmodelled", 3);
}

int main(int argc, char** argv) {
  CALL(MPI_Init, &argc, &argv);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  CALL(MPI_Comm_size, MPI_COMM_WORLD, &size);
  REQUIRE(size == 4);
  requests_of_all_kinds();
  derived_types();
  communicators();
  collectives();
  without_model();
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  EVENTS("coll", 1);
  EVENTS("exit", 1);
  EVENTS("gap", 0);
  lbf_add(0, "MPI_Finalize", 1);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
