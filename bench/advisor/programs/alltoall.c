// Everybody exchanges large pieces with everybody and computes little, as a transposition does: bound by the
// bandwidth between the nodes.
//
// Check: the piece from each rank carries its number and the round's.
//
// usage: alltoall S|W|A
#include "accuracy.h"

int main(int argc, char** argv) {
  const struct accuracy_run run = accuracy_begin(&argc, &argv, "alltoall", "");
  const int rounds = (int)accuracy_by_size(&run, 4, 10, 20);
  // 2 MiB from one node to the other in each round of 8 ranks on two nodes.
  enum { kPieceWords = 16384 };
  const uint64_t work = (uint64_t)accuracy_by_size(&run, 1e6, 1e6, 1e6);
  uint64_t* out = accuracy_alloc(&run, (size_t)run.ranks * kPieceWords, sizeof *out);
  uint64_t* in = accuracy_alloc(&run, (size_t)run.ranks * kPieceWords, sizeof *in);
  uint64_t state = (uint64_t)run.rank;
  int right = 1;
  for (int round = 0; round < rounds; ++round) {
    for (int to = 0; to < run.ranks; ++to)
      out[(size_t)to * kPieceWords] = (uint64_t)(round * run.ranks * run.ranks + run.rank * run.ranks + to);
    MPI_Alltoall(out, kPieceWords, MPI_UINT64_T, in, kPieceWords, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int from = 0; from < run.ranks; ++from)
      right = right &&
              in[(size_t)from * kPieceWords] == (uint64_t)(round * run.ranks * run.ranks + from * run.ranks + run.rank);
    for (uint64_t i = 0; i < work; ++i) state = lcg_step(state);
  }
  right = right && state == lcg_jump((uint64_t)run.rank, work * (uint64_t)rounds);
  return accuracy_end(&run, right, "%d_rounds", rounds);
}
