/* A C program whose MPI calls are known: every call is counted by hand beside it, and each rank prints its counts as
 * "count RANK NAME NUMBER". The cluster tests compare that with what lbf counted.
 *
 * usage: steps STEPS USLEEP [MODE]
 *   STEPS   iterations, each with Sendrecv, Isend, Irecv and Waitall around a ring; every 10th an Allreduce
 *   USLEEP  pause per iteration, microseconds
 *   MODE    ok: exit status 0 · exit3: rank 0 ends with status 3 · abort: rank 1 calls MPI_Abort(7) half-way
 *           kill: rank 1 gets SIGKILL half-way · segv: rank 1 gets SIGSEGV half-way
 *           exit7: every rank calls exit(7) instead of MPI_Finalize
 *           catch: SIGTERM and SIGUSR2 are caught; 20 iterations after all ranks have agreed that one of them was, the
 * program ends as ever. A second Allreduce beside the first one; each rank prints "caught RANK SIGNAL", 0 for none
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void catch_signal(int number) {
  caught = number;
}

int main(int argc, char** argv) {
  enum { kCount = 512 };
  double out[kCount], in[kCount], sum = 0;
  int steps = argc > 1 ? atoi(argv[1]) : 100;
  int pause_us = argc > 2 ? atoi(argv[2]) : 0;
  const char* mode = argc > 3 ? argv[3] : "ok";
  int rank, size, step;
  long sendrecv = 0, isend = 0, irecv = 0, waitall = 0, allreduce = 0, barrier = 0;
  memset(out, 0, sizeof out);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int catches = strcmp(mode, "catch") == 0;
  if (catches) {
    signal(SIGTERM, catch_signal);
    signal(SIGUSR2, catch_signal);
  }
  int agreed = 0;
  const int right = (rank + 1) % size;
  const int left = (rank + size - 1) % size;
  for (step = 0; step < steps; ++step) {
    MPI_Request requests[2];
    if (step == steps / 2 && rank == 1) {
      fflush(stdout);
      if (strcmp(mode, "abort") == 0) {
        MPI_Abort(MPI_COMM_WORLD, 7);
        sleep(20); /* MPICH 5's returns under PMI-2, and Slurm ends the ranks a moment later */
      }
      if (strcmp(mode, "kill") == 0) raise(SIGKILL);
      if (strcmp(mode, "segv") == 0) raise(SIGSEGV);
    }
    out[0] = rank + step;
    MPI_Sendrecv(out, 8, MPI_DOUBLE, right, 1, in, 8, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ++sendrecv;
    MPI_Irecv(in, kCount, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[0]);
    ++irecv;
    MPI_Isend(out, kCount, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[1]);
    ++isend;
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    ++waitall;
    sum += in[0];
    if (step % 10 == 0) {
      double total = 0;
      MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      ++allreduce;
      if (catches && !agreed) {
        const int mine = caught;
        MPI_Allreduce(&mine, &agreed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        ++allreduce;
        if (agreed && step + 20 < steps) steps = step + 20;
      }
    }
    if (pause_us > 0) usleep((unsigned)pause_us);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  ++barrier;
  printf("count %d MPI_Sendrecv %ld\ncount %d MPI_Isend %ld\ncount %d MPI_Irecv %ld\n", rank, sendrecv, rank, isend,
         rank, irecv);
  printf("count %d MPI_Waitall %ld\ncount %d MPI_Allreduce %ld\ncount %d MPI_Barrier %ld\nsum %d %.1f\n", rank, waitall,
         rank, allreduce, rank, barrier, rank, sum);
  if (catches) printf("caught %d %d\n", rank, (int)caught);
  fflush(stdout);  // also where MPI_Finalize does not return
  if (strcmp(mode, "exit7") == 0) exit(7);
  MPI_Finalize();
  return rank == 0 && strcmp(mode, "exit3") == 0 ? 3 : 0;
}
