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

static void report(void) {
  double mine = PMPI_Wtime() - start_s, longest = mine;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("\njob_s=%.6f\n", longest);
    fflush(stdout);
  }
}

int MPI_Finalize(void) {
  report();
  return PMPI_Finalize();
}

// Open MPI's functions for Fortran call PMPI_: those of C see nothing of them. Weak: a program in C has none.
extern void pmpi_init_(int* error) __attribute__((weak));
extern void pmpi_init_thread_(int* required, int* provided, int* error) __attribute__((weak));
extern void pmpi_finalize_(int* error) __attribute__((weak));

void mpi_init_(int* error) {
  pmpi_init_(error);
  start_s = PMPI_Wtime();
}

void mpi_init_thread_(int* required, int* provided, int* error) {
  pmpi_init_thread_(required, provided, error);
  start_s = PMPI_Wtime();
}

void mpi_finalize_(int* error) {
  report();
  pmpi_finalize_(error);
}
