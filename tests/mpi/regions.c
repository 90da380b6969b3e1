/* Parallel regions of every kind that has an entry of its own, each behind an MPI_Pcontrol with its number
 * (regions.py). What the regions compute is the same with and without the capture: "result" lines. */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <time.h>

enum {
  kPlain = 1,
  kDynamic,
  kGuided,
  kRuntime,
  kReduction,
  kTaskReduction,
  kSections,
  kNested,
  kTasks,
  kIf0,
  kTeams,
  kUneven,
  kMany,
  kCopyPrivate,
  kManyVariables,
  kPhases,
  kEnd
};

static int rank;

static double cpu_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* So much processor time of this thread. */
static long spin(double ms) {
  const double end = cpu_ms() + ms;
  while (cpu_ms() < end) {
  }
  return 1;
}

static void end_stage(int stage, long result) {
  MPI_Pcontrol(stage);
  printf("result %d %d %ld\n", rank, stage, result);
}

/* The entry of a task, as gcc's code calls it with `if(0)` and data that have a copy function: LLVM's runtime runs it
 * on the data themselves, GNU's on a copy. */
void start_task(void (*body)(void*), void* data, void (*copy)(void*, void*), long bytes, long align, _Bool is_deferred,
                unsigned flags, void** depend, int priority, void* detach) __asm__("GOMP_task");
static long task_data;
static void copy_task(void* to, void* from) {
  *(long*)to = *(const long*)from;
}
static void run_task(void* data) {
  task_data = *(const long*)data;
}
static void task_at_once(void) {
  long data = 7;
  start_task(run_task, &data, copy_task, sizeof(data), sizeof(data), 0, 0, NULL, 0, NULL);
}

/* More than a stack, which the runtime copies for the task. */
static struct { char bytes[12 << 20]; } large;
static __attribute__((noinline)) void start_large_task(long* sum) {
#pragma omp task firstprivate(large)
  {
#pragma omp atomic
    *sum += large.bytes[sizeof(large) / 2];
  }
}

static long tasks(void) {
  long sum = 0;
#pragma omp parallel
  {
#pragma omp master
    {
      task_at_once();
      start_large_task(&sum);
    }
#pragma omp single
    for (long i = 0; i < 8; ++i) {
      const long cube = i * i * i;
#pragma omp task shared(sum) firstprivate(cube)
      {
        spin(1);
#pragma omp atomic
        sum += cube;
      }
    }
  }
  return sum * 1000 + task_data;
}

static long nested(void) {
  long sum = 0;
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2) reduction(+ : sum)
  {
    long inner = 0;
#pragma omp parallel num_threads(2) reduction(+ : inner)
    inner += spin(3);
    sum += inner;
  }
  omp_set_max_active_levels(1);
  return sum;
}

/* The first thread works, the other one waits inside the region. */
static long uneven(void) {
  long sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
  {
    if (omp_get_thread_num() == 0) sum += spin(8);
#pragma omp barrier
    sum += 1;
  }
  return sum;
}

/* The same many times in one region: reading the clock at each barrier takes too much of the time. */
static long phases(void) {
  long sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
  for (int i = 0; i < 5000; ++i) {
    if (omp_get_thread_num() == 0) {
      for (volatile int turn = 0; turn < 1000; turn = turn + 1) {
      }
    }
#pragma omp barrier
    sum += 1;
  }
  return sum;
}

static long many_variables(void) {
  long a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9, j = 10, k = 11, l = 12, m = 13;
#pragma omp parallel num_threads(2)
  {
#pragma omp atomic
    a += b + c + d + e + f + g + h + i + j + k + l + m;
  }
  b = c = d = e = f = g = h = i = j = k = l = m = 0;
  return a + b + c + d + e + f + g + h + i + j + k + l + m;
}

int main(int argc, char** argv) {
  long sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  large.bytes[sizeof(large) / 2] = 3;
  for (int round = 0; round < 2; ++round) { /* the second time it is known how long they are */
    sum = 0;
#pragma omp parallel reduction(+ : sum)
    sum += spin(4);
    end_stage(kPlain, sum);

    sum = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : sum)
    for (int i = 0; i < 8; ++i) sum += i * spin(1);
    end_stage(kDynamic, sum);

    sum = 0;
#pragma omp parallel for schedule(guided) reduction(+ : sum)
    for (int i = 0; i < 8; ++i) sum += i * spin(1);
    end_stage(kGuided, sum);

    sum = 0;
#pragma omp parallel for schedule(runtime) reduction(+ : sum)
    for (int i = 0; i < 8; ++i) sum += i * spin(1);
    end_stage(kRuntime, sum);

    sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int i = 0; i < 8; ++i) sum += i * spin(1);
    end_stage(kReduction, sum);

    sum = 0;
#if _OPENMP >= 201811
#pragma omp parallel reduction(task, + : sum)
    {
#pragma omp single
      for (int i = 0; i < 8; ++i) {
#pragma omp task in_reduction(+ : sum)
        sum += i * spin(1);
      }
    }
#else
#pragma omp parallel reduction(+ : sum)
    if (omp_get_thread_num() == 0) sum += 28 * spin(4);
#endif
    end_stage(kTaskReduction, sum);

    long left = 0, right = 0;
#pragma omp parallel sections
    {
#pragma omp section
      left = spin(4);
#pragma omp section
      right = 2 * spin(4);
    }
    end_stage(kSections, left + right);

    end_stage(kNested, nested());
    end_stage(kTasks, tasks());

    sum = 0;
#pragma omp parallel if (0) reduction(+ : sum)
    sum += spin(2);
    end_stage(kIf0, sum);

    sum = 0;
#if _OPENMP >= 201811
#pragma omp teams num_teams(2) reduction(+ : sum)
#pragma omp parallel reduction(+ : sum) num_threads(2)
    sum += spin(2);
#endif
    end_stage(kTeams, sum > 0);

    end_stage(kUneven, uneven());

    sum = 0;
    for (int i = 0; i < 10000; ++i) {
#pragma omp parallel reduction(+ : sum)
      sum += omp_get_thread_num();
    }
    end_stage(kMany, sum);

    long shared_by_all = 0;
    sum = 0;
#pragma omp parallel private(shared_by_all) reduction(+ : sum)
    {
#pragma omp single copyprivate(shared_by_all)
      shared_by_all = 7 * spin(1);
      sum += shared_by_all;
    }
    end_stage(kCopyPrivate, sum);

    end_stage(kManyVariables, many_variables());
    end_stage(kPhases, phases());
  }
  MPI_Finalize();
  return 0;
}
