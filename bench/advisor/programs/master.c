// An unbalanced master and its workers: in each round the master sends every worker a number, the worker
// makes steps of a chain from it, as many as its rank says, and sends the end back. The shares are fixed (r
// of 1 + ... + (N-1)), so every placement does the same work; which processor does how much of it is the
// placement's.
//
// Check: the master finds the end of each chain by another formula (lcg_jump).
//
// usage: master S|W|A
#include "accuracy.h"

enum { kTask = 1, kResult = 2 };

static uint64_t chain(uint64_t state, uint64_t steps) {
  for (uint64_t i = 0; i < steps; ++i) state = lcg_step(state);
  return state;
}

int main(int argc, char** argv) {
  const struct accuracy_run run = accuracy_begin(&argc, &argv, "master", "");
  if (run.ranks < 2) accuracy_fail(&run, "a master and at least one worker: 2 ranks");
  const int rounds = (int)accuracy_by_size(&run, 10, 40, 80);
  const uint64_t all_steps = (uint64_t)accuracy_by_size(&run, 6e7, 7e7, 2e8);  // of one round
  const uint64_t shares = (uint64_t)run.ranks * (uint64_t)(run.ranks - 1) / 2;
  int right = 1;
  for (int round = 0; round < rounds; ++round) {
    if (run.rank > 0) {
      uint64_t state;
      MPI_Recv(&state, 1, MPI_UINT64_T, 0, kTask, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      state = chain(state, all_steps / shares * (uint64_t)run.rank);
      MPI_Send(&state, 1, MPI_UINT64_T, 0, kResult, MPI_COMM_WORLD);
      continue;
    }
    for (int worker = 1; worker < run.ranks; ++worker) {
      const uint64_t seed = (uint64_t)(round * run.ranks + worker);
      MPI_Send(&seed, 1, MPI_UINT64_T, worker, kTask, MPI_COMM_WORLD);
    }
    for (int worker = 1; worker < run.ranks; ++worker) {
      uint64_t state;
      MPI_Recv(&state, 1, MPI_UINT64_T, worker, kResult, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      const uint64_t seed = (uint64_t)(round * run.ranks + worker);
      right = right && state == lcg_jump(seed, all_steps / shares * (uint64_t)worker);
    }
  }
  return accuracy_end(&run, right, "%d_rounds", rounds);
}
