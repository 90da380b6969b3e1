// An MPI program whose ranks compute, start a kernel, wait for it in one of four ways, and exchange. What the program
// itself measured of its waits is printed beside what CUDA's events say. Built by `run`, with nvcc, or with the stand-in
// of tests/mpi/devices in place of CUDA (STAND_IN).
//
// usage: program --calibrate                                  rounds of work that take 1 ms
//        program ITERATIONS ROUNDS KERNEL_US spin|block       "rank R LOOP_S WAITED_S EVENTS_S" for each rank
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vector>

#ifdef STAND_IN
#include "stand_in.h"
#else
#include <cuda_runtime.h>

__global__ void stay_busy(unsigned long long ns) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - begin < ns);
}

static void start_kernel(double us) {
  stay_busy<<<1, 1>>>(static_cast<unsigned long long>(us * 1e3));
}
#endif

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "program: %s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}
#define CHECK(call) check(call, #call)

static double now_s() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

static volatile double sink;
static void work(long rounds) {
  double x = 1;
  for (long i = 0; i < rounds; ++i) x = x * 1.0000001 + 1e-9;
  sink = x;
}

static int calibrate() {
  double best_s = 1e9;
  constexpr long kRounds = 20000000;
  for (int i = 0; i < 5; ++i) {
    const double begin = now_s();
    work(kRounds);
    const double took_s = now_s() - begin;
    if (took_s < best_s) best_s = took_s;
  }
  printf("%.0f\n", static_cast<double>(kRounds) / best_s / 1e3);
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--calibrate") == 0) return calibrate();
  if (argc != 5) return 2;
  const int iterations = atoi(argv[1]);
  const long rounds = atol(argv[2]);
  const double kernel_us = atof(argv[3]);
  const bool blocks = strcmp(argv[4], "block") == 0;

  // The context is there before MPI_Init: what follows has no other waits than these.
  const char* const local = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  CHECK(cudaSetDevice(devices > 0 && local != nullptr ? atoi(local) % devices : 0));
  CHECK(cudaSetDeviceFlags(blocks ? cudaDeviceScheduleBlockingSync : cudaDeviceScheduleSpin));
  constexpr size_t kBytes = 65536;
  void* buffer = nullptr;
  std::vector<char> host(kBytes, 1);
  CHECK(cudaMalloc(&buffer, kBytes));
  CHECK(cudaMemcpy(buffer, host.data(), kBytes, cudaMemcpyHostToDevice));
  cudaEvent_t begin, end;
  const unsigned event_flags = blocks ? cudaEventBlockingSync : cudaEventDefault;
  CHECK(cudaEventCreateWithFlags(&begin, event_flags));
  CHECK(cudaEventCreateWithFlags(&end, event_flags));
  for (int i = 0; i < 3; ++i) {
    start_kernel(1000);
    CHECK(cudaDeviceSynchronize());
  }

  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const double own_us = kernel_us * (rank % 2 == 0 ? 1 : 1.5);
  double waited_s = 0, events_s = 0, sum = 0;
  std::vector<double> halo(1024, rank);
  MPI_Barrier(MPI_COMM_WORLD);
  const double loop_begin = now_s();
  for (int i = 0; i < iterations; ++i) {
    work(rounds);
    CHECK(cudaEventRecord(begin, nullptr));
    start_kernel(own_us);
    CHECK(cudaEventRecord(end, nullptr));
    const double wait_begin = now_s();
    switch (i % 4) {
      case 0:
        CHECK(cudaDeviceSynchronize());
        break;
      case 1:
        CHECK(cudaStreamSynchronize(nullptr));
        break;
      case 2:
        CHECK(cudaEventSynchronize(end));
        break;
      default:
        CHECK(cudaMemcpy(host.data(), buffer, kBytes, cudaMemcpyDeviceToHost));
        break;
    }
    waited_s += now_s() - wait_begin;
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    events_s += ms * 1e-3;
    MPI_Sendrecv_replace(halo.data(), static_cast<int>(halo.size()), MPI_DOUBLE, (rank + 1) % ranks, 0,
                         (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double own = halo[0];
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  const double mine[3] = {now_s() - loop_begin, waited_s, events_s};
  std::vector<double> all(3 * static_cast<size_t>(ranks));
  MPI_Gather(mine, 3, MPI_DOUBLE, all.data(), 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int r = 0; rank == 0 && r < ranks; ++r) {
    const double* const of_rank = &all[3 * static_cast<size_t>(r)];
    printf("rank %d %.6f %.6f %.6f\n", r, of_rank[0], of_rank[1], of_rank[2]);
  }
  MPI_Finalize();
  CHECK(cudaFree(buffer));
  return 0;
}
