// What program.cu uses of CUDA, with the stand-in of tests/mpi/devices behind it, so that `run --stand-in` tries the
// whole way where there is no GPU. No time of it says anything about CUDA.
#pragma once

#include <stdlib.h>

extern "C" {
#include "runtime.h"
}

typedef int cudaError_t;
struct StandInEvent {
  double busy_s;
};
typedef StandInEvent* cudaEvent_t;
constexpr int cudaSuccess = 0, cudaDeviceScheduleBlockingSync = 4, cudaDeviceScheduleSpin = 1;
constexpr int cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2;
constexpr unsigned cudaEventDefault = 0, cudaEventBlockingSync = 1;

inline double stand_in_started_s = 0;  // by all kernels so far

static inline const char* cudaGetErrorString(int) {
  return "the stand-in failed";
}
static inline int cudaGetDeviceCount(int* count) {
  return *count = 1, 0;
}
static inline int cudaSetDevice(int) {
  return 0;
}
static inline int cudaSetDeviceFlags(int flags) {
  return stand_in_device_sleeps(flags == cudaDeviceScheduleBlockingSync), 0;
}
static inline int cudaMalloc(void** buffer, size_t bytes) {
  return (*buffer = calloc(1, bytes)) == nullptr;
}
static inline int cudaFree(void* buffer) {
  return free(buffer), 0;
}
static inline int cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return (*event = new StandInEvent{0}) == nullptr;
}
static inline int cudaEventRecord(cudaEvent_t event, void*) {
  return event->busy_s = stand_in_started_s, 0;
}
static inline int cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  return *ms = static_cast<float>((end->busy_s - begin->busy_s) * 1e3), 0;
}
// Of the stand-in an event is the device.
#define cudaEventSynchronize(event) cudaEventSynchronize(nullptr)
static inline void start_kernel(double us) {
  stand_in_started_s += us * 1e-6;
  stand_in_kernel(us * 1e-6);
}
