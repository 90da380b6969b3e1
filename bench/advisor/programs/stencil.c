// A stencil on a torus of 4 x N/4 places whose ranks are numbered as a program that reorders its grid may
// number them: in each step every rank exchanges a border with its four neighbours and then computes. Blocks,
// cyclic and planes of two all cut most of the grid; halves of it, which no distribution of srun has, cut the
// least.
//
// Check: what travels is a counter that every hop increments; after S steps each border's number is known.
//
// usage: stencil S|W|A
#include "accuracy.h"

enum { kWidth = 4, kBorderBytes = 32768, kNeighbours = 4 };

// Of every eight ranks: with these numbers blocks of four, cyclic and planes of two on two nodes cut 24, 24
// and 32 of the 32 messages of a step, the two halves of the torus 8.
static const int kNumber[8] = {0, 3, 5, 6, 7, 4, 2, 1};

static int rank_at(int place) {
  return place / 8 * 8 + kNumber[place % 8];
}

int main(int argc, char** argv) {
  const struct accuracy_run run = accuracy_begin(&argc, &argv, "stencil", "");
  if (run.ranks % 8 != 0) accuracy_fail(&run, "the torus needs a multiple of 8 ranks");
  const int steps = (int)accuracy_by_size(&run, 20, 60, 200);
  const uint64_t work = (uint64_t)accuracy_by_size(&run, 4e6, 4e6, 4e6) * 8 / (uint64_t)run.ranks;
  int place = 0;
  while (rank_at(place) != run.rank) ++place;
  const int height = run.ranks / kWidth, x = place % kWidth, y = place / kWidth;
  // Left, right, up, down; what comes from one side was sent to the opposite one.
  const int peer[kNeighbours] = {
      rank_at(y * kWidth + (x + kWidth - 1) % kWidth), rank_at(y * kWidth + (x + 1) % kWidth),
      rank_at((y + height - 1) % height * kWidth + x), rank_at((y + 1) % height * kWidth + x)};
  uint64_t* out[kNeighbours];
  uint64_t* in[kNeighbours];
  for (int side = 0; side < kNeighbours; ++side) {
    out[side] = accuracy_alloc(&run, 1, kBorderBytes);
    in[side] = accuracy_alloc(&run, 1, kBorderBytes);
  }
  uint64_t state = (uint64_t)run.rank;
  int right = 1;
  for (int step = 0; step < steps; ++step) {
    MPI_Request requests[2 * kNeighbours];
    for (int side = 0; side < kNeighbours; ++side)
      MPI_Irecv(in[side], kBorderBytes, MPI_BYTE, peer[side], side ^ 1, MPI_COMM_WORLD, &requests[side]);
    for (int side = 0; side < kNeighbours; ++side)
      MPI_Isend(out[side], kBorderBytes, MPI_BYTE, peer[side], side, MPI_COMM_WORLD, &requests[kNeighbours + side]);
    MPI_Waitall(2 * kNeighbours, requests, MPI_STATUSES_IGNORE);
    for (int side = 0; side < kNeighbours; ++side) {
      right = right && in[side][0] == (uint64_t)step;
      out[side][0] = in[side][0] + 1;
    }
    for (uint64_t i = 0; i < work; ++i) state = lcg_step(state);
  }
  right = right && state == lcg_jump((uint64_t)run.rank, work * (uint64_t)steps);
  return accuracy_end(&run, right, "%d_steps", steps);
}
