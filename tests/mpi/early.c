/* MPI_THREAD_MULTIPLE: main() calls MPI before MPI_Init, which another thread calls for it. After that main() alone talks, and
 * sleeps in between. */
#include <pthread.h>
#include <time.h>

#include "counted.h"

enum { kNaps = 4 };

static pthread_barrier_t ready, over;
static int provided;

static void* communicate(void* argument) {
  MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
  pthread_barrier_wait(&ready);
  pthread_barrier_wait(&over);
  MPI_Finalize();
  return argument;
}

int main(void) {
  int rank, flag = 1;
  pthread_t thread;
  const struct timespec nap = {0, 100000000};
  MPI_Initialized(&flag);
  REQUIRE(flag == 0);
  pthread_barrier_init(&ready, NULL, 2);
  pthread_barrier_init(&over, NULL, 2);
  REQUIRE(pthread_create(&thread, NULL, communicate, NULL) == 0);
  pthread_barrier_wait(&ready);
  if (provided != MPI_THREAD_MULTIPLE) return 77;
  for (int i = 0; i < kNaps; ++i) {
    nanosleep(&nap, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  EVENTS("coll", kNaps);
  EVENTS("exit", 1);
  lbf_print_expectations(rank);
  pthread_barrier_wait(&over);
  pthread_join(thread, NULL);
  return 0;
}
