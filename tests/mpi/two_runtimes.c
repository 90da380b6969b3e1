// A program with two OpenMP runtimes (stand-ins of ours; the same file with RUNTIME or PLUGIN defined makes them and
// what is opened). Each thread of a region asks for its number, which only the runtime that made the region knows.
// usage: two_runtimes PLUGIN RUNTIME before|after: when RUNTIME is opened for everybody
#if defined(RUNTIME)
static int number;
int omp_get_thread_num(void) {
  return number;
}
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags) {
  (void)threads;
  (void)flags;
  for (number = 0; number < 2; ++number) body(data);
  number = 0;
}
#elif defined(PLUGIN)
int omp_get_thread_num(void);
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
static void add_number(void* sum) {
  *(int*)sum += omp_get_thread_num();
}
int sum_of_numbers(void) {
  int sum = 0;
  GOMP_parallel(add_number, &sum, 2, 0);
  return sum;
}
#else
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
  const int before = strcmp(argv[3], "before") == 0;
  if (before && dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  int (*sum)(void) = plugin != NULL ? (int (*)(void))dlsym(plugin, "sum_of_numbers") : NULL;
  if (sum == NULL) MPI_Abort(MPI_COMM_WORLD, 4);
  printf("result 0 %d\n", sum());
  if (!before && dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) == NULL) MPI_Abort(MPI_COMM_WORLD, 5);
  printf("result 0 %d\n", sum());
  MPI_Finalize();
  return 0;
}
#endif
