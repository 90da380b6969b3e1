/* A program of a real MPI library, in C, and of a solver that was linked to a sequential stand-in: the stand-in's
 * Fortran functions, which nobody else has, are no calls of the real one. */
#include <mpi.h>
#include <stdio.h>

int work_fortran(void);

int main(int argc, char** argv) {
  int three = 3, sum = 0;
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 4; ++i) {
    if (work_fortran() != 3) return 1;
    MPI_Allreduce(&three, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  printf("result %d\n", sum);
  MPI_Finalize();
  return 0;
}
