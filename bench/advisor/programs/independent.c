// Embarrassingly parallel: every rank does the same work by itself; one sum at the end.
//
// Check: the sum of what each chain of steps ends with, found by another formula.
//
// usage: independent S|W|A
#include "accuracy.h"

int main(int argc, char** argv) {
  const struct accuracy_run run = accuracy_begin(&argc, &argv, "independent", "");
  const uint64_t steps = (uint64_t)accuracy_by_size(&run, 6e8, 3e9, 8e9) / (uint64_t)run.ranks;
  uint64_t state = (uint64_t)run.rank, sum = 0, expected = 0;
  for (uint64_t i = 0; i < steps; ++i) state = lcg_step(state);
  MPI_Allreduce(&state, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  for (int rank = 0; rank < run.ranks; ++rank) expected += lcg_jump((uint64_t)rank, steps);
  return accuracy_end(&run, sum == expected, "%016llx", (unsigned long long)sum);
}
