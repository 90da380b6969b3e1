/* Messages in all ways that a capture window can cut through: each message has a size of its own on its channel, so
 * that two ends that are wrongly paired differ. windows [ROUNDS [FILE [scope]]]; any number of ranks from 2; no more
 * rounds once FILE exists, for which rank 0 looks every 64; scope: each rank calls MPI_Pcontrol when it likes. Wildcard
 * receives that stay open over many rounds, receives without wildcards behind them, persistent and non-blocking ones,
 * matched probes, Sendrecv, collectives of all kinds, communicators that are made, used and freed; what each rank sends
 * and takes part in is counted and printed. */
#include <unistd.h>

#include "counted.h"

enum { kMost = 4096, kAny = 9000, kTask = 9001 };

static int rank, size, right, left;
static char out[kMost], in[8][kMost];
static long sent, collectives;

/* The bytes of message number n on any channel. */
static int bytes_of(long n) {
  return (int)(1 + n * 7 % (kMost - 1));
}

static void ring_of(MPI_Comm comm, int tag, long n) {
  MPI_Request requests[4];
  CALL(MPI_Irecv, in[0], kMost, MPI_BYTE, left, tag, comm, &requests[0]);
  CALL(MPI_Irecv, in[1], kMost, MPI_BYTE, left, tag, comm, &requests[1]);
  CALL(MPI_Isend, out, bytes_of(2 * n), MPI_BYTE, right, tag, comm, &requests[2]);
  CALL(MPI_Isend, out, bytes_of(2 * n + 1), MPI_BYTE, right, tag, comm, &requests[3]);
  sent += 2;
  if (n % 3 == 0) {
    CALL(MPI_Waitall, 4, requests, MPI_STATUSES_IGNORE);
  } else if (n % 3 == 1) {
    for (int done = 0; done < 4;) {
      int some, which[4];
      CALL(MPI_Waitsome, 4, requests, &some, which, MPI_STATUSES_IGNORE);
      done += some;
    }
  } else {
    for (int i = 0; i < 4; ++i) CALL(MPI_Wait, &requests[i], MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const long rounds = argc > 1 ? atol(argv[1]) : 1500;
  const char* until = argc > 2 ? argv[2] : NULL;
  right = (rank + 1) % size;
  left = (rank + size - 1) % size;
  MPI_Request persistent[2], any;
  MPI_Send_init(out, 64, MPI_BYTE, right, 1, MPI_COMM_WORLD, &persistent[0]);
  MPI_Recv_init(in[2], 64, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &persistent[1]);
  /* Open over many rounds; what comes with this tag comes in an order that the channel gives. */
  MPI_Irecv(in[3], kMost, MPI_BYTE, MPI_ANY_SOURCE, kAny, MPI_COMM_WORLD, &any);
  unsigned random = argc > 3 ? (unsigned)rank + 1 : 0; /* 0: never */
  MPI_Comm made = MPI_COMM_NULL;
  long received_any = 0, sent_any = 0;
  for (long i = 0; i < rounds; ++i) {
    if (random != 0 && rand_r(&random) % 4 == 0) MPI_Pcontrol(rand_r(&random) % 2);
    ring_of(MPI_COMM_WORLD, 0, i);
    if (random != 0 && rand_r(&random) % 4 == 0) MPI_Pcontrol(rand_r(&random) % 2);
    MPI_Startall(2, persistent);
    sent += 1;
    MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
    MPI_Sendrecv(out, bytes_of(i), MPI_BYTE, right, 2, in[4], kMost, MPI_BYTE, i % 2 ? left : MPI_ANY_SOURCE, 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sent += 1;
    if (i % 5 == 0) { /* a wildcard, and behind it a receive that may take the next message of the same channel */
      MPI_Request two[2], sends[2];
      MPI_Irecv(in[5], kMost, MPI_BYTE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &two[0]);
      MPI_Irecv(in[6], kMost, MPI_BYTE, left, 3, MPI_COMM_WORLD, &two[1]);
      MPI_Isend(out, bytes_of(i), MPI_BYTE, right, 3, MPI_COMM_WORLD, &sends[0]);
      MPI_Isend(out, bytes_of(i + 1), MPI_BYTE, right, 3, MPI_COMM_WORLD, &sends[1]);
      sent += 2;
      MPI_Wait(&two[0], MPI_STATUS_IGNORE);
      MPI_Wait(&two[1], MPI_STATUS_IGNORE);
      MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
    }
    if (i % 7 == 0) {
      MPI_Send(out, bytes_of(sent_any++), MPI_BYTE, right, kAny, MPI_COMM_WORLD);
      sent += 1;
      MPI_Wait(&any, MPI_STATUS_IGNORE);
      ++received_any;
      MPI_Irecv(in[3], kMost, MPI_BYTE, MPI_ANY_SOURCE, kAny, MPI_COMM_WORLD, &any);
    }
    if (i % 4 == 0) {
      MPI_Request request;
      MPI_Message message;
      MPI_Status status;
      MPI_Isend(out, bytes_of(i), MPI_BYTE, right, kTask, MPI_COMM_WORLD, &request);
      sent += 1;
      MPI_Mprobe(i % 8 ? left : MPI_ANY_SOURCE, kTask, MPI_COMM_WORLD, &message, &status);
      MPI_Mrecv(in[7], kMost, MPI_BYTE, &message, MPI_STATUS_IGNORE);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (i % 6 == 0) {
      MPI_Request request;
      double value = rank, sum = 0;
      MPI_Iallreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
      MPI_Barrier(MPI_COMM_SELF);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      collectives += 3;
    }
    if (i % 50 == 0) {
      if (i % 100 == 0) {
        MPI_Comm_dup(MPI_COMM_WORLD, &made);
      } else {
        MPI_Request request;
        MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
      collectives += 1;
    }
    if (i % 50 < 10) ring_of(made, 4, i);
    if (i % 50 == 20) MPI_Comm_free(&made);
    if (until != NULL && i % 64 == 0) {
      int last = rank == 0 && access(until, F_OK) == 0;
      MPI_Bcast(&last, 1, MPI_INT, 0, MPI_COMM_WORLD);
      collectives += 1;
      if (last) break;
    }
  }
  MPI_Send(out, bytes_of(sent_any++), MPI_BYTE, right, kAny, MPI_COMM_WORLD);
  sent += 1;
  MPI_Wait(&any, MPI_STATUS_IGNORE);
  ++received_any;
  REQUIRE(received_any == sent_any);
  MPI_Request_free(&persistent[0]);
  MPI_Request_free(&persistent[1]);
  if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
  EVENTS("send", sent);
  EVENTS("coll", collectives);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
