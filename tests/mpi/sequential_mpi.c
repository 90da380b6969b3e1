/* A sequential stand-in for MPI, as solvers bring one (MUMPS's libseq, LAMMPS's STUBS, PETSc's mpiuni): handles and
 * constants of its own, one rank, no name of its version. In C, and for Fortran. */
#include <string.h>

static int initialised;

int MPI_Initialized(int* flag) {
  return *flag = initialised, 0;
}
int MPI_Init(int* argc, char*** argv) {
  return (void)argc, (void)argv, initialised++;
}
int MPI_Finalize(void) {
  return 0;
}
int MPI_Comm_size(int comm, int* size) {
  return *size = comm == 91 ? 1 : -1, 0;
}
/* Another library would take the handles for its own. */
static int reduce(const void* from, void* to, int count, int type, int op, int comm) {
  if (type != 13 || op != 7 || comm != 91) return 1;
  memcpy(to, from, (size_t)count * sizeof(int));
  return 0;
}
int MPI_Allreduce(const void* from, void* to, int count, int type, int op, int comm) {
  return reduce(from, to, count, type, op, comm);
}
void mpi_allreduce_(const void* from, void* to, const int* count, const int* type, const int* op, const int* comm,
                    int* error) {
  *error = reduce(from, to, *count, *type, *op, *comm);
}
