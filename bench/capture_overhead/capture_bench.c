/* What MPI calls cost, bare or captured: capture_bench [REPEATS]. Rank 0 prints "NAME NS_PER_CALL" for each
 * kind of call; `run` compares paired runs. Two ranks; the calls on MPI_COMM_SELF are made by rank 0 while
 * rank 1 waits in a sleep, so that both have a processor. Behind "cold": the caches of the processor's own are full of
 * other data and code when a call begins, as after a stretch of work. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kHalo = 4, kFirstRound = 160000 };

static int rank;

enum { kMaxChunks = 400 };
/* Chunks of the run, and which one counts: others on the machine only ever take time away, for seconds on end, so it is
 * one of the fastest. In a first round every chunk has new pages, and the middle one counts. */
struct Chunks {
  int count, counts;
};
static const struct Chunks kSteady = {kMaxChunks, kMaxChunks / 20}, kOnce = {25, 12};

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

/* Runs `body` n times and prints its time per call. */
static void measure(const char* name, void (*body)(void), long n, int calls_per_body, struct Chunks chunks) {
  double chunk_ns[kMaxChunks];
  const long per_chunk = n / chunks.count;
  for (long i = 0; i < per_chunk; ++i) body(); /* warms up */
  for (int c = 0; c < chunks.count; ++c) {
    const double start = now_ns();
    for (long i = 0; i < per_chunk; ++i) body();
    chunk_ns[c] = now_ns() - start;
  }
  qsort(chunk_ns, (size_t)chunks.count, sizeof(chunk_ns[0]), ascending);
  if (rank == 0) printf("%s %.2f\n", name, chunk_ns[chunks.counts] / (double)per_chunk / calls_per_body);
}

enum { kOtherBytes = 8 << 20 };
static char* other_data;

/* At least 64 KiB of code, once through. */
static void other_code(void) {
  __asm__ volatile(".rept 65536\nnop\n.endr");
}

/* The same, one time of the body after the other, each behind other data and code. */
static void measure_cold(const char* name, void (*body)(void), int calls_per_body) {
  static double ns[kMaxChunks];
  for (int c = 0; c < kMaxChunks; ++c) {
    for (int i = 0; i < kOtherBytes; i += 64) ++other_data[i];
    other_code();
    const double start = now_ns();
    body();
    ns[c] = now_ns() - start;
  }
  qsort(ns, kMaxChunks, sizeof(ns[0]), ascending);
  if (rank == 0) printf("%s %.2f\n", name, ns[kMaxChunks / 2] / calls_per_body);
}

static char byte_buffer[8];
static double in[kHalo], out[kHalo];
static int flag;

static void ping_pong(void) {
  if (rank == 0) {
    MPI_Send(byte_buffer, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(byte_buffer, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(byte_buffer, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(byte_buffer, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
}

static void halo(void) {
  MPI_Request requests[2 * kHalo];
  for (int k = 0; k < kHalo; ++k) MPI_Irecv(&in[k], 1, MPI_DOUBLE, 1 - rank, k, MPI_COMM_WORLD, &requests[k]);
  for (int k = 0; k < kHalo; ++k) {
    MPI_Isend(&out[k], 1, MPI_DOUBLE, 1 - rank, k, MPI_COMM_WORLD, &requests[kHalo + k]);
  }
  MPI_Waitall(2 * kHalo, requests, MPI_STATUSES_IGNORE);
}

static void allreduce(void) {
  MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void self_message(void) {
  MPI_Request request;
  MPI_Isend(out, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, &request);
  MPI_Recv(in, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void self_barrier(void) {
  MPI_Barrier(MPI_COMM_SELF);
}
static void failed_iprobe(void) {
  MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}
static MPI_Request pending;
static void failed_test(void) {
  MPI_Test(&pending, &flag, MPI_STATUS_IGNORE);
}
static void local_call(void) {
  MPI_Comm_size(MPI_COMM_WORLD, &flag);
}

int main(int argc, char** argv) {
  int size;
  const long n = argc > 1 ? atol(argv[1]) : 200000;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) MPI_Abort(MPI_COMM_WORLD, 2);
  /* As many records as fill most of an event ring, whose pages are touched for the first time then. */
  measure("barrier_first_round", self_barrier, kFirstRound, 1, kOnce);
  measure("ping_pong_8_bytes", ping_pong, n, 2, kSteady);
  measure("halo_per_request", halo, n / 4, 2 * kHalo, kSteady);
  measure("allreduce_8_bytes", allreduce, n, 1, kSteady);
  char done = 0;
  if (rank == 0) {
    measure("self_isend_recv_wait", self_message, n, 3, kSteady);
    measure("self_barrier", self_barrier, n, 1, kSteady);
    measure("failed_iprobe", failed_iprobe, n, 1, kSteady);
    other_data = calloc(1, kOtherBytes);
    if (other_data == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    measure_cold("self_isend_recv_wait_cold", self_message, 3);
    measure_cold("self_barrier_cold", self_barrier, 1);
    MPI_Irecv(in, 1, MPI_DOUBLE, 0, 2, MPI_COMM_SELF, &pending);
    measure("failed_test", failed_test, n, 1, kSteady);
    MPI_Send(out, 1, MPI_DOUBLE, 0, 2, MPI_COMM_SELF);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    measure("local_comm_size", local_call, n, 1, kSteady);
    MPI_Send(&done, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
  } else {
    while (!flag) {
      const struct timespec nap = {0, 1000000};
      nanosleep(&nap, NULL);
      MPI_Iprobe(0, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Recv(&done, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
