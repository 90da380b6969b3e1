/* What was linked to sequential_mpi.c: a plugin for plugins.c, or a library that a program of a real MPI uses as well.
 */
int MPI_Initialized(int* flag);
int MPI_Init(int* argc, char*** argv);
int MPI_Finalize(void);
int MPI_Comm_size(int comm, int* size);
int MPI_Allreduce(const void*, void*, int, int, int, int);
void mpi_allreduce_(const void*, void*, const int*, const int*, const int*, const int*, int*);

/* 0 where the library is a new one. */
int start(void) {
  int before = -1, size = -1;
  MPI_Initialized(&before);
  const int result = MPI_Init(0, 0);
  MPI_Comm_size(91, &size);
  return size == 1 && before == result ? result : -1;
}
int work(void) {
  int three = 3, sum = -1;
  return MPI_Allreduce(&three, &sum, 1, 13, 7, 91) == 0 ? sum : -100;
}
int work_fortran(void) {
  int three = 3, sum = -1, one = 1, type = 13, op = 7, comm = 91, error = -1;
  mpi_allreduce_(&three, &sum, &one, &type, &op, &comm, &error);
  return error == 0 ? sum : -100;
}
/* Functions that end with a jump into the library: the return address is that of their caller. */
int start_by_jump(void) {
  return MPI_Init(0, 0);
}
int end(void) {
  return MPI_Finalize();
}
/* By addresses that the loader stores in data; one is the plugin's own by the time of its call. */
static int own_initialized(int* flag) {
  return *flag = 5, 0;
}
static int (*const volatile reduce)(const void*, void*, int, int, int, int) = MPI_Allreduce;
static int (*volatile initialized)(int*) = MPI_Initialized;
static int three = 3, sum = -1;
int work_by_address(void) {
  return reduce(&three, &sum, 1, 13, 7, 91);
}
int change_address(void) {
  initialized = own_initialized;
  return 0;
}
int work_by_changed_address(void) {
  int flag = -1;
  initialized(&flag);
  return flag;
}
