// A program that counts its own calls: what the measuring must find, it prints. With an argument: one case only.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

volatile long sink;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

KEEP void spin(double seconds) {
  const double end = now() + seconds;
  while (now() < end) sink++;
}

KEEP long leaf(long a, long b, long c, long d, long e, long f, long g, long h) {
  sink += a;
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

typedef struct {
  long part[6];
} Large;
KEEP Large large_result(long seed) {
  Large out;
  for (int i = 0; i < 6; i++) out.part[i] = seed * (i + 1);
  sink += seed;
  return out;
}

KEEP double floating(double a, float b, double c) {
  sink++;
  return a * 2 + (double)b * 3 + c;
}

KEEP long recursive(long n) {
  sink++;
  if (n <= 1) return 1;
  const long below = recursive(n - 1);
  sink++;  // so that no loop can be made of it
  return n + below;
}

KEEP long odd(long n);
KEEP long even(long n) {
  sink++;
  if (n == 0) return 1;
  return odd(n - 1);
}
KEEP long odd(long n) {
  sink++;
  if (n == 0) return 0;
  return even(n - 1);
}

static jmp_buf back;
KEEP void jumps_out(int depth) {
  sink++;
  if (depth == 0) longjmp(back, 1);
  jumps_out(depth - 1);
  sink++;
}
KEEP int catches_jump(int depth) {
  if (setjmp(back) == 0) {
    jumps_out(depth);
    return 0;
  }
  spin(0.002);
  return 1;
}

KEEP void in_handler(void) {
  sink++;
}
static void handler(int number) {
  (void)number;
  in_handler();
}

static ucontext_t main_context, coroutine_context;
KEEP long yields(long n) {
  sink++;
  swapcontext(&coroutine_context, &main_context);
  sink++;
  return n + 1;
}
static long coroutine_sum;
static void coroutine(void) {
  for (long i = 0; i < 100; i++) coroutine_sum += yields(i);
}
KEEP long resumes(long i) {
  sink += i;
  swapcontext(&main_context, &coroutine_context);
  sink++;
  return i;
}

KEEP long in_thread(long n) {
  sink = n;
  return n + 1;
}
static void* thread_body(void* argument) {
  long sum = 0;
  for (long i = 0; i < 100000; i++) sum += in_thread(i);
  *(long*)argument = sum;
  return NULL;
}
KEEP void exits_thread(void) {
  sink = 1;
  pthread_exit(NULL);
}
static void* exiting_body(void* argument) {
  (void)argument;
  exits_thread();
  return NULL;
}

KEEP int forks(void) {
  const pid_t child = fork();
  if (child == 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

int main(int count, char** arguments) {
  const char* only = count > 1 ? arguments[1] : "";
#define CASE(name) if (*only == '\0' || strcmp(only, name) == 0)
  long long sum = 0;
  CASE("plain") {
    for (long i = 0; i < 1000; i++) sum += leaf(i, 1, 2, 3, 4, 5, 6, 7);
    for (long i = 0; i < 100; i++) sum += large_result(i).part[5];
    double total = 0;
    for (int i = 0; i < 100; i++) total += floating(i, 1.5f, 0.25);
    printf("plain %lld %.2f\n", sum, total);
  }
  CASE("time") {
    const double from = now();
    for (int i = 0; i < 10; i++) spin(0.01);
    fprintf(stderr, "spin %.6f\n", now() - from);
  }
  CASE("recursion") printf("recursion %ld\n", recursive(1000));
  CASE("tail") printf("tail %ld %ld\n", even(20001), odd(10001));
  CASE("longjmp") {
    int caught = 0;
    for (int i = 0; i < 20; i++) caught += catches_jump(5);
    printf("longjmp %d\n", caught);
  }
  CASE("signals") {
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < 100; i++) raise(SIGALRM);
    printf("signals\n");
  }
  CASE("storm") {  // a signal every 50 us while calls go on: results only
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = handler;
    sigaction(SIGALRM, &action, NULL);
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, NULL, &timer);
    struct itimerspec every = {{0, 50000}, {0, 50000}};
    timer_settime(timer, 0, &every, NULL);
    for (long i = 0; i < 3000000; i++) sum += leaf(i, 1, 2, 3, 4, 5, 6, 7);
    timer_delete(timer);
    printf("storm %lld\n", sum);
  }
  CASE("coroutines") {
    const size_t bytes = 256 * 1024;
    getcontext(&coroutine_context);
    coroutine_context.uc_stack.ss_sp = malloc(bytes);
    coroutine_context.uc_stack.ss_size = bytes;
    coroutine_context.uc_link = &main_context;
    makecontext(&coroutine_context, coroutine, 0);
    for (long i = 0; i <= 100; i++) sum += resumes(i);
    printf("coroutines %lld %ld\n", sum, coroutine_sum);
  }
  CASE("threads") {
    enum { kThreads = 4 };
    pthread_t threads[kThreads];
    long sums[kThreads];
    for (int i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, thread_body, &sums[i]);
    long all = 0;
    for (int i = 0; i < kThreads; i++) {
      pthread_join(threads[i], NULL);
      all += sums[i];
    }
    for (int i = 0; i < 10; i++) {
      pthread_create(&threads[0], NULL, exiting_body, NULL);
      pthread_join(threads[0], NULL);
    }
    printf("threads %ld\n", all);
  }
  CASE("fork") {
    const int status = forks();
    if (status < 0) _exit(7);
    printf("fork %d\n", status);
  }
  return 0;
}
