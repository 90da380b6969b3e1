/* A PMPI tool that does something after MPI_Init. */
#include <mpi.h>
#include <unistd.h>

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int rc = PMPI_Init_thread(argc, argv, required, provided);
  usleep(300000);
  return rc;
}
