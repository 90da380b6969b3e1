// Peers in pairs: in each step the two ranks of a pair exchange borders, of which the even one's takes longer to pack.
// Even ranks send first, odd ones receive first. The modification: `pack` is done by who receives the border
// (moved to the receivers).
#include <stddef.h>

#include "program.h"

enum { kSteps = 24, kBorder = 1 };
enum { kCompute = 8, kComputeOdd = 3, kPack = 6 };  // units
static const char* const kModifications[] = {"pack", NULL};

PROCEDURE static uint64_t pack(uint64_t border) {
  PROCEDURE_ENTER();
  border = work(border, kPack);
  PROCEDURE_LEAVE();
  return border;
}

int main(int argc, char** argv) {
  const struct program run = program_begin(&argc, &argv, 2, kModifications);
  const int is_odd = run.rank % 2;
  const int partner = is_odd ? run.rank - 1 : run.rank + 1;
  if (partner >= run.ranks) return program_end(&run, 0, 0);
  uint64_t mine = (uint64_t)run.rank;
  uint64_t expected = 0;
  for (int step = 0; step < kSteps; ++step) {
    uint64_t theirs;
    if (!is_odd) {
      uint64_t border = work(mine, kCompute);
      if (run.moved == 0) border = pack(border);
      MPI_Send(&border, 1, MPI_UINT64_T, partner, kBorder, MPI_COMM_WORLD);
      MPI_Recv(&theirs, 1, MPI_UINT64_T, partner, kBorder, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      uint64_t border = work(mine, kComputeOdd);
      // The packing of what comes: work first, then the message it belongs to.
      if (run.moved != 0) pack(0);
      MPI_Recv(&theirs, 1, MPI_UINT64_T, partner, kBorder, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (run.moved != 0) theirs = stepped(theirs, kPack);
      MPI_Send(&border, 1, MPI_UINT64_T, partner, kBorder, MPI_COMM_WORLD);
    }
    mine = theirs;
  }
  // The two numbers change places in every step; the even rank's side adds its compute and the packing.
  uint64_t even = (uint64_t)(run.rank - is_odd);
  uint64_t odd = even + 1;
  for (int step = 0; step < kSteps; ++step) {
    const uint64_t to_odd = stepped(even, kCompute + kPack);
    even = stepped(odd, kComputeOdd);
    odd = to_odd;
  }
  expected = is_odd ? odd : even;
  return program_end(&run, mine, expected);
}
