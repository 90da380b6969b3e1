/* A pool of threads that calls neither MPI nor OpenMP: the rank waits for it between two MPI calls (regions.py). */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static void* spin(void* result) {
  struct timespec now;
  long turns = 0;
  do {
    ++turns;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while (now.tv_nsec < 20000000 && now.tv_sec == 0);
  *(long*)result = turns > 0;
  return NULL;
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0; round < 5; ++round) {
    pthread_t threads[2];
    long done[2] = {0, 0};
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, spin, &done[i]);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    MPI_Pcontrol(1);
    printf("result %d %d %ld\n", rank, round, done[0] + done[1]);
  }
  MPI_Finalize();
  return 0;
}
