/* Waits for a stand-in device, each behind an MPI_Pcontrol with its number (devices.py), and what the program sees of
 * the preload: nothing. "result" lines are the same with and without the capture; "waited" lines are the program's own
 * clock. Built with the shared runtime, with the static one (STATIC_RUNTIME), as a plugin, and with HIP (USE_HIP). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifdef USE_HIP
#include "hip.h"
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaStreamSynchronize hipStreamSynchronize
#define cudaEventSynchronize hipStreamSynchronize
#define cudaMemcpy hipMemcpy
#define stand_in_kernel stand_in_hip_kernel
static void stand_in_device_sleeps(int on) {
  (void)on;
}
static int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                        int kind) {
  int result = 0;
  for (size_t row = 0; row < height && result == 0; ++row)
    result = hipMemcpy((char*)to + row * to_pitch, (const char*)from + row * from_pitch, width, kind);
  return result;
}
#else
#include "runtime.h"
#endif

enum { kDevice = 1, kStream, kCopy, kMany, kNone, kInCall, kBuffer, kRows, kSleeps, kDirect };
static const double kKernelS = 0.03;
static int rank;

static double now_ms(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void work(double ms) {
  const double end = now_ms(CLOCK_THREAD_CPUTIME_ID) + ms;
  while (now_ms(CLOCK_THREAD_CPUTIME_ID) < end) {
  }
}

static double began;
static void begin_wait(void) {
  began = now_ms(CLOCK_MONOTONIC);
}
static void end_stage(int stage, long result) {
  const double waited = now_ms(CLOCK_MONOTONIC) - began;
  MPI_Pcontrol(stage + 10); /* 0 and 1 are the program's scope */
  printf("result %d %d %ld\n", rank, stage, result);
  printf("waited %d %d %.6f\n", rank, stage, waited);
}

/* An operation that runs inside MPI_Allreduce: what it waits for is the call's time. */
static void combine(void* in, void* out, int* count, MPI_Datatype* type) {
  (void)type;
  stand_in_kernel(0.002);
  for (int i = 0; i < *count; ++i) ((int*)out)[i] += ((int*)in)[i] + cudaDeviceSynchronize();
}

/* MPI_PROC_NULL takes any buffer, also one that the processor must not read: a device's. */
static long device_buffers(void) {
  double* const buffer = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MPI_Request requests[2];
  MPI_Send(buffer, 512, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Isend(buffer, 512, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(buffer, 512, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Recv(buffer, 512, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return munmap(buffer, 8192);
}

/* Whether each look-up finds something, as digits. MPI's own names are everybody's under capture
   and are looked up behind the caller alone. */
static long lookups(void) {
  static const char* const kNames[] = {"cudaDeviceSynchronize", "cuStreamSynchronize", "hipDeviceSynchronize",
                                       "cuNobody", "MPI_Send"};
  void* const program = dlopen(NULL, RTLD_LAZY);
  long found = 0;
  for (size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); ++i) {
    dlerror();
    const int by_default = dlsym(RTLD_DEFAULT, kNames[i]) != NULL;
    const int says_default = dlerror() != NULL;
    const int by_handle = dlsym(program, kNames[i]) != NULL;
    const int says_handle = dlerror() != NULL;
    const int next = dlsym(RTLD_NEXT, kNames[i]) != NULL;
    const int is_mpi = strncmp(kNames[i], "MPI", 3) == 0;
    found = found * 100 + (is_mpi ? next : by_default * 16 + says_default * 8 + by_handle * 4 + says_handle * 2);
  }
  return found;
}

/* The driver by its name alone, as interpreters call it. */
static int synchronize_directly(void) {
#ifdef USE_HIP
  return hipDeviceSynchronize();
#else
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY);
  int (*const synchronize)(void) = driver != NULL ? (int (*)(void))dlsym(driver, "cuCtxSynchronize") : NULL;
  const int result = synchronize != NULL ? synchronize() : -1;
  if (driver != NULL) dlclose(driver);
  return result;
#endif
}

int main(int argc, char** argv) {
  int result = 0, sum = 1;
  char from[64], to[64];
  MPI_Op op;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  memset(from, rank + 1, sizeof(from));
  memset(to, 0, sizeof(to));
  printf("result %d lookups %ld\n", rank, lookups());
  for (int round = 0; round < 2; ++round) {
    work(2);
    stand_in_kernel(kKernelS);
    begin_wait();
    result = cudaDeviceSynchronize();
    end_stage(kDevice, result);

    stand_in_kernel(kKernelS);
    begin_wait();
    result = cudaStreamSynchronize(NULL);
    end_stage(kStream, result + cudaStreamSynchronize(&result));

    stand_in_kernel(kKernelS);
    begin_wait();
    result = cudaMemcpy(to, from, sizeof(to), 2);
    end_stage(kCopy, result + to[63]);

    begin_wait();
    for (int i = 0; i < 100000; ++i) result += cudaEventSynchronize(NULL);
    end_stage(kMany, result);

    work(1);
    begin_wait();
    end_stage(kNone, 0);

    MPI_Op_create(combine, 0, &op);
    begin_wait();
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
    end_stage(kInCall, sum);
    MPI_Op_free(&op);

    begin_wait();
    end_stage(kBuffer, device_buffers());

    stand_in_kernel(kKernelS);
    begin_wait();
    memset(to, 0, sizeof(to));
    result = cudaMemcpy2D(to, 16, from, 16, 8, 4, 1);
    end_stage(kRows, result + to[48] + to[8]);

    stand_in_device_sleeps(1);
    stand_in_kernel(kKernelS);
    begin_wait();
    result = cudaDeviceSynchronize();
    end_stage(kSleeps, result);
    stand_in_device_sleeps(0);

    stand_in_kernel(kKernelS);
    begin_wait();
    result = synchronize_directly();
    end_stage(kDirect, result);
  }
  printf("result %d lookups %ld\n", rank, lookups()); /* the driver is loaded, in a scope of its own */
  MPI_Finalize();
  return 0;
}
