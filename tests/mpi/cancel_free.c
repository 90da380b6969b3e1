/* Requests that are cancelled and then freed, so that no MPI_Wait says what became of them.
 * cancel_free incomplete: while it is not known yet, because a large message is on its way.
 * cancel_free across: where MPI_Wait says it, but the capture only counts by then. */
#include "counted.h"

enum { kRounds = 20 };

/* The first receive is cancelled before anything was sent: the message is the second one's. */
static void cancelled(int rank) {
  int x = 7;
  MPI_Request request;
  if (rank == 1) {
    CALL(MPI_Barrier, MPI_COMM_WORLD);
    CALL(MPI_Send, &x, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    EVENTS("send", 1);
    return;
  }
  x = 0;
  CALL(MPI_Irecv, &x, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &request);
  CALL(MPI_Cancel, &request);
  CALL(MPI_Request_free, &request);
  REQUIRE(request == MPI_REQUEST_NULL);
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  CALL(MPI_Irecv, &x, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &request);
  CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
  REQUIRE(x == 7);
  EVENTS("startRecv", 2);
  EVENTS("cancel", 1);
  EVENTS("endRecv", 1);
}

/* The receive has its message already: MPI_Cancel does nothing. */
static void complete(int rank) {
  int x = 8;
  MPI_Request request;
  if (rank == 1) {
    CALL(MPI_Send, &x, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
    EVENTS("send", 1);
    CALL(MPI_Barrier, MPI_COMM_WORLD);
    return;
  }
  MPI_Status status;
  x = 0;
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  CALL(MPI_Probe, 1, 6, MPI_COMM_WORLD, &status);
  CALL(MPI_Irecv, &x, 1, MPI_INT, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  CALL(MPI_Cancel, &request);
  CALL(MPI_Request_free, &request);
  REQUIRE(x == 8);
  EVENTS("probe", 1);
  EVENTS("startRecv", 1);
  EVENTS("endRecv", 1);
}

/* A persistent receive; the one that is not active has nothing to be cancelled. */
static void persistent(int rank) {
  int x = 0;
  MPI_Request request;
  if (rank == 1) return;
  for (int active = 0; active < 2; ++active) {
    CALL(MPI_Recv_init, &x, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, &request);
    if (active) {
      CALL(MPI_Start, &request);
      CALL(MPI_Cancel, &request);
    }
    CALL(MPI_Request_free, &request);
  }
  EVENTS("startRecv", 1);
  EVENTS("cancel", 1);
}

enum { kLarge = 32 << 20 };
static char large[kLarge];

static void incomplete(int rank) {
  int x = 0;
  MPI_Status status;
  MPI_Request request;
  if (rank == 1) {
    memset(large, 1, kLarge);
    CALL(MPI_Send, large, kLarge, MPI_BYTE, 0, 8, MPI_COMM_WORLD);
    CALL(MPI_Recv, &x, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, &status);
    EVENTS("send", 1);
    EVENTS("recv", 1);
    EVENTS("gap", 0);
    return;
  }
  CALL(MPI_Probe, 1, 8, MPI_COMM_WORLD, &status);
  CALL(MPI_Irecv, large, kLarge, MPI_BYTE, 1, 8, MPI_COMM_WORLD, &request);
  CALL(MPI_Cancel, &request);
  CALL(MPI_Request_free, &request);
  CALL(MPI_Send, &x, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
  EVENTS("startRecv", 1);
  EVENTS("endRecv", 0);
  EVENTS("requestFree", 1);
  EVENTS("gap", 1);
}

/* The capture's window ends between MPI_Cancel and MPI_Wait: there are more calls than it may record. */
static void across(int rank) {
  int x = 0, flag = 0;
  MPI_Status status;
  MPI_Request requests[2];
  if (rank == 1) {
    for (int i = 0; i < kRounds; ++i) CALL(MPI_Barrier, MPI_COMM_WORLD);
    return;
  }
  CALL(MPI_Irecv, &x, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Cancel, &requests[0]);
  CALL(MPI_Irecv, &x, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &requests[1]);
  CALL(MPI_Cancel, &requests[1]);
  CALL(MPI_Wait, &requests[1], &status); /* in time */
  for (int i = 0; i < kRounds; ++i) CALL(MPI_Barrier, MPI_COMM_WORLD);
  CALL(MPI_Wait, &requests[0], &status);
  CALL(MPI_Test_cancelled, &status, &flag);
  REQUIRE(flag);
}

int main(int argc, char** argv) {
  int rank;
  CALL(MPI_Init, &argc, &argv);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  if (argc > 1 && strcmp(argv[1], "incomplete") == 0) {
    incomplete(rank);
    CALL(MPI_Barrier, MPI_COMM_WORLD);
    lbf_print_expectations(rank);
    MPI_Finalize();
    return 0;
  }
  if (argc > 1 && strcmp(argv[1], "across") == 0) {
    across(rank);
    MPI_Finalize();
    return 0;
  }
  for (int i = 0; i < kRounds; ++i) {
    cancelled(rank);
    complete(rank);
    persistent(rank);
  }
  EVENTS("coll", 2 * kRounds);
  EVENTS("requestFree", 0);
  EVENTS("gap", 0);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
