/* Messages that are counted by hand in test_eztrace.py: what every tool that looks at this program must see. 4 ranks.
 */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 5

static void work(long milliseconds) {
  struct timespec now, end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += milliseconds * 1000000;
  end.tv_sec += end.tv_nsec / 1000000000;
  end.tv_nsec %= 1000000000;
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

int main(int argc, char** argv) {
  static char out[4096], in[4096];
  int rank, size, before, after, round, half_rank;
  MPI_Comm half;
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 4) MPI_Abort(MPI_COMM_WORLD, 2);
  after = (rank + 1) % size;
  before = (rank + size - 1) % size;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank % 2 == 0) MPI_Send(out, 100, MPI_BYTE, after, 5, MPI_COMM_WORLD);
  MPI_Recv(in, 4096, MPI_BYTE, rank == 1 ? MPI_ANY_SOURCE : before, rank == 1 ? MPI_ANY_TAG : 5, MPI_COMM_WORLD,
           &status);
  if (rank % 2 == 1) MPI_Send(out, 100, MPI_BYTE, after, 5, MPI_COMM_WORLD);
  for (round = 0; round < ROUNDS; ++round) {
    work(3);
    MPI_Irecv(in, 4096, MPI_BYTE, before, 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 1000 + round, MPI_BYTE, after, 6, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    work(3);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Comm_rank(half, &half_rank);
  MPI_Bcast(out, 64, MPI_BYTE, 1, half);
  MPI_Allreduce(out, in, 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce(out, in, 4, MPI_DOUBLE, MPI_SUM, 0, half);
  MPI_Gather(out, 16, MPI_BYTE, in, 16, MPI_BYTE, 2, MPI_COMM_WORLD);
  MPI_Alltoall(out, 24, MPI_BYTE, in, 24, MPI_BYTE, MPI_COMM_WORLD);
  if (argc > 1) MPI_Sendrecv(out, 8, MPI_BYTE, after, 7, in, 8, MPI_BYTE, before, 7, MPI_COMM_WORLD, &status);
  MPI_Finalize();
  return 0;
}
