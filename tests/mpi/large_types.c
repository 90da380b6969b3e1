/* Elements of 2 GiB and more, whose size no int holds; broadcasts to oneself, which move nothing. */
#include "counted.h"

int main(int argc, char** argv) {
  static double x;
  int rank;
  MPI_Datatype two_gib, one_tib;
  CALL(MPI_Init, &argc, &argv);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  CALL(MPI_Type_contiguous, 1 << 28, MPI_DOUBLE, &two_gib);
  CALL(MPI_Type_commit, &two_gib);
  CALL(MPI_Type_contiguous, 512, two_gib, &one_tib);
  CALL(MPI_Type_commit, &one_tib);
  CALL(MPI_Bcast, &x, 1, two_gib, 0, MPI_COMM_SELF);
  CALL(MPI_Bcast, &x, 3, two_gib, 0, MPI_COMM_SELF);
  CALL(MPI_Bcast, &x, 1, one_tib, 0, MPI_COMM_SELF);
  CALL(MPI_Bcast, &x, 0, one_tib, 0, MPI_COMM_SELF);
  CALL(MPI_Type_free, &two_gib);
  CALL(MPI_Type_free, &one_tib);
  EVENTS("coll", 4);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
