/* What the tests need of CUDA's runtime (runtime.c). */
#pragma once

#include <stddef.h>

#ifdef STATIC_RUNTIME /* as nvcc links it: nobody else sees its names */
#pragma GCC visibility push(hidden)
#else
#pragma GCC visibility push(default)
#endif
int cudaDeviceSynchronize(void);
int cudaStreamSynchronize(void* stream);
int cudaEventSynchronize(void* event);
int cudaMemcpy(void* to, const void* from, size_t bytes, int kind);
int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, int kind);
/* The device is busy for so long. */
void stand_in_kernel(double seconds);
/* Who waits for it sleeps (1) or spins (0). */
void stand_in_device_sleeps(int on);
#pragma GCC visibility pop
