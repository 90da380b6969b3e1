/* A datatype is freed, then a thread begins that calls MPI, without any datatype: only MPI_COMM_WORLD's error handler,
 * which ends the program, would say that one was asked for. */
#include <pthread.h>

#include "counted.h"

static void* work(void* argument) {
  for (int i = 0; i < 10; ++i) *(double*)argument = MPI_Wtime();
  CALL(MPI_Barrier, MPI_COMM_SELF);
  return NULL;
}

int main(int argc, char** argv) {
  int rank, provided, x[4] = {0};
  double time = 0;
  MPI_Datatype type;
  CALL(MPI_Init_thread, &argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  CALL(MPI_Type_contiguous, 4, MPI_INT, &type);
  CALL(MPI_Type_commit, &type);
  CALL(MPI_Bcast, x, 1, type, 0, MPI_COMM_WORLD);
  CALL(MPI_Type_free, &type);
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, work, &time) == 0);
  pthread_join(thread, NULL);
  REQUIRE(time != 0);
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  lbf_add(0, "MPI_Wtime", 10);
  EVENTS("coll", 3);
  EVENTS("exit", 1);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
