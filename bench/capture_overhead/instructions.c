/* How many instructions the capture adds to an MPI call: a program of one process for callgrind, which `count` runs
 * bare and under capture. Each kind of call is made once to warm up and N times between two dumps of callgrind's
 * counters. instructions [N [multiple]]; multiple: in MPI_THREAD_MULTIPLE, though by one thread alone. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <valgrind/callgrind.h>

enum { kRequests = 8 };

static double in[kRequests], out[kRequests];
static int flag;
static MPI_Request pending;

static void send_recv(void) {
  MPI_Request request;
  MPI_Irecv(in, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, &request);
  MPI_Send(out, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void isend_recv(void) {
  MPI_Request request;
  MPI_Isend(out, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, &request);
  MPI_Recv(in, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void sendrecv(void) {
  MPI_Sendrecv(out, 1, MPI_DOUBLE, 0, 0, in, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}
static void halo(void) {
  MPI_Request requests[2 * kRequests];
  for (int k = 0; k < kRequests; ++k) MPI_Irecv(&in[k], 1, MPI_DOUBLE, 0, k, MPI_COMM_SELF, &requests[k]);
  for (int k = 0; k < kRequests; ++k) MPI_Isend(&out[k], 1, MPI_DOUBLE, 0, k, MPI_COMM_SELF, &requests[kRequests + k]);
  MPI_Waitall(2 * kRequests, requests, MPI_STATUSES_IGNORE);
}
static void barrier(void) {
  MPI_Barrier(MPI_COMM_SELF);
}
static void allreduce(void) {
  MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
}
static void test(void) {
  MPI_Test(&pending, &flag, MPI_STATUS_IGNORE);
}
static void iprobe(void) {
  MPI_Iprobe(0, 77, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}
static void local(void) {
  MPI_Comm_size(MPI_COMM_WORLD, &flag);
}

#define MEASURE(kind)                    \
  do {                                   \
    for (long i = 0; i < 8; ++i) kind(); \
    CALLGRIND_ZERO_STATS;                \
    for (long i = 0; i < n; ++i) kind(); \
    CALLGRIND_DUMP_STATS_AT(#kind);      \
  } while (0)

int main(int argc, char** argv) {
  const long n = argc > 1 ? atol(argv[1]) : 1000;
  const struct timespec nap = {0, 300000000}; /* time for the drain to order another mode */
  const int level = argc > 2 && strcmp(argv[2], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  int provided;
  MPI_Init_thread(&argc, &argv, level, &provided);
  if (provided < level) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Irecv(in, 1, MPI_DOUBLE, 0, 99, MPI_COMM_SELF, &pending);
  nanosleep(&nap, NULL);
  MPI_Barrier(MPI_COMM_SELF);
  MEASURE(send_recv);
  MEASURE(isend_recv);
  MEASURE(sendrecv);
  MEASURE(halo);
  MEASURE(barrier);
  MEASURE(allreduce);
  MEASURE(test);
  MEASURE(iprobe);
  MEASURE(local);
  MPI_Send(out, 1, MPI_DOUBLE, 0, 99, MPI_COMM_SELF);
  MPI_Wait(&pending, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
