/* Hundreds of receives, tested and waited for together in all ways, mostly before any of them is over. Between two
 * tests they change places, and what is over is replaced by a new receive, which gets the old one's handle from the
 * library. Each message has a tag of its own: a receive's end that is taken for another one's shows. polling threads:
 * while another thread takes the handles that the library lets go of. */
#include <pthread.h>

#include "counted.h"

enum { kOpen = 300, kTotal = 3000, kPart = 20, kOtherTag = 20000, kOthers = 3000 };

static int in[kOpen], tag_of[kOpen]; /* by buffer */
static MPI_Request requests[kOpen];
static int buffer_of[kOpen]; /* by place in REQUESTS */
static int posted, finished;

static void post(int place) {
  const int buffer = buffer_of[place];
  tag_of[buffer] = posted++;
  MPI_Irecv(&in[buffer], 1, MPI_INT, 1, tag_of[buffer], MPI_COMM_WORLD, &requests[place]);
}

static void over(int place) {
  const int buffer = buffer_of[place];
  REQUIRE(tag_of[buffer] >= 0 && in[buffer] == tag_of[buffer]);
  tag_of[buffer] = -1;
  ++finished;
  if (posted < kTotal) post(place);
}

static void swap(int a, int b) {
  const MPI_Request request = requests[a];
  const int buffer = buffer_of[a];
  requests[a] = requests[b];
  buffer_of[a] = buffer_of[b];
  requests[b] = request;
  buffer_of[b] = buffer;
}

static void receive_all(void) {
  static int which[kOpen];
  static MPI_Status statuses[kOpen];
  for (int i = 0; i < kOpen; ++i) {
    buffer_of[i] = i;
    post(i);
  }
  for (int turn = 0; finished < kTotal; ++turn) {
    const int part = turn % (kOpen - kPart);
    int count = 0, index = MPI_UNDEFINED, flag = 0;
    swap(turn * 7 % kOpen, turn * 31 % kOpen);
    switch (turn % 8) {
      case 0:
        MPI_Waitany(kOpen, requests, &index, MPI_STATUS_IGNORE);
        break;
      case 1:
        MPI_Waitsome(kOpen, requests, &count, which, statuses);
        for (int i = 0; i < count; ++i) REQUIRE(statuses[i].MPI_TAG == tag_of[buffer_of[which[i]]]);
        break;
      case 2:
        MPI_Testsome(kOpen, requests, &count, which, MPI_STATUSES_IGNORE);
        break;
      case 3:
        MPI_Testall(kPart, requests + part, &flag, MPI_STATUSES_IGNORE);
        for (int i = 0; flag && i < kPart; ++i) {
          if (tag_of[buffer_of[part + i]] >= 0) which[count++] = part + i;
        }
        break;
      case 4:
        if (turn % 200 != 4) break;
        for (int i = 0; i < kPart; ++i) {
          if (tag_of[buffer_of[part + i]] >= 0) which[count++] = part + i;
        }
        MPI_Waitall(kPart, requests + part, MPI_STATUSES_IGNORE);
        break;
      default:
        MPI_Testany(kOpen, requests, &index, &flag, MPI_STATUS_IGNORE);
    }
    if (index != MPI_UNDEFINED && index >= 0) over(index);
    for (int i = 0; i < count; ++i) over(which[i]);
  }
}

/* Rank 1, in another order than they were posted in; one at a time is under way, so that most tests find nothing. */
static void send_all(void) {
  for (int i = 0; i < kTotal; ++i) {
    int tag = i / 10 * 10 + (i * 3 + 7) % 10;
    MPI_Send(&tag, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
  }
}

static void* other(void* rank) {
  for (int i = 0; i < kOthers; ++i) {
    int got = -1;
    MPI_Request request;
    if (*(const int*)rank == 0) {
      MPI_Irecv(&got, 1, MPI_INT, 1, kOtherTag + i % 100, MPI_COMM_WORLD, &request);
    } else {
      MPI_Isend(&i, 1, MPI_INT, 0, kOtherTag + i % 100, MPI_COMM_WORLD, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    REQUIRE(got == -1 || got == i);
  }
  return rank;
}

int main(int argc, char** argv) {
  int rank, provided;
  pthread_t thread;
  const int threads = argc > 1 && strcmp(argv[1], "threads") == 0;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (threads && provided < MPI_THREAD_MULTIPLE) {
    if (rank == 0) puts("no MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return 0;
  }
  if (threads) pthread_create(&thread, NULL, other, &rank);
  if (rank == 0) {
    receive_all();
    EVENTS("startRecv", kTotal + (threads ? kOthers : 0));
    EVENTS("endRecv", kTotal + (threads ? kOthers : 0));
  } else {
    send_all();
  }
  if (threads) pthread_join(thread, NULL);
  EVENTS("unmodelled", 0);
  EVENTS("gap", 0);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
