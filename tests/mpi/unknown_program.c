/* A program of unknown_mpi.c: its calls arrive with their arguments, and with what they return. */
#include <stdio.h>

int MPI_Init(int*, char***);
int MPI_Finalize(void);
int MPI_Send(const void*, int, long, int, int, long);

int main(int argc, char** argv) {
  const int result = MPI_Init(&argc, &argv);
  printf("%d %d %d\n", result, MPI_Send(argv, 1, 20, 300, 4000, 50000), MPI_Finalize());
  return 0;
}
