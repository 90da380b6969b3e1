/* The extremes of bench/cost: as many MPI calls as the machine makes, for a given time.

   usage: storm KIND SECONDS [SILENT_SECONDS]
   KIND: pingpong  8 bytes there and back between ranks 0 and 1
         alltoall  one byte from each rank to each
         comms     a duplicate of the world and one of its halves, made and freed; used: a barrier on each
         threads   4 threads of each rank (MPI_THREAD_MULTIPLE), each sending 8 bytes to itself on a communicator of its
   own: Irecv, Send, Wait, none of which waits for another thread. (Threads that wait are no storm: Open MPI 4.1 lets
   one of them wait for all, which gives a thousand rounds a second.) self      one such thread, without
   MPI_THREAD_MULTIPLE: a storm also where ranks have to share a processor First each rank computes for SILENT_SECONDS
   without a call. Then it storms until SECONDS after the start. Rank 0 prints a line for every half second since the
   start: the seconds, the rounds done so far by all of its threads. Rounds are timed by the system's clock, not by
   MPI's: a call of its own would be captured, too. Two ranks that take turns also print behind it how long a cache line
   takes between their processors and back, in nanoseconds, without MPI: what the machine's host makes of its
   processors, whatever is captured. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kThreads = 4, kMarks = 4096, kStep = 256 }; /* kStep: rounds between two looks at the clock */
enum { kGoOn, kLast, kProbe };                     /* what rank 0 says in a round's first byte */
enum { kGroups = 21, kBounces = 500 };             /* of the cache line; some 2 ms */

static double start_s, end_s;
static int rank, size;

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Rounds by half second; one thread's. */
struct marks {
  long at[kMarks];
  double bounce_ns[kMarks];
  int count;
};

/* Whether a half second has ended. */
static int mark(struct marks* marks, long rounds, double at_s) {
  const int before = marks->count;
  while (marks->count < kMarks && at_s - start_s >= 0.5 * (marks->count + 1)) marks->at[marks->count++] = rounds;
  return marks->count > before;
}

/* Two lines: what one rank writes and the other waits for. */
static struct {
  _Alignas(128) atomic_long ping;
  _Alignas(128) atomic_long pong;
} * line;

