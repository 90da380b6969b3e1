/* Another PMPI tool: counts sends and says so at the end. */
#include <mpi.h>
#include <stdio.h>

static int sends;

int MPI_Send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  int size;
  ++sends;
  MPI_Comm_size(comm, &size); /* a tool may use MPI itself: that is not a call of the program */
  return PMPI_Send(buf, count, type, dest, tag, comm);
}

int MPI_Finalize(void) {
  fprintf(stderr, "other tool: %d sends\n", sends);
  return PMPI_Finalize();
}
