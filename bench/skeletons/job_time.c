// libjob_time.so, preloaded: how long a program runs from the return of MPI_Init to its MPI_Finalize, of the
// slowest rank, printed by rank 0 as "job_s=SECONDS". One clock for all programs of bench/skeletons, whatever
// they print themselves.
#include <mpi.h>
#include <stdio.h>

static double start_s;

int MPI_Init(int* argc, char*** argv) {
  const int status = PMPI_Init(argc, argv);
  start_s = PMPI_Wtime();
  return status;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int status = PMPI_Init_thread(argc, argv, required, provided);
  start_s = PMPI_Wtime();
  return status;
}

int MPI_Finalize(void) {
  double mine = PMPI_Wtime() - start_s, longest = mine;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("\njob_s=%.6f\n", longest);
    fflush(stdout);
  }
  return PMPI_Finalize();
}
