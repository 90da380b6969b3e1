/* Rank 0 works for half a second of processor time, the others wait for it in the way that is named: which part of
 * their processor rank 0 had, in percent, and how often a second each of the others looked. For bench/polling/run. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_s(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void work(double cpu_s) {
  const double end_s = now_s(CLOCK_THREAD_CPUTIME_ID) + cpu_s;
  volatile double x = 1;
  while (now_s(CLOCK_THREAD_CPUTIME_ID) < end_s) {
    for (int i = 0; i < 1000; ++i) x = x * 1.0000001;
  }
}

static double wait_for_it(const char* way) {
  int found = 0, byte = 0;
  double looks = 0;
  if (strcmp(way, "iprobe") == 0) {
    for (; !found; ++looks) MPI_Iprobe(0, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  }
  if (strcmp(way, "test") == 0 || strcmp(way, "status") == 0) {
    MPI_Request request;
    MPI_Irecv(&byte, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    for (; !found; ++looks) {
      if (strcmp(way, "test") == 0)
        MPI_Test(&request, &found, MPI_STATUS_IGNORE);
      else
        MPI_Request_get_status(request, &found, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(&byte, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return looks;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks, byte = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_s = now_s(CLOCK_MONOTONIC), begin_cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID);
  double looks = 0;
  if (rank == 0) {
    work(0.5);
    for (int to = 1; to < ranks; ++to) MPI_Send(&byte, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
  } else {
    looks = wait_for_it(argv[argc - 1]);
  }
  const double cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_s;
  double all_cpu_s = 0, all_looks = 0;
  MPI_Reduce(&cpu_s, &all_cpu_s, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&looks, &all_looks, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%.1f %.0f\n", 100 * cpu_s / all_cpu_s, all_looks / (ranks - 1) / (now_s(CLOCK_MONOTONIC) - begin_s));
  }
  MPI_Finalize();
  return 0;
}
