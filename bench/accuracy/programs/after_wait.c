// Why does the same work take more processor time where the network is slow? Four ranks, two on each node,
// whose two share a core. The odd ones wait as a rank does whose message has not come (MPI_Test,
// sched_yield), then do a stretch of work, the same again and again, and read how much processor time it
// takes. The even ones sleep, or exchange messages with each other over the link, and wait for these.
//
// Work in registers can lose time to nothing but interrupts (packets that come, timers of a shaped link):
// these are in nobody's processor time but that of the rank that they interrupt. Work with data loses the
// caches, too, the more the longer it waited. Rank 0 prints medians and means. See docs/accuracy.md,
// "Behind the aims".
//
// usage: after_wait SECONDS (of each figure), with srun --nodes=2 --ntasks=4 --distribution=block
// --overcommit
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kMostSamples = 20000, kMessageBytes = 32 << 10, kRegisterSteps = 9000, kLargestBytes = 1 << 20 };
static const int kWait_us[] = {0, 100, 1000, 10000};
static const size_t kWorkingSets[] = {0, 32 << 10, 256 << 10, kLargestBytes};
enum { kWaits = sizeof kWait_us / sizeof *kWait_us, kSets = sizeof kWorkingSets / sizeof *kWorkingSets };

static double processor_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static void wait_for(int us, MPI_Request* never) {
  const double end_s = MPI_Wtime() + us * 1e-6;
  while (MPI_Wtime() < end_s) {
    int done = 0;
    MPI_Test(never, &done, MPI_STATUS_IGNORE);
    sched_yield();
  }
}

// Processor seconds of one pass over the working set, or, without one, of steps in registers.
static double work(double* data, size_t bytes) {
  static volatile double sink;
  const double start_s = processor_s();
  double x = 1;
  if (bytes == 0)
    for (int i = 0; i < kRegisterSteps; ++i) x = x * 1.0000001 + 1e-9;
  for (size_t i = 0; i < bytes / sizeof *data; ++i) data[i] = data[i] * 0.5 + 1;
  sink = x;
  (void)sink;
  return processor_s() - start_s;
}

// Median and mean.
static void measure(double seconds, double* data, size_t bytes, int us, MPI_Request* never, double result[2]) {
  static double samples[kMostSamples];
  const double end_s = MPI_Wtime() + seconds;
  int count = 0;
  result[1] = 0;
  while (MPI_Wtime() < end_s && count < kMostSamples) {
    wait_for(us, never);
    samples[count] = work(data, bytes);
    result[1] += samples[count++];
  }
  result[1] /= count;
  qsort(samples, (size_t)count, sizeof *samples, compare);
  result[0] = samples[count / 2];
}

// Both ways at once, until both have had `seconds`.
static void exchange(double seconds, char* out, char* in, int other) {
  const double end_s = MPI_Wtime() + seconds;
  for (int mine = 1, theirs = 1; mine && theirs;) {
    mine = MPI_Wtime() < end_s;
    memcpy(out, &mine, sizeof mine);
    MPI_Sendrecv(out, kMessageBytes, MPI_BYTE, other, 0, in, kMessageBytes, MPI_BYTE, other, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    memcpy(&theirs, in, sizeof theirs);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const double seconds = argc > 1 ? atof(argv[1]) : 0;
  if (ranks != 4 || seconds <= 0) {
    if (rank == 0) fprintf(stderr, "usage: after_wait SECONDS, with 4 ranks, two on each of two nodes\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  char *out = calloc(1, kMessageBytes), *in = calloc(1, kMessageBytes);
  double* data = calloc(1, kLargestBytes);
  MPI_Request never;
  int nothing = 0;
  MPI_Irecv(&nothing, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &never);
  if (rank == 0) {
    printf("us of processor time, median (mean)  after a wait of");
    for (int i = 0; i < kWaits; ++i) printf(" %11d us", kWait_us[i]);
    printf("\n");
  }
  for (int busy = 0; busy < 2; ++busy) {
    for (int set = 0; set < kSets; ++set) {
      double mine[kWaits][2] = {{0}}, of_rank_1[kWaits][2];
      for (int i = 0; i < kWaits; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        const struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
        if (rank % 2 == 1) {
          measure(seconds, data, kWorkingSets[set], kWait_us[i], &never, mine[i]);
        } else if (busy) {
          exchange(seconds, out, in, 2 - rank);
        } else {
          nanosleep(&pause, NULL);
        }
      }
      if (rank == 1) MPI_Send(mine, 2 * kWaits, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
      if (rank != 0) continue;
      MPI_Recv(of_rank_1, 2 * kWaits, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      printf("%8zu bytes of data, %-20s", kWorkingSets[set], busy ? "others exchange" : "others sleep");
      for (int i = 0; i < kWaits; ++i) printf("    %6.2f (%6.2f)", of_rank_1[i][0] * 1e6, of_rank_1[i][1] * 1e6);
      printf("\n");
      fflush(stdout);
    }
  }
  MPI_Cancel(&never);
  MPI_Request_free(&never);
  free(data);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
