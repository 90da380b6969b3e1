/* An MPI program with OpenMP regions, for bench/hybrid/run: in each iteration serial work, two parallel regions (one
 * with equal parts, one whose parts grow and are handed out as threads come) and a small MPI_Allreduce. All work stays
 * in the first-level cache: memory is another study's subject.
 *
 * usage: hybrid ITERATIONS SERIAL_PERCENT */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kParts = 64, kRounds = 40000 };

static double work(long rounds, double x) {
  for (long i = 0; i < rounds; ++i) x = x * 0.999999 + 1e-6;
  return x;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int iterations = argc > 1 ? atoi(argv[1]) : 100;
  const int serial_percent = argc > 2 ? atoi(argv[2]) : 20;
  const long serial = (long)kParts * kRounds * serial_percent / 100;
  const long parallel = kRounds * (long)(100 - serial_percent) / 100 / 2;
  double sum = 0;
  for (int i = 0; i < iterations; ++i) {
    double part = work(serial, sum);
#pragma omp parallel for schedule(static) reduction(+ : part)
    for (int k = 0; k < kParts; ++k) part += work(parallel, k);
#pragma omp parallel for schedule(dynamic) reduction(+ : part)
    for (int k = 0; k < kParts; ++k) part += work(2 * parallel * k / kParts, k);
    MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    sum = sum / 1e9;
  }
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("%d iterations, %g\n", iterations, sum);
  MPI_Finalize();
  return 0;
}
