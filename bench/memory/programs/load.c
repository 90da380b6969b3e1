/* An MPI program whose ranks want much or little of memory, for bench/memory/run: iterations of one kind of work, and a
 * small MPI_Allreduce behind each.
 *
 * usage: load stream|mixed|compute|churn ITERATIONS
 *   stream   a[i] = b[i] + s c[i] over 192 MB
 *   mixed    the same over a third of them, and as long again in the first-level cache
 *   compute  in the first-level cache only
 *   churn    as LULESH does it: memory that is got, written and given back in each iteration, so that most of its
 *            pages are new each time (page faults, system time) */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kElements = 8 << 20, kInCache = 1024, kCacheRounds = 6000, kChurnBytes = 64 << 20 };

static double *a, *b, *c;
static double sum;

static void stream(long elements) {
  for (long i = 0; i < elements; ++i) a[i] = b[i] + 3.0 * c[i];
}

static void compute(int rounds) {
  static double x[kInCache];
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < kInCache; ++i) x[i] = x[i] * 0.999 + 1e-3;
  }
  sum += x[kInCache / 2];
}

static void churn(void) {
  char* const memory = mmap(NULL, kChurnBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  for (long at = 0; at < kChurnBytes; at += 512) memory[at] = 1;
  sum += memory[kChurnBytes / 2];
  munmap(memory, kChurnBytes);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* const kind = argc > 1 ? argv[1] : "";
  const int iterations = argc > 2 ? atoi(argv[2]) : 0;
  if (strcmp(kind, "stream") == 0 || strcmp(kind, "mixed") == 0) {
    a = malloc(3 * sizeof *a * kElements);
    if (a == NULL) return 1;
    b = a + kElements;
    c = b + kElements;
    for (long i = 0; i < 3L * kElements; ++i) a[i] = 1;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < iterations; ++i) {
    if (strcmp(kind, "stream") == 0) stream(kElements);
    if (strcmp(kind, "mixed") == 0) {
      stream(kElements / 3);
      compute(kCacheRounds / 3);
    }
    if (strcmp(kind, "compute") == 0) compute(kCacheRounds);
    if (strcmp(kind, "churn") == 0) churn();
    double all = 0;
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("%g\n", sum + (a != NULL ? a[kElements / 2] : 0));
  MPI_Finalize();
  return 0;
}
