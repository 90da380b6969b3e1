// Exchanges of messages and nothing else, to see what of a program's error is its messages'. Every rank of the first
// half has a partner in the second half, on the other node where ranks are placed in blocks.
//   pairs     ping-pong with the partner, all pairs at the same time
//   both      the partners send to each other at once
//   alltoall  MPI_Alltoall of all ranks
// The data leave from one ring of 32 MB and arrive in another, each behind the last one, as in lbf-calibrate. Prints
// what the programs of bench/accuracy print; bench/accuracy/exchange makes a table of it.
//
// usage: exchange W pairs|both|alltoall BYTES COUNT
#include "accuracy.h"

enum { kRingBytes = 32 << 20, kLineBytes = 64 };

struct ring {
  char* memory;
  size_t next;
};

static char* take(struct ring* ring, size_t bytes) {
  if (ring->next + bytes > kRingBytes) ring->next = 0;
  char* piece = ring->memory + ring->next;
  ring->next += (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  return piece;
}

int main(int argc, char** argv) {
  struct accuracy_run run = accuracy_begin(&argc, &argv, "exchange", " pairs|both|alltoall BYTES COUNT");
  const char* mode = argc > 4 ? argv[2] : "";
  const int bytes = argc > 4 ? atoi(argv[3]) : 0, count = argc > 4 ? atoi(argv[4]) : 0;
  const size_t piece = (size_t)bytes * (strcmp(mode, "alltoall") == 0 ? (size_t)run.ranks : 1);
  if (run.ranks % 2 != 0 || bytes <= 0 || count <= 0 || piece > kRingBytes)
    accuracy_fail(&run, "needs a mode, BYTES, COUNT, and an even number of ranks");
  struct ring out = {accuracy_alloc(&run, kRingBytes, 1), 0}, in = {accuracy_alloc(&run, kRingBytes, 1), 0};
  memset(out.memory, 1, kRingBytes);
  memset(in.memory, 0, kRingBytes);
  const int partner = (run.rank + run.ranks / 2) % run.ranks, first = run.rank < run.ranks / 2;
  int right = 1;
  for (int i = 0; i < count; ++i) {
    char *from = take(&out, piece), *into = take(&in, piece);
    if (strcmp(mode, "alltoall") == 0) {
      MPI_Alltoall(from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, MPI_COMM_WORLD);
    } else if (strcmp(mode, "both") == 0) {
      MPI_Sendrecv(from, bytes, MPI_BYTE, partner, 0, into, bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    } else if (strcmp(mode, "pairs") == 0) {
      if (first) MPI_Send(from, bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD);
      MPI_Recv(into, bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (!first) MPI_Send(from, bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD);
    } else {
      accuracy_fail(&run, "knows pairs, both and alltoall");
    }
    right = right && into[0] == 1 && into[piece - 1] == 1;
  }
  free(in.memory);
  free(out.memory);
  return accuracy_end(&run, right, "%d", count);
}