static void share_line(void) {
  char name[64];
  int owner = (int)getpid();
  MPI_Bcast(&owner, 1, MPI_INT, 0, MPI_COMM_WORLD);
  snprintf(name, sizeof name, "/lbf-storm-%d", owner);
  const int fd = shm_open(name, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, sizeof *line) != 0 ||
      (line = mmap(NULL, sizeof *line, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED) {
    perror("storm: shared memory");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  close(fd);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) shm_unlink(name);
}

static int by_size(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

/* The median of the groups: whoever takes a processor meanwhile is in one of them. */
static void bounce(struct marks* marks) {
  static long at;
  double group_ns[kGroups];
  if (line == NULL) return; /* not two ranks */
  for (int group = 0; group < kGroups; ++group) {
    const double begin_s = now_s();
    for (int i = 0; i < kBounces; ++i) {
      ++at;
      if (rank == 0) atomic_store_explicit(&line->ping, at, memory_order_release);
      while (atomic_load_explicit(rank == 0 ? &line->pong : &line->ping, memory_order_acquire) != at) {
      }
      if (rank != 0) atomic_store_explicit(&line->pong, at, memory_order_release);
    }
    group_ns[group] = 1e9 * (now_s() - begin_s) / kBounces;
  }
  qsort(group_ns, kGroups, sizeof group_ns[0], by_size);
  if (marks->count > 0) marks->bounce_ns[marks->count - 1] = group_ns[kGroups / 2];
}

/* Rank 0 says with each message whether it is the last. */
static void ping_pong(struct marks* marks) {
  char buffer[8] = {0};
  for (long round = 0;; ++round) {
    if (rank == 0) {
      if (round % kStep == 0) {
        const double at_s = now_s();
        buffer[0] = mark(marks, round, at_s) ? kProbe : kGoOn;
        if (at_s >= end_s) buffer[0] = kLast;
      }
      MPI_Send(buffer, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(buffer, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(buffer, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    if (buffer[0] == kLast) return;
    if (buffer[0] == kProbe) {
      bounce(marks);
      buffer[0] = kGoOn;
    }
  }
}

static void all_to_all(struct marks* marks) {
  char* send = calloc((size_t)size, 1);
  char* receive = calloc((size_t)size, 1);
  for (long round = 0;; ++round) {
    if (rank == 0 && round % kStep == 0) {
      const double at_s = now_s();
      memset(send, at_s >= end_s ? kLast : mark(marks, round, at_s) ? kProbe : kGoOn, (size_t)size);
    }
    MPI_Alltoall(send, 1, MPI_BYTE, receive, 1, MPI_BYTE, MPI_COMM_WORLD);
    if (receive[0] == kLast) break;
    if (receive[0] != kProbe) continue;
    bounce(marks);
    memset(send, kGoOn, (size_t)size);
  }
  free(send);
  free(receive);
}

static void make_and_free(struct marks* marks, int used) {
  int last = 0;
  for (long round = 0; !last; ++round) {
    MPI_Comm twin, half;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    if (used) MPI_Barrier(twin);
    MPI_Comm_free(&twin);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    if (used) MPI_Barrier(half);
    MPI_Comm_free(&half);
    if (round % (kStep / 16) != 0) continue;
    const double at_s = now_s();
    mark(marks, round, at_s);
    last = at_s >= end_s;
    MPI_Bcast(&last, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
}

static struct marks all_marks[kThreads];
static MPI_Comm own_comm[kThreads];
static void* thread_main(void* number) {
  const size_t i = (size_t)number;
  char out[8] = {0}, in[8];
  for (long round = 0;; ++round) {
    if (round % kStep == 0) {
      const double at_s = now_s();
      mark(&all_marks[i], round, at_s);
      if (at_s >= end_s) return NULL;
    }
    MPI_Request request;
    MPI_Irecv(in, 8, MPI_BYTE, 0, 0, own_comm[i], &request);
    MPI_Send(out, 8, MPI_BYTE, 0, 0, own_comm[i]);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: storm pingpong|alltoall|comms|used|threads|self SECONDS [SILENT_SECONDS]\n");
    return 2;
  }
  const int alone = strcmp(argv[1], "self") == 0;
  const int threads = alone ? 1 : strcmp(argv[1], "threads") == 0 ? kThreads : 0; /* that send to themselves */
  const int collective = strcmp(argv[1], "alltoall") == 0;
  const int makes = strcmp(argv[1], "comms") == 0;
  const int uses = strcmp(argv[1], "used") == 0;
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (threads > 1 && provided < MPI_THREAD_MULTIPLE) {
    fprintf(stderr, "storm: this MPI has no MPI_THREAD_MULTIPLE\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int i = 0; i < threads; ++i) MPI_Comm_dup(MPI_COMM_SELF, &own_comm[i]);
  if (!threads && size == 2) share_line();
  MPI_Barrier(MPI_COMM_WORLD);
  start_s = now_s();
  end_s = start_s + atof(argv[2]);
  const double silent_s = argc > 3 ? atof(argv[3]) : 0;
  while (now_s() - start_s < silent_s) {
  }
  if (alone) {
    thread_main(NULL);
  } else if (threads) {
    pthread_t handles[kThreads];
    for (size_t i = 0; i < kThreads; ++i) pthread_create(&handles[i], NULL, thread_main, (void*)i);
    for (int i = 0; i < kThreads; ++i) pthread_join(handles[i], NULL);
  } else if (collective) {
    all_to_all(&all_marks[0]);
  } else if (makes || uses) {
    make_and_free(&all_marks[0], uses);
  } else if (rank < 2) {
    ping_pong(&all_marks[0]);
  }
  if (rank == 0) {
    const int marked = threads ? threads : 1;
    int count = kMarks;
    for (int i = 0; i < marked; ++i) count = all_marks[i].count < count ? all_marks[i].count : count;
    for (int m = 0; m < count; ++m) {
      long rounds = 0;
      for (int i = 0; i < marked; ++i) rounds += all_marks[i].at[m];
      printf("rounds %.1f %ld", 0.5 * (m + 1), rounds);
      if (all_marks[0].bounce_ns[m] > 0) printf(" %.1f", all_marks[0].bounce_ns[m]);
      printf("\n");
    }
  }
  for (int i = 0; i < threads; ++i) MPI_Comm_free(&own_comm[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
