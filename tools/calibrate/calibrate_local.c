/* See calibrate_local.h. */
#define _GNU_SOURCE
#include "tools/calibrate/calibrate_local.h"

#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tools/calibrate/calibrate_ring.h"

enum { kRounds = 40, kBatchBytes = 65536, kLongestBatch = 64 };

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int read_number(const char* text, int64_t* value) {
  char* end = NULL;
  errno = 0;
  *value = strtoll(text, &end, 10);
  return errno == 0 && end != text && *end == '\0' && *value >= 0 && *value <= 1 << 30;
}

/* Doubles whose sums stay what they are: ones and zeros. */
static void fill(char* memory, int64_t bytes, double value) {
  double* const numbers = (double*)memory;
  for (int64_t i = 0; i < bytes / (int64_t)sizeof value; ++i) numbers[i] = value;
}

struct Memory {
  struct Ring from, into;
  char* operand;
};

static int get_memory(struct Memory* memory, int64_t ring_bytes, int64_t largest) {
  const int64_t bytes = whole_lines(ring_bytes > largest ? ring_bytes : largest);
  if (!make_ring(&memory->from, bytes, ring_bytes > 0) || !make_ring(&memory->into, bytes, ring_bytes > 0)) return 0;
  memory->operand = aligned_alloc(kCacheLineBytes, (size_t)whole_lines(largest));
  if (memory->operand == NULL) return 0;
  fill(memory->into.memory, bytes, 1);
  fill(memory->operand, whole_lines(largest), 0);
  return 1;
}

static void measure(struct Memory* memory, int64_t bytes, int reduces) {
  int64_t batch = bytes > 0 ? kBatchBytes / bytes : kLongestBatch;
  if (batch < 1) batch = 1;
  if (batch > kLongestBatch) batch = kLongestBatch;
  const int64_t start_ns = now_ns();
  for (int64_t i = 0; i < batch; ++i) {
    if (reduces) {
      MPI_Reduce_local(memory->operand, take(&memory->into, bytes), (int)(bytes / (int64_t)sizeof(double)), MPI_DOUBLE,
                       MPI_SUM);
    } else {
      MPI_Allgather(take(&memory->from, bytes), (int)bytes, MPI_BYTE, take(&memory->into, bytes), (int)bytes, MPI_BYTE,
                    MPI_COMM_SELF);
    }
  }
  const int64_t each_ns = (now_ns() - start_ns + batch / 2) / batch;
  printf("%s %lld %lld\n", reduces ? "reduce" : "copy", (long long)bytes, (long long)each_ns);
}

int measure_local(int argc, char** argv) {
  int64_t ring_bytes = 0;
  int64_t largest = sizeof(double);
  int right = argc > 2 && read_number(argv[1], &ring_bytes);
  for (int i = 2; i < argc && right; ++i) {
    int64_t bytes = 0;
    right = read_number(argv[i], &bytes);
    if (bytes > largest) largest = bytes;
  }
  if (!right) {
    fprintf(stderr, "lbf-calibrate-pingpong: local needs RING and BYTES, numbers up to 2^30\n");
    return 2;
  }
  MPI_Init(NULL, NULL);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  struct Memory memory;
  if (ranks != 1 || !get_memory(&memory, ring_bytes, largest)) {
    if (rank == 0)
      fprintf(stderr, ranks != 1 ? "lbf-calibrate-pingpong: local needs one rank: does --srun bring options that set "
                                   "their number?\n"
                                 : "lbf-calibrate-pingpong: no memory for the rings\n");
    MPI_Finalize();
    return 1;
  }
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  printf("node 0 %s\n", host);
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 2; i < argc; ++i) {
      int64_t bytes = 0;
      read_number(argv[i], &bytes);
      measure(&memory, bytes, 0);
      if (bytes % (int64_t)sizeof(double) == 0) measure(&memory, bytes, 1);
    }
    fflush(stdout);
  }
  printf("end\n");
  fflush(stdout);
  free(memory.from.memory);
  free(memory.into.memory);
  free(memory.operand);
  MPI_Finalize();
  return 0;
}
