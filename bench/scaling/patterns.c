/* Message patterns on process grids: patterns NAME [ROUNDS]. Grids are MPI_Dims_create's, of 96 points in each
   dimension, and each message has the bytes of a face of the local block. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS 96
#define LARGEST (POINTS * POINTS)

static int rank, size, rounds = 20;
static double room[12][LARGEST];

static void ring(void) {
  int round;
  for (round = 0; round < rounds; ++round) {
    MPI_Sendrecv(room[0], 1000, MPI_DOUBLE, (rank + 1) % size, 3, room[1], 1000, MPI_DOUBLE, (rank + size - 1) % size,
                 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) MPI_Send(room[0], 10, MPI_DOUBLE, size - 1, 9, MPI_COMM_WORLD);
    if (rank == size - 1) MPI_Recv(room[0], 10, MPI_DOUBLE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void stencil(int dimensions, int around) {
  int dims[3] = {0, 0, 0}, periods[3] = {around, around, around}, round, d, other, direction;
  double sum = 1, all;
  MPI_Comm grid;
  MPI_Dims_create(size, dimensions, dims);
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, 0, &grid);
  for (round = 0; round < rounds; ++round) {
    MPI_Request request[12];
    int requests = 0;
    for (d = 0; d < dimensions; ++d) {
      int peer[2], face = 1;
      for (other = 0; other < dimensions; ++other) face *= other == d ? 1 : POINTS / dims[other];
      MPI_Cart_shift(grid, d, 1, &peer[0], &peer[1]);
      for (direction = 0; direction < 2; ++direction, ++requests)
        MPI_Irecv(room[requests], face, MPI_DOUBLE, peer[direction], 0, grid, &request[requests]);
      for (direction = 0; direction < 2; ++direction, ++requests)
        MPI_Isend(room[requests], face, MPI_DOUBLE, peer[direction], 0, grid, &request[requests]);
    }
    MPI_Waitall(requests, request, MPI_STATUSES_IGNORE);
    if (round % 5 == 4) MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Comm_free(&grid);
}

/* Sums along the rows of a grid of powers of two, then a transposition. */
static void butterfly(void) {
  int rows = 1, columns, row, column, half, transposed, round, distance;
  while (rows * rows * 4 <= size) rows *= 2;
  columns = size / rows;
  row = rank / columns;
  column = rank % columns;
  half = rank / 2;
  transposed = rows == columns ? rank % rows * rows + rank / rows : 2 * (half % rows * rows + half / rows) + rank % 2;
  for (round = 0; round < rounds; ++round) {
    MPI_Request request;
    for (distance = columns / 2; distance > 0; distance /= 2) {
      const int peer = row * columns + (column ^ distance);
      MPI_Irecv(room[0], LARGEST / columns, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &request);
      MPI_Send(room[1], LARGEST / columns, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Irecv(room[0], LARGEST / columns, MPI_DOUBLE, transposed, 1, MPI_COMM_WORLD, &request);
    MPI_Send(room[1], LARGEST / columns, MPI_DOUBLE, transposed, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

/* Planes go through a grid from one corner to the other, and back. */
static void wavefront(void) {
  int dims[2] = {0, 0}, periods[2] = {0, 0}, peer[2][2], round, plane, way, d;
  MPI_Comm grid;
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
  for (d = 0; d < 2; ++d) MPI_Cart_shift(grid, d, 1, &peer[d][0], &peer[d][1]);
  for (round = 0; round < rounds; ++round) {
    for (way = 0; way < 2; ++way) {
      for (plane = 0; plane < 16; ++plane) {
        for (d = 0; d < 2; ++d)
          MPI_Recv(room[d], POINTS / dims[1 - d], MPI_DOUBLE, peer[d][way], way, grid, MPI_STATUS_IGNORE);
        for (d = 0; d < 2; ++d) MPI_Send(room[d], POINTS / dims[1 - d], MPI_DOUBLE, peer[d][1 - way], way, grid);
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Comm_free(&grid);
}

/* All-to-all on the rows, then on the columns of a grid. */
static void columns(void) {
  int dims[2] = {0, 0}, round, all[2];
  MPI_Comm comm[2];
  MPI_Dims_create(size, 2, dims);
  MPI_Comm_split(MPI_COMM_WORLD, rank / dims[1], rank, &comm[0]);
  MPI_Comm_split(MPI_COMM_WORLD, rank % dims[1], rank, &comm[1]);
  for (round = 0; round < rounds; ++round) {
    for (all[0] = 0; all[0] < 2; ++all[0]) {
      all[1] = all[0] == 0 ? dims[1] : dims[0];
      MPI_Alltoall(room[0], LARGEST * 2 / size / all[1], MPI_DOUBLE, room[6], LARGEST * 2 / size / all[1], MPI_DOUBLE,
                   comm[all[0]]);
    }
  }
}

static void master(void) {
  int round, worker;
  for (round = 0; round < rounds; ++round) {
    if (rank != 0) {
      MPI_Recv(room[0], 8, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(room[0], 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
      continue;
    }
    for (worker = 1; worker < size; ++worker) MPI_Send(room[0], 8, MPI_DOUBLE, worker, 1, MPI_COMM_WORLD);
    for (worker = 1; worker < size; ++worker)
      MPI_Recv(room[0], 1, MPI_DOUBLE, worker, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "";
  if (argc > 2) rounds = atoi(argv[2]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(name, "ring") == 0)
    ring();
  else if (strcmp(name, "plane") == 0)
    stencil(2, 0);
  else if (strcmp(name, "plane-around") == 0)
    stencil(2, 1);
  else if (strcmp(name, "space") == 0)
    stencil(3, 0);
  else if (strcmp(name, "space-around") == 0)
    stencil(3, 1);
  else if (strcmp(name, "butterfly") == 0)
    butterfly();
  else if (strcmp(name, "wavefront") == 0)
    wavefront();
  else if (strcmp(name, "columns") == 0)
    columns();
  else if (strcmp(name, "master") == 0)
    master();
  else if (rank == 0)
    fprintf(stderr, "patterns: '%s' is no pattern\n", name);
  MPI_Finalize();
  return 0;
}
