/* A stand-in for CUDA's runtime, shared (libcudart.so.12) or static: it opens the driver and finds all of it by
 * cuGetProcAddress, as NVIDIA's does from 11.3 on. No line of NVIDIA's. */
#include "runtime.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int get_proc_address(const char*, void**, int, uint64_t, int*);

static void* driver(const char* name) {
  static get_proc_address* find;
  if (find == NULL) {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    void* first = library != NULL ? dlsym(library, "cuGetProcAddress_v2") : NULL;
    /* The look-up looks itself up. */
    if (first == NULL || ((get_proc_address*)first)("cuGetProcAddress", (void**)&find, 12000, 0, NULL) != 0) abort();
  }
  void* found = NULL;
  return find(name, &found, 12000, 0, NULL) == 0 ? found : NULL;
}

#define DRIVER(name, result, ...)  \
  static result (*f)(__VA_ARGS__); \
  if (f == NULL) f = (result(*)(__VA_ARGS__))driver(name);

int cudaDeviceSynchronize(void) {
  DRIVER("cuCtxSynchronize", int, void)
  return f();
}
int cudaStreamSynchronize(void* stream) {
  DRIVER("cuStreamSynchronize", int, void*)
  return f(stream);
}
int cudaEventSynchronize(void* event) {
  DRIVER("cuEventSynchronize", int, void*)
  return f(event);
}
int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  enum { kToHost = 2 };
  DRIVER("cuMemcpyHtoD", int, uintptr_t, const void*, size_t)
  static int (*to_host)(void*, uintptr_t, size_t);
  if (to_host == NULL) to_host = (int (*)(void*, uintptr_t, size_t))driver("cuMemcpyDtoH");
  return kind == kToHost ? to_host(to, (uintptr_t)from, bytes) : f((uintptr_t)to, from, bytes);
}
/* Seven arguments: the last one is not in a register. A row at a time. */
int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                 int kind) {
  int result = 0;
  for (size_t row = 0; row < height && result == 0; ++row)
    result = cudaMemcpy((char*)to + row * to_pitch, (const char*)from + row * from_pitch, width, kind);
  return result;
}
void stand_in_kernel(double seconds) {
  DRIVER("stand_in_launch", void, double)
  f(seconds);
}
void stand_in_device_sleeps(int on) {
  DRIVER("stand_in_sleep", void, int)
  f(on);
}
