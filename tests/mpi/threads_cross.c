/* MPI_THREAD_MULTIPLE, two processes, calls of a process's threads that wait for one another's:
 *  - kPairs threads send with MPI_Ssend to their opposite and back, so that sends and receives of other threads come
 * between;
 *  - a thread sends with MPI_Ssend to another one of its process;
 *  - a thread exchanges large messages with MPI_Sendrecv;
 *  - kProbers threads of rank 1 take their messages with MPI_Mprobe and MPI_Mrecv: the library uses handles again at
 * once;
 *  - a thread starts a buffered persistent send again and again: Open MPI gives it another handle;
 *  - kWindows threads, each in fences of a window of its own.
 * Prints what the events have to be, for check_order.py. */
#include <pthread.h>

#include "counted.h"

enum { kPairs = 3, kProbers = 2, kWindows = 2, kRounds = 200, kStarted = 40, kLarge = 100000, kBuffered = 20000 };
enum { kSelfTag = 50, kExchangeTag = 60, kProbeTag = 70, kBufferedTag = 80 };

static int rank;
static int ids[8] = {0, 1, 2, 3, 4, 5, 6, 7};
static MPI_Win windows[kWindows];

static void* play(void* argument) {
  const int tag = *(int*)argument;
  static char buffers[kPairs][kRounds + 1];
  char* const buffer = buffers[tag];
  for (int i = 1; i <= kRounds; ++i) {
    if (rank == 0) MPI_Ssend(buffer, i, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
    MPI_Recv(buffer, i, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Ssend(buffer, i, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
  }
  return NULL;
}

static void* tell(void* argument) {
  for (int i = 0; i < kRounds; ++i) MPI_Ssend(&i, 1, MPI_INT, rank, kSelfTag, MPI_COMM_WORLD);
  return argument;
}

static void* hear(void* argument) {
  for (int i = 0; i < kRounds; ++i) {
    int heard = -1;
    MPI_Recv(&heard, 1, MPI_INT, rank, kSelfTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    REQUIRE(heard == i);
  }
  return argument;
}

static void* exchange(void* argument) {
  static char out[kLarge], in[kLarge];
  for (int i = 0; i < kRounds; ++i) {
    MPI_Sendrecv(out, kLarge, MPI_BYTE, 1 - rank, kExchangeTag, in, kLarge, MPI_BYTE, 1 - rank, kExchangeTag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return argument;
}

static void* probe(void* argument) {
  const int tag = kProbeTag + *(int*)argument;
  for (int i = 0; i < kRounds; ++i) {
    int taken = -1;
    if (rank == 0) {
      MPI_Ssend(&i, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
      continue;
    }
    MPI_Message message;
    MPI_Mprobe(0, tag, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(&taken, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    REQUIRE(taken == i);
  }
  return argument;
}

static void* start(void* argument) {
  static char message[kBuffered];
  if (rank == 1) {
    for (int i = 0; i < kStarted; ++i) {
      MPI_Recv(message, kBuffered, MPI_BYTE, 0, kBufferedTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return argument;
  }
  MPI_Request request;
  MPI_Bsend_init(message, kBuffered, MPI_BYTE, 1, kBufferedTag, MPI_COMM_WORLD, &request);
  for (int i = 0; i < kStarted; ++i) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
  return argument;
}

static void* fence(void* argument) {
  for (int i = 0; i < kRounds; ++i) MPI_Win_fence(0, windows[*(int*)argument]);
  return argument;
}

int main(int argc, char** argv) {
  int provided, count = 0;
  pthread_t threads[kPairs + kProbers + kWindows + 4];
  static char memory[kWindows];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) return 77;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < kWindows; ++i) MPI_Win_create(&memory[i], 1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &windows[i]);
  const int size = (kBuffered + MPI_BSEND_OVERHEAD) * kStarted;
  void* buffer = malloc(size);
  MPI_Buffer_attach(buffer, size);
  const struct {
    void* (*run)(void*);
    int threads;
  } kinds[] = {{play, kPairs}, {tell, 1}, {hear, 1}, {exchange, 1}, {probe, kProbers}, {start, 1}, {fence, kWindows}};
  for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); ++kind) {
    for (int i = 0; i < kinds[kind].threads; ++i)
      REQUIRE(pthread_create(&threads[count++], NULL, kinds[kind].run, &ids[i]) == 0);
  }
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  MPI_Buffer_detach(&buffer, &provided);
  for (int i = 0; i < kWindows; ++i) MPI_Win_free(&windows[i]);
  EVENTS("send", kPairs * kRounds + kRounds + kRounds + (rank == 0 ? kProbers * kRounds : 0));
  EVENTS("recv", kPairs * kRounds + kRounds + (rank == 1 ? kStarted : 0));
  EVENTS("startRecv", kRounds + (rank == 1 ? kProbers * kRounds : 0));
  EVENTS("endRecv", kRounds + (rank == 1 ? kProbers * kRounds : 0));
  EVENTS("isend", rank == 0 ? kStarted : 0);
  EVENTS("wait", rank == 0 ? kStarted : 0);
  EVENTS("oneSidedSync", kWindows * (kRounds + 1));
  EVENTS("gap", 0);
  EVENTS("exit", 1);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
