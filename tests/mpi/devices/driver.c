/* A stand-in for libcuda.so.1: the names of the driver's functions that the tests need, and a device that is busy for
 * as long as stand_in_launch() says. No GPU, no line of NVIDIA's. What cuGetProcAddress finds is none of the exported
 * functions, as with the real one. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

static double busy_until;
static int sleeps;

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

EXPORT void stand_in_launch(double seconds) {
  const double now = now_s();
  busy_until = (busy_until > now ? busy_until : now) + seconds;
}

/* As with cudaDeviceScheduleBlockingSync: a thread that waits sleeps. */
EXPORT void stand_in_sleep(int on) {
  sleeps = on;
}

static int wait_for_device(void) {
  while (now_s() < busy_until) {
    const struct timespec some = {0, 1000000};
    if (sleeps) nanosleep(&some, NULL);
  }
  return 0;
}

static int copy(void* to, const void* from, size_t bytes) {
  memcpy(to, from, bytes);
  return wait_for_device();
}

static int found_ctx_synchronize(void) {
  return wait_for_device();
}
static int found_stream_synchronize(void* stream) {
  return stream == NULL ? wait_for_device() : 400;
}
static int found_event_synchronize(void* event) {
  return event == NULL ? wait_for_device() : 400;
}
static int found_memcpy(uintptr_t to, const void* from, size_t bytes) {
  return copy((void*)to, from, bytes);
}
static int found_memcpy_to_host(void* to, uintptr_t from, size_t bytes) {
  return copy(to, (const void*)from, bytes);
}

EXPORT int cuGetProcAddress_v2(const char* name, void** found, int version, uint64_t flags, int* status);

static const struct {
  const char* name;
  void* function;
} kFound[] = {{"cuCtxSynchronize", (void*)found_ctx_synchronize},
              {"cuStreamSynchronize", (void*)found_stream_synchronize},
              {"cuEventSynchronize", (void*)found_event_synchronize},
              {"cuMemcpyHtoD", (void*)found_memcpy},
              {"cuMemcpyDtoH", (void*)found_memcpy_to_host},
              {"cuGetProcAddress", (void*)cuGetProcAddress_v2},
              {"stand_in_launch", (void*)stand_in_launch},
              {"stand_in_sleep", (void*)stand_in_sleep}};

EXPORT int cuGetProcAddress_v2(const char* name, void** found, int version, uint64_t flags, int* status) {
  (void)version;
  (void)flags;
  *found = NULL;
  for (size_t i = 0; i < sizeof(kFound) / sizeof(kFound[0]); ++i) {
    if (strcmp(kFound[i].name, name) == 0) *found = kFound[i].function;
  }
  if (status != NULL) *status = *found == NULL;
  return *found != NULL ? 0 : 500;
}

EXPORT int cuCtxSynchronize(void) {
  return wait_for_device();
}
EXPORT int cuStreamSynchronize(void* stream) {
  return found_stream_synchronize(stream);
}
EXPORT int cuMemcpyDtoH_v2(void* to, uintptr_t from, size_t bytes) {
  return copy(to, (const void*)from, bytes);
}
