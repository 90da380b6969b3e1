/* unusual WAY...: an MPI program whose ways hide it from who looks from outside. Two messages around a ring of all
 * ranks.
 *
 *   environ   writes over its environment in the stack behind MPI_Init, as setproctitle() does
 *   handle    looks MPI up in a handle of the library, past LD_PRELOAD
 *   wait      waits two seconds before its end
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

static void overwrite_environment(void) {
  char** copy = calloc(1024, sizeof(char*));
  size_t count = 0;
  for (; environ[count] != NULL && count < 1023; ++count) copy[count] = strdup(environ[count]);
  for (size_t i = 0; i < count; ++i) memset(environ[i], 'x', strlen(environ[i]));
  environ = copy;
}

static void* in_library(const char* name) {
  void* library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_NOLOAD);
  return library != NULL ? dlsym(library, name) : NULL;
}

static int has(int argc, char** argv, const char* way) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], way) == 0) return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  int (*init)(int*, char***) = MPI_Init;
  int (*finalize)(void) = MPI_Finalize;
  int (*sendrecv)(const void*, int, MPI_Datatype, int, int, void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*) =
      MPI_Sendrecv;
  int (*comm_rank)(MPI_Comm, int*) = MPI_Comm_rank;
  int (*comm_size)(MPI_Comm, int*) = MPI_Comm_size;
  if (has(argc, argv, "handle")) {
    *(void**)&init = in_library("MPI_Init");
    *(void**)&finalize = in_library("MPI_Finalize");
    *(void**)&sendrecv = in_library("MPI_Sendrecv");
    *(void**)&comm_rank = in_library("MPI_Comm_rank");
    *(void**)&comm_size = in_library("MPI_Comm_size");
    if (init == NULL || finalize == NULL || sendrecv == NULL || comm_rank == NULL || comm_size == NULL) return 77;
  }
  init(&argc, &argv);
  if (has(argc, argv, "environ")) overwrite_environment();
  int rank = 0, size = 1;
  comm_rank(MPI_COMM_WORLD, &rank);
  comm_size(MPI_COMM_WORLD, &size);
  int out = rank, in = -1;
  for (int round = 0; round < 2; ++round)
    sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 0, &in, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  printf("rank %d has %d\n", rank, in);
  fflush(stdout);
  if (has(argc, argv, "wait")) sleep(2);
  finalize();
  return 0;
}
