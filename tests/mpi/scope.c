/* MPI_Pcontrol ends the scope of what is recorded and begins it anew. What is used inside is made outside; messages and
 * requests begin on one side and end on the other. scope [SECONDS]: so long a sleep outside. What is to be recorded is
 * counted and printed. */
#include <unistd.h>

#include "counted.h"

enum { kRounds = 5, kInto = 7, kOutOf = 8, kRing = 9 };

static int right, left;

static void exchange(MPI_Comm comm) {
  int out = right, in = -1;
  CALL(MPI_Sendrecv, &out, 1, MPI_INT, right, kRing, &in, 1, MPI_INT, left, kRing, comm, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, out[3] = {1, 2, 3}, in[3], other[3];
  double value = 1, sum = 0;
  MPI_Comm made;
  MPI_Datatype triple;
  MPI_Request early, sent, late;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  right = (rank + 1) % size;
  left = (rank + size - 1) % size;
  CALL(MPI_Barrier, MPI_COMM_WORLD);

  CALL(MPI_Pcontrol, 0);
  CALL(MPI_Comm_dup, MPI_COMM_WORLD, &made);
  MPI_Type_contiguous(3, MPI_INT, &triple);
  MPI_Type_commit(&triple);
  CALL(MPI_Irecv, in, 1, triple, left, kInto, made, &early);
  for (int i = 0; i < 2 * kRounds; ++i) exchange(MPI_COMM_WORLD);
  if (argc > 1) usleep((useconds_t)(atof(argv[1]) * 1e6));
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  CALL(MPI_Pcontrol, 1);

  CALL(MPI_Isend, out, 1, triple, right, kInto, made, &sent);
  CALL(MPI_Wait, &early, MPI_STATUS_IGNORE);
  CALL(MPI_Wait, &sent, MPI_STATUS_IGNORE);
  CALL(MPI_Isend, out, 1, triple, right, kOutOf, MPI_COMM_WORLD, &late);
  CALL(MPI_Pcontrol, 0);
  CALL(MPI_Recv, other, 1, triple, left, kOutOf, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CALL(MPI_Wait, &late, MPI_STATUS_IGNORE);
  CALL(MPI_Barrier, MPI_COMM_WORLD);

  CALL(MPI_Pcontrol, 1);
  CALL(MPI_Pcontrol, 1);
  for (int i = 0; i < kRounds; ++i) {
    exchange(made);
    CALL(MPI_Allreduce, &value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  CALL(MPI_Pcontrol, 2);
  CALL(MPI_Pcontrol, 0);
  CALL(MPI_Pcontrol, 0);
  exchange(MPI_COMM_WORLD);
  REQUIRE(in[2] == 3 && other[2] == 3 && sum == size);

  EVENTS("phase", 7);
  EVENTS("windowClose", 3);
  EVENTS("windowOpen", 3);
  EVENTS("isend", 2);
  EVENTS("wait", 1);
  EVENTS("send", kRounds);
  EVENTS("startRecv", kRounds);
  EVENTS("endRecv", kRounds);
  EVENTS("coll", 1 + kRounds);
  EVENTS("gap", 0);
  EVENTS("exit", 1);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
