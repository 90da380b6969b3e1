/* behaviour WHAT: one way for a program to behave; run_case says what has to come out. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "counted.h"

static double cpu_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void compute(double seconds) {
  const double end = cpu_s() + seconds;
  while (cpu_s() < end) {
  }
}

/* What the hypervisor took of all processors so far. */
static double stolen_s(void) {
  long long of[8] = {0};
  FILE* stat = fopen("/proc/stat", "r");
  if (stat == NULL) return 0;
  const int read = fscanf(stat, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", of, of + 1, of + 2, of + 3, of + 4,
                          of + 5, of + 6, of + 7);
  fclose(stat);
  return read == 8 ? (double)of[7] / (double)sysconf(_SC_CLK_TCK) : 0;
}

/* Long gaps that compute and long gaps that sleep, after many short calls; then polls that find nothing. */
static void times(void) {
  double cpu = 0, slept = 0, stolen = -stolen_s();
  long polls = 0;
  int flag;
  for (int i = 0; i < 20; ++i) {
    for (int k = 0; k < 50; ++k) MPI_Barrier(MPI_COMM_SELF);
    const double before = cpu_s();
    compute(0.005);
    cpu += cpu_s() - before;
    MPI_Barrier(MPI_COMM_SELF);
    struct timespec a, b, nap = {0, 5000000};
    clock_gettime(CLOCK_MONOTONIC, &a);
    nanosleep(&nap, NULL);
    clock_gettime(CLOCK_MONOTONIC, &b);
    slept += (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
  }
  for (; polls < 1000; ++polls) MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
  stolen += stolen_s();
  printf("told cpu %g\ntold slept %g\ntold asked %g\ntold polls %ld\ntold stolen %g\n", cpu, slept, 20 * 0.005, polls,
         stolen);
}

static void messages(int rank, int n) {
  int x = 0;
  for (int i = 0; i < n; ++i) {
    if (rank == 0) CALL(MPI_Send, &x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) CALL(MPI_Recv, &x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  EVENTS(rank == 0 ? "send" : "recv", n);
}

static void errors(int rank) {
  int x = 0, one = 1;
  MPI_Request request;
  CALL(MPI_Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int codes[8], n = 0;
  lbf_add(0, "MPI_Send", 1);
  codes[n++] = MPI_Send(&x, 1, MPI_INT, 12345, 0, MPI_COMM_WORLD);
  lbf_add(0, "MPI_Recv", 1);
  codes[n++] = MPI_Recv(&x, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  lbf_add(0, "MPI_Isend", 1);
  codes[n++] = MPI_Isend(&x, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD, &request);
  lbf_add(0, "MPI_Bcast", 1);
  codes[n++] = MPI_Bcast(&x, 1, MPI_INT, -7, MPI_COMM_WORLD);
  lbf_add(0, "MPI_Reduce_scatter", 1);
  codes[n++] = MPI_Reduce_scatter(&x, &x, &one, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD);
  for (int i = 0; i < n; ++i) {
    int class_of = -1;
    MPI_Error_class(codes[i], &class_of);
    REQUIRE(codes[i] != MPI_SUCCESS);
    printf("error %d %d %d\n", rank, i, class_of);
  }
  EVENTS("isend", 0);
  EVENTS("coll", 0);
}

/* As a tool may have it: MPI_Pcontrol's further arguments are the tool's business. */
static void phases(int rank) {
  int at = 5;
  CALL(MPI_Pcontrol, 1);
  for (; at < 7; ++at) CALL(MPI_Pcontrol, 2, "main loop", -3, 4000000000L, &at, 1000000L * rank);
  EVENTS("phase", 3);
}

int main(int argc, char** argv) {
  int rank;
  const char* what = argc > 1 ? argv[1] : "plain";
  CALL(MPI_Init, &argc, &argv);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  if (strcmp(what, "times") == 0) times();
  if (strcmp(what, "errors") == 0) errors(rank);
  if (strcmp(what, "phases") == 0) phases(rank);
  if (strcmp(what, "plain") != 0 && strcmp(what, "times") != 0) messages(rank, 100);
  if (strcmp(what, "plain") == 0 && rank == 0) printf("plain\n");
  if (strcmp(what, "kill") == 0 && rank == 0) kill(getpid(), SIGKILL);
  if (strcmp(what, "abort") == 0 && rank == 0) MPI_Abort(MPI_COMM_WORLD, 3);
  if (strcmp(what, "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      int n = 0;
      for (int i = 0; i < 1000; ++i) MPI_Comm_size(MPI_COMM_WORLD, &n);
      MPI_Type_size(MPI_INT, &n);
      _exit(n == 4 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    REQUIRE(status == 0);
    EVENTS("exit", 1);
    lbf_add(0, "MPI_Comm_size", 0);
    messages(rank, 10);
  }
  if (strcmp(what, "kill") == 0 || strcmp(what, "abort") == 0) sleep(30);
  if (strcmp(what, "fork") == 0 || strcmp(what, "errors") == 0 || strcmp(what, "phases") == 0)
    lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
