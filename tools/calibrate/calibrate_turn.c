/* See calibrate_turn.h. */
#define _GNU_SOURCE
#include "tools/calibrate/calibrate_turn.h"

#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/calibrate/calibrate_ranks.h"

enum { kRanks = 4, kTag = 6, kRounds = 15, kMostExchanges = 5000, kFewestExchanges = 20 };
enum { kBurst = 8 };
enum { kPlayNs = 20000000, kSettleNs = 3000000 };
enum { kSleepNs = kPlayNs + 3 * kSettleNs, kSleepBothNs = 2 * kPlayNs + 3 * kSettleNs };

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void sleep_ns(int64_t ns) {
  const struct timespec time = {ns / 1000000000, ns % 1000000000};
  if (ns > 0) nanosleep(&time, NULL);
}

/* All ranks of a node on the first processor that the first of them may use, whatever they were bound to. */
static int share_one_processor(void) {
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  cpu_set_t allowed;
  int cpu = 0;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &allowed)) ++cpu;
  }
  MPI_Bcast(&cpu, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  int shared = sched_setaffinity(0, sizeof one, &one) == 0;
  MPI_Allreduce(MPI_IN_PLACE, &shared, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return shared;
}

static int compare(const void* a, const void* b) {
  const int64_t left = *(const int64_t*)a;
  const int64_t right = *(const int64_t*)b;
  return (left > right) - (left < right);
}

/* Receives `count` messages of one byte; returns the first. */
static char receive(int from, int count) {
  char first = 0;
  for (int i = 0; i < count; ++i) {
    char byte = 0;
    MPI_Recv(&byte, 1, MPI_CHAR, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (i == 0) first = byte;
  }
  return first;
}

static void send(int to, int count, char byte) {
  for (int i = 0; i < count; ++i) MPI_Send(&byte, 1, MPI_CHAR, to, kTag, MPI_COMM_WORLD);
}

/* Median half round trip of `burst` messages to `partner`, who goes on until a message says that it is over.
 */
static int64_t play(int partner, int burst) {
  static int64_t half_ns[kMostExchanges];
  const int64_t end_ns = now_ns() + kPlayNs;
  int count = 0;
  for (char go_on = 1; go_on;) {
    const int64_t start_ns = now_ns();
    go_on = count < kFewestExchanges || (count + 1 < kMostExchanges && start_ns < end_ns);
    send(partner, burst, go_on);
    receive(partner, burst);
    half_ns[count++] = (now_ns() - start_ns) / 2;
  }
  qsort(half_ns, (size_t)count, sizeof half_ns[0], compare);
  return half_ns[count / 2];
}

static void play_along(int burst) {
  for (char go_on = 1; go_on;) {
    go_on = receive(0, burst);
    send(0, burst, go_on);
  }
}

/* Sleeps so long as rank 0 says, and waits for the next message; a negative time is the end. */
static void stand_by(void) {
  for (int64_t ns = 0; ns >= 0; sleep_ns(ns)) {
    MPI_Recv(&ns, 1, MPI_INT64_T, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void tell_bystanders(int first, int64_t ns) {
  for (int rank = first; rank < kRanks; ++rank) MPI_Send(&ns, 1, MPI_INT64_T, rank, kTag, MPI_COMM_WORLD);
}

/* Rank 0 with rank 1; ranks 2 and 3 stand by. */
static void measure_turns(int bystanders_of_node) {
  for (int round = 0; round < kRounds; ++round) {
    tell_bystanders(2, kSleepNs);
    const int64_t told_ns = now_ns();
    sleep_ns(kSettleNs);
    const int64_t alone_ns = play(1, 1);
    const int64_t over_ns = now_ns();
    sleep_ns(told_ns + kSleepNs + kSettleNs - over_ns);
    const int64_t beside_ns = play(1, 1);
    /* Where it took so long that the bystanders woke up, both would be the same. */
    if (over_ns < told_ns + kSleepNs) printf("turn %lld\n", (long long)((beside_ns - alone_ns) / bystanders_of_node));
    fflush(stdout);
  }
}

/* Rank 0 with `partner`, of the same node; ranks from `bystander` on stand by. A half round trip is one
 * switch from one to the other, however many messages there are. */
static void measure_switches(int partner, int bystander) {
  for (int round = 0; round < kRounds; ++round) {
    tell_bystanders(bystander, kSleepBothNs);
    const int64_t told_ns = now_ns();
    sleep_ns(kSettleNs);
    const int64_t one_ns = play(partner, 1);
    const int64_t burst_ns = play(partner, kBurst);
    const int64_t over_ns = now_ns();
    if (over_ns < told_ns + kSleepBothNs)
      printf("switch %lld\n", (long long)(one_ns - (burst_ns - one_ns) / (kBurst - 1)));
    fflush(stdout);
    sleep_ns(told_ns + kSleepBothNs + kSettleNs - over_ns);
  }
}

int measure_turn(int argc, char** argv) {
  const int remote = argc == 2 && strcmp(argv[1], "remote") == 0;
  if (!remote && (argc != 2 || strcmp(argv[1], "self") != 0)) {
    fprintf(stderr, "lbf-calibrate-pingpong: turn needs self or remote\n");
    return 2;
  }
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
  MPI_Init(NULL, NULL);
  int rank = 0;
  int count = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  struct Ranks ranks;
  guess_ranks(&ranks, kRanks / 2);
  int ready = count == kRanks && (!remote || are_as_guessed(&ranks, kRanks / 2));
  if (count != kRanks && rank == 0) fprintf(stderr, "lbf-calibrate-pingpong: turn needs %d ranks\n", kRanks);
  if (ready && !share_one_processor()) {
    if (rank == 0) fprintf(stderr, "lbf-calibrate-pingpong: the ranks of a node may not share a processor\n");
    ready = 0;
  }
  if (!ready) {
    MPI_Finalize();
    return 1;
  }
  /* All connections that there will be: who has some polls them. */
  char out[kRanks] = {0};
  char in[kRanks];
  MPI_Alltoall(out, 1, MPI_CHAR, in, 1, MPI_CHAR, MPI_COMM_WORLD);
  /* Who plays with rank 0 on its own node: ranks go round the nodes. */
  const int partner = remote ? 2 : 1;
  if (rank == 0) {
    measure_turns(remote ? (kRanks - 2) / 2 : kRanks - 2);
    if (remote) MPI_Send(&(int64_t){-1}, 1, MPI_INT64_T, partner, kTag, MPI_COMM_WORLD);
    measure_switches(partner, remote ? partner + 1 : 2);
    tell_bystanders(remote ? partner + 1 : 2, -1);
    printf("end\n");
    fflush(stdout);
  } else {
    if (rank >= 2) stand_by();
    for (int i = 0; rank == 1 && i < 2 * kRounds; ++i) play_along(1);
    for (int i = 0; rank == partner && i < kRounds; ++i) {
      play_along(1);
      play_along(kBurst);
    }
  }
  MPI_Finalize();
  return 0;
}
