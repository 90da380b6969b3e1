/* Threads that call no MPI run a procedure that is measured, about a microsecond at a time; then the ranks meet. Each
 * prints beside RANK CALLS */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { kThreads = 2, kCalls = 100000 };

__attribute__((noinline, noclone)) static uint64_t beside(uint64_t state) {
  for (int i = 0; i < 700; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    __asm__ volatile("" : "+r"(state));
  }
  return state;
}

static void* work(void* argument) {
  uint64_t* const state = argument;
  for (int i = 0; i < kCalls; ++i) *state = beside(*state);
  return NULL;
}

int main(int argc, char** argv) {
  int rank = 0;
  pthread_t threads[kThreads];
  uint64_t states[kThreads] = {1, 2};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, work, &states[i]) != 0) return 1;
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  printf("beside %d %ld\n", rank, (long)kThreads * kCalls);
  fflush(stdout);
  MPI_Finalize();
  return states[0] == states[1]; /* they are used */
}
