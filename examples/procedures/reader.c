// Client and server, the other way round: a server sends raw blocks to three clients, which decode them and work on
// them; the last client's blocks are the larger ones. The modification: the server decodes before it sends
// (`decode` moved to the senders of the messages).
#include <stddef.h>

#include "program.h"

enum { kRounds = 24, kBlock = 1 };
enum { kRead = 2, kDecode = 5, kDecodeLast = 10, kUse = 4 };  // units
static const char* const kModifications[] = {"decode", NULL};

PROCEDURE static uint64_t decode(uint64_t block, int units) {
  PROCEDURE_ENTER();
  block = work(block, units);
  PROCEDURE_LEAVE();
  return block;
}
static int decode_units(const struct program* run, int client) {
  return client == run->ranks - 1 ? kDecodeLast : kDecode;
}

int main(int argc, char** argv) {
  const struct program run = program_begin(&argc, &argv, 2, kModifications);
  uint64_t sum = 0;
  uint64_t expected = 0;
  if (run.rank == 0) {
    for (int round = 0; round < kRounds; ++round) {
      for (int client = 1; client < run.ranks; ++client) {
        uint64_t block = work((uint64_t)(round * run.ranks + client), kRead);
        if (run.moved != 0) block = decode(block, decode_units(&run, client));
        MPI_Send(&block, 1, MPI_UINT64_T, client, kBlock, MPI_COMM_WORLD);
      }
    }
    return program_end(&run, 0, 0);
  }
  const int units = decode_units(&run, run.rank);
  for (int round = 0; round < kRounds; ++round) {
    uint64_t block;
    MPI_Recv(&block, 1, MPI_UINT64_T, 0, kBlock, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (run.moved == 0) block = decode(block, units);
    sum ^= work(block, kUse);
    expected ^= stepped((uint64_t)(round * run.ranks + run.rank), kRead + units + kUse);
  }
  return program_end(&run, sum, expected);
}
