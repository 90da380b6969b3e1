/* A pool of threads that calls neither MPI nor OpenMP: the rank waits for it between two MPI calls (regions.py). Or, as
 * "pool helper", a thread that spins all the time, while two ranks work by turns. */
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

static double cpu_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int is_over;
static void* help(void* unused) {
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
  }
  return unused;
}

static void take_turns(int rank) {
  enum { kRounds = 24 };
  pthread_t helper;
  if (rank == 0) pthread_create(&helper, NULL, help, NULL);
  for (int turn = 0; turn < 2 * kRounds; ++turn) {
    if (turn % 2 != rank) {
      MPI_Recv(NULL, 0, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      continue;
    }
    const double end = cpu_ms() + 8;
    while (cpu_ms() < end) {
    }
    if (rank == 0) MPI_Pcontrol(1);
    MPI_Send(NULL, 0, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  if (rank == 0) pthread_join(helper, NULL);
  printf("result %d 0 0\n", rank);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1) {
    take_turns(rank);
    MPI_Finalize();
    return 0;
  }
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
