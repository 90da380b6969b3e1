/* What MPI calls cost, bare or captured: capture_bench [REPEATS]. Rank 0 prints "NAME NS_PER_CALL" for each kind of
 * call; `run` compares paired runs. Two ranks; the calls on MPI_COMM_SELF are made by rank 0 while rank 1 waits in a
 * sleep, so that both have a processor. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kHalo = 4 };

static int rank;

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void report(const char* name, double ns, long calls) {
  if (rank == 0) printf("%s %.2f\n", name, ns / (double)calls);
}

static void ping_pong(long n) {
  char buffer[8] = {0};
  const int other = 1 - rank;
  double start = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (long i = -n / 10; i < n; ++i) {
    if (i == 0) start = now_ns();
    if (rank == 0) {
      MPI_Send(buffer, 8, MPI_BYTE, other, 0, MPI_COMM_WORLD);
      MPI_Recv(buffer, 8, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(buffer, 8, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer, 8, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    }
  }
  report("ping_pong_8_bytes", now_ns() - start, 2 * n); /* two calls in a round trip */
}

/* Per call of the non-blocking kind: kHalo receives, kHalo sends and one Waitall. */
static void halo(long n) {
  double buffer[2 * kHalo];
  MPI_Request requests[2 * kHalo];
  const int other = 1 - rank;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_ns();
  for (long i = 0; i < n; ++i) {
    for (int k = 0; k < kHalo; ++k) {
      MPI_Irecv(&buffer[k], 1, MPI_DOUBLE, other, k, MPI_COMM_WORLD, &requests[k]);
    }
    for (int k = 0; k < kHalo; ++k) {
      MPI_Isend(&buffer[kHalo + k], 1, MPI_DOUBLE, other, k, MPI_COMM_WORLD, &requests[kHalo + k]);
    }
    MPI_Waitall(2 * kHalo, requests, MPI_STATUSES_IGNORE);
  }
  report("halo_per_request", now_ns() - start, n * 2 * kHalo);
}

static void allreduce(long n) {
  double in = 1, out;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_ns();
  for (long i = 0; i < n; ++i) MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  report("allreduce_8_bytes", now_ns() - start, n);
}

static void alone(long n) {
  MPI_Request requests[2];
  int in = 0, out = 1, flag;
  double start = now_ns();
  for (long i = 0; i < n; ++i) {
    MPI_Isend(&out, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[0]);
    MPI_Recv(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  }
  report("self_isend_recv_wait", now_ns() - start, 3 * n);
  start = now_ns();
  for (long i = 0; i < n; ++i) MPI_Barrier(MPI_COMM_SELF);
  report("self_barrier", now_ns() - start, n);
  start = now_ns();
  for (long i = 0; i < n; ++i) MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
  report("failed_iprobe", now_ns() - start, n);
  start = now_ns();
  for (long i = 0; i < n; ++i) MPI_Comm_size(MPI_COMM_WORLD, &flag);
  report("local_comm_size", now_ns() - start, n);
}

int main(int argc, char** argv) {
  int size;
  const long n = argc > 1 ? atol(argv[1]) : 100000;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) MPI_Abort(MPI_COMM_WORLD, 2);
  ping_pong(n);
  halo(n / 4);
  allreduce(n);
  char done = 0;
  if (rank == 0) {
    alone(n);
    MPI_Send(&done, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
  } else {
    for (int flag = 0; !flag;) {
      const struct timespec nap = {0, 1000000};
      nanosleep(&nap, NULL);
      MPI_Iprobe(0, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Recv(&done, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
