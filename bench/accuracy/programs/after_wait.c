// Does work take longer after a wait? One process, one core: a stretch of work, a wait, the same work again.
//
// Prints the median time of the work by its working set, by how long the wait before it was, and by what the
// process did meanwhile: spin (no system call at all), yield, epoll (what Open MPI does while it waits for
// TCP), sleep. What grows with the working set is the caches' doing; where `spin` is no better than the
// others, it is not the process itself, nor the kernel for it, that emptied them. See docs/accuracy.md,
// "Known causes of error".
//
// usage: taskset -c CORE after_wait
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kMostSamples = 300, kLongestTotal_us = 600000, kLargestBytes = 1536 << 10, kRegisterSteps = 30000 };
enum wait { kSpin, kYield, kEpoll, kSleep, kWaits };
static const char* const kWaitNames[kWaits] = {"spin", "yield", "epoll", "sleep"};
static const int kWait_us[] = {0, 100, 1000, 5000};
static const size_t kWorkingSets[] = {0, 32 << 10, 512 << 10, kLargestBytes};
enum { kDurations = sizeof kWait_us / sizeof *kWait_us, kSets = sizeof kWorkingSets / sizeof *kWorkingSets };

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static void wait_for(enum wait how, int us, int poll) {
  const double end_s = now_s() + us * 1e-6;
  if (how == kSleep && us > 0) {
    const struct timespec pause = {0, us * 1000L};
    nanosleep(&pause, NULL);
  }
  while (now_s() < end_s) {
    struct epoll_event event;
    if (how == kEpoll) epoll_wait(poll, &event, 1, 0);
    if (how != kSpin) sched_yield();
  }
}

// Seconds of the work: one pass over the working set, or, without one, steps in registers.
static double work(double* data, size_t bytes) {
  static volatile double sink;
  const double start_s = now_s();
  double x = 1;
  if (bytes == 0)
    for (int i = 0; i < kRegisterSteps; ++i) x = x * 1.0000001 + 1e-9;
  for (size_t i = 0; i < bytes / sizeof *data; ++i) data[i] = data[i] * 0.5 + 1;
  sink = x;
  (void)sink;
  return now_s() - start_s;
}

static double median_s(double* data, size_t bytes, enum wait how, int us, int poll) {
  double samples[kMostSamples];
  const int count = us * kMostSamples > kLongestTotal_us ? kLongestTotal_us / us : kMostSamples;
  for (int i = 0; i < count; ++i) {
    wait_for(how, us, poll);
    samples[i] = work(data, bytes);
  }
  qsort(samples, (size_t)count, sizeof *samples, compare);
  return samples[count / 2];
}

int main(void) {
  const int poll = epoll_create1(0);
  int ends[2];
  struct epoll_event event = {.events = EPOLLIN};
  double* data = aligned_alloc(64, kLargestBytes);
  if (poll < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 ||
      epoll_ctl(poll, EPOLL_CTL_ADD, ends[0], &event) != 0 || data == NULL) {
    perror("after_wait");
    return 1;
  }
  memset(data, 0, kLargestBytes);
  printf("median us of the work   after a wait of");
  for (int i = 0; i < kDurations; ++i) printf(" %7d us", kWait_us[i]);
  printf("\n");
  for (int set = 0; set < kSets; ++set) {
    for (int how = 0; how < kWaits; ++how) {
      printf("%8zu bytes, %-20s", kWorkingSets[set], kWaitNames[how]);
      for (int i = 0; i < kDurations; ++i) {
        printf(" %10.2f", median_s(data, kWorkingSets[set], (enum wait)how, kWait_us[i], poll) * 1e6);
      }
      printf("\n");
    }
  }
  return 0;
}
