/* The same as sequential_plugin.c with a real MPI library: a sum over its ranks. */
#include <mpi.h>

int start(void) {
  int before = -1;
  MPI_Initialized(&before);
  return before == 0 ? MPI_Init(0, 0) : -1;
}
int work(void) {
  int three = 3, sum = -1;
  return MPI_Allreduce(&three, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS ? sum : -100;
}
int start_by_jump(void) {
  return MPI_Init(0, 0);
}
int end(void) {
  return MPI_Finalize();
}
