// Peers: a chain of ranks, each takes an item from the one before, filters it, transforms it and passes it on. The
// second rank filters longest. The modification: an item is transformed by the rank that gets it, before it takes it
// over (`transform` moved to the receivers); the last rank, which sends nothing, keeps its own.
#include <stddef.h>

#include "program.h"

enum { kItems = 30, kItem = 1 };
enum { kFilter = 4, kFilterSecond = 9, kTransform = 5 };  // units
static const char* const kModifications[] = {"transform", NULL};

PROCEDURE static uint64_t transform(uint64_t item) {
  PROCEDURE_ENTER();
  item = work(item, kTransform);
  PROCEDURE_LEAVE();
  return item;
}

int main(int argc, char** argv) {
  const struct program run = program_begin(&argc, &argv, 2, kModifications);
  const int last = run.ranks - 1;
  const int filter = run.rank == 1 ? kFilterSecond : kFilter;
  uint64_t sum = 0;
  uint64_t expected = 0;
  for (int number = 0; number < kItems; ++number) {
    uint64_t item = (uint64_t)number;
    if (run.rank > 0) {
      // The transformation of the item before this rank's own filter: work first, then the message it belongs to.
      uint64_t spent = 0;
      if (run.moved != 0) spent = transform(spent);
      (void)spent;
      MPI_Recv(&item, 1, MPI_UINT64_T, run.rank - 1, kItem, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (run.moved != 0) item = stepped(item, kTransform);
    }
    item = work(item, filter);
    if (run.rank == last || run.moved == 0) item = transform(item);
    if (run.rank < last) {
      MPI_Send(&item, 1, MPI_UINT64_T, run.rank + 1, kItem, MPI_COMM_WORLD);
      continue;
    }
    sum ^= item;
    const int filters = (run.ranks - 1) * kFilter + kFilterSecond;
    expected ^= stepped((uint64_t)number, filters + run.ranks * kTransform);
  }
  return program_end(&run, sum, expected);
}
