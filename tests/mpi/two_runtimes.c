// A program with two OpenMP runtimes (stand-ins of ours; the same file with RUNTIME or PLUGIN defined makes them and
// what is opened). Each thread of a region asks for its number, which only the runtime that made the region knows.
// Without IS_PLUGIN the plugin asks for nothing, and how many members there are tells which runtime it was.
// usage: two_runtimes PLUGIN RUNTIME before|after GONE NEWCOMER: when RUNTIME is opened for everybody; the plugin GONE
// is closed, and NEWCOMER called, before PLUGIN is called once more
#if defined(RUNTIME)
static int number;
int omp_get_thread_num(void) {
  return number;
}
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags) {
  (void)threads;
  (void)flags;
  for (number = 0; number < TEAM; ++number) body(data);
  number = 0;
}
#elif defined(PLUGIN)
int omp_get_thread_num(void);
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
static void add_number(void* sum) {
#ifndef IS_PLUGIN
  ++*(int*)sum;
#else
  *(int*)sum += omp_get_thread_num();
#endif
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

static void* open_plugin(const char* path, int (**sum)(void)) {
  void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  *sum = plugin != NULL ? (int (*)(void))dlsym(plugin, "sum_of_numbers") : NULL;
  if (*sum == NULL) MPI_Abort(MPI_COMM_WORLD, 4);
  return plugin;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 6) MPI_Abort(MPI_COMM_WORLD, 2);
  const int before = strcmp(argv[3], "before") == 0;
  if (before && dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  int (*sum)(void);
  open_plugin(argv[1], &sum);
  printf("result 0 %d\n", sum());
  if (!before && dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) == NULL) MPI_Abort(MPI_COMM_WORLD, 5);
  printf("result 0 %d\n", sum());
  int (*sum_of_gone)(void);
  int (*sum_of_newcomer)(void);
  void* gone = open_plugin(argv[4], &sum_of_gone);
  open_plugin(argv[5], &sum_of_newcomer);
  printf("result 0 %d of one that goes\n", sum_of_gone());
  if (dlclose(gone) != 0) MPI_Abort(MPI_COMM_WORLD, 6);
  printf("result 0 %d of one that came\n", sum_of_newcomer());
  printf("result 0 %d\n", sum());
  MPI_Finalize();
  return 0;
}
#endif
