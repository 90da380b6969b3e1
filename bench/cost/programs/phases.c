/* A program whose pace varies, for the coverage of intervals: bench/cost/run.

   usage: phases SEED SECONDS CALLS_PER_SECOND
   Ranks in a ring compute and exchange with both neighbours, again and again. How long they compute, how large the
   messages are and how uneven the ranks are changes at random from stretch to stretch (SEED), around a mean. The amount
   of work is fixed: somewhat more than SECONDS on a processor of its own of 3 GHz. Every 16th round they agree on a
   number. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long long state;
static double uniform(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) * 0x1p-53;
}

/* Read, so that the compiler cannot know what comes out: from a constant it does, and leaves the work away. */
static volatile double sink = 0.5;
static void work(long units) {
  double x = sink;
  for (long i = 0; i < units; ++i) x = x * 0.999999 + 1e-6;
  sink = x;
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: phases SEED SECONDS CALLS_PER_SECOND\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  state = strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ULL + 88172645463325252ULL; /* alike on all ranks */
  const double seconds = atof(argv[2]), calls_per_s = atof(argv[3]);
  const double unit_s = 2e-9;             /* about; the same on each run, so that the work is */
  const double round_s = 4 / calls_per_s; /* 2 Isends and Irecvs count as one, Waitall ... about 4 recorded calls */
  static char out[2][65536], in[2][65536];
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  double done_s = 0;
  for (long round = 0; done_s < seconds;) {
    const long rounds = (long)((0.02 + 0.1 * uniform()) / round_s) + 1; /* a stretch of 0.02 to 0.12 s */
    const double pace = 0.6 + 0.8 * uniform();
    const double uneven = 0.4 * uniform();
    const int bytes = 8 << (int)(10 * uniform());
    for (long i = 0; i < rounds; ++i, ++round) {
      const double mine = pace * (1 + (round % size == rank ? uneven : 0));
      work((long)(mine * round_s / unit_s));
      MPI_Request requests[4];
      MPI_Irecv(in[0], bytes, MPI_BYTE, left, 0, MPI_COMM_WORLD, &requests[0]);
      MPI_Irecv(in[1], bytes, MPI_BYTE, right, 1, MPI_COMM_WORLD, &requests[1]);
      MPI_Isend(out[0], bytes, MPI_BYTE, right, 0, MPI_COMM_WORLD, &requests[2]);
      MPI_Isend(out[1], bytes, MPI_BYTE, left, 1, MPI_COMM_WORLD, &requests[3]);
      MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
      if (round % 16 == 0) {
        double all = mine, sum;
        MPI_Allreduce(&all, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      }
      done_s += pace * round_s;
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
