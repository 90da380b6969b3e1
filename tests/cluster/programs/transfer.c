/* Two ranks send BYTES to and fro ROUNDS times and print half a round trip: "one_way_s SECONDS".
 * usage: transfer BYTES ROUNDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank, round, rounds, bytes;
  char* buffer;
  double begin_s;
  MPI_Init(&argc, &argv);
  if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
  bytes = atoi(argv[1]);
  rounds = atoi(argv[2]);
  buffer = calloc(1, (size_t)bytes + 1);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  begin_s = MPI_Wtime();
  for (round = 0; round < rounds; ++round) {
    if (rank == 0) {
      MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
  }
  if (rank == 0) printf("one_way_s %.9f\n", (MPI_Wtime() - begin_s) / rounds / 2);
  free(buffer);
  MPI_Finalize();
  return 0;
}
