/* spawn: each of 2 ranks starts 2 more processes of itself together with the other, talks to them and lets them end.
 * The children, and what is said to them, are out of the picture: unmodelled on the parents, nothing of the
 * children. */
#include "counted.h"

int main(int argc, char** argv) {
  int rank, children, codes[2], word = 0;
  MPI_Comm parent, both;
  CALL(MPI_Init, &argc, &argv);
  MPI_Comm_get_parent(&parent);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  if (parent != MPI_COMM_NULL) {
    MPI_Bcast(&word, 1, MPI_INT, 0, parent);
    REQUIRE(word == 42);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
  }
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  EVENTS("coll", 1);
  CALL(MPI_Comm_spawn, argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &both, codes);
  CALL(MPI_Comm_remote_size, both, &children);
  REQUIRE(children == 2);
  word = 42;
  CALL(MPI_Bcast, &word, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, both);
  CALL(MPI_Comm_disconnect, &both);
  EVENTS("unmodelled", 3);
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  EVENTS("coll", 1);
  EVENTS("exit", 1);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
