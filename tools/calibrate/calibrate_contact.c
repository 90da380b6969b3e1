/* See calibrate_contact.h. */
#define _GNU_SOURCE
#include "tools/calibrate/calibrate_contact.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/calibrate/calibrate_ranks.h"

enum { kTag = 4, kResultTag = 5, kExchanges = 20, kMostPairs = 16, kMostSamples = 2 * kMostPairs * kMostPairs };

/* What a rank measured; they go to rank 0 in the end. */
struct Samples {
  int64_t peer_ns;
  int64_t first_ns[kMostSamples];
  int count;
};

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The other side of one exchange: answers with when it was there, and when it had the message. */
static void answer(int partner) {
  for (int i = 0; i < kExchanges; ++i) {
    char nothing = 0;
    int64_t times_ns[2] = {now_ns(), 0};
    MPI_Recv(&nothing, 1, MPI_CHAR, partner, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    times_ns[1] = now_ns();
    MPI_Send(times_ns, 2, MPI_INT64_T, partner, kTag, MPI_COMM_WORLD);
  }
}

/* How much longer the first of the messages to `partner` took, one way, from when both ranks were there until
 * it was. The clocks of two nodes differ: by what the fastest of the later exchanges says. */
static int64_t contact_ns(int partner) {
  int64_t sent_ns[kExchanges];
  int64_t back_ns[kExchanges];
  int64_t there_ns[kExchanges][2];
  for (int i = 0; i < kExchanges; ++i) {
    const char nothing = 0;
    sent_ns[i] = now_ns();
    MPI_Send(&nothing, 1, MPI_CHAR, partner, kTag, MPI_COMM_WORLD);
    MPI_Recv(there_ns[i], 2, MPI_INT64_T, partner, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    back_ns[i] = now_ns();
  }
  int fastest = 1;
  for (int i = 2; i < kExchanges; ++i) {
    if (back_ns[i] - sent_ns[i] < back_ns[fastest] - sent_ns[fastest]) fastest = i;
  }
  const int64_t half_ns = (back_ns[fastest] - sent_ns[fastest]) / 2;
  const int64_t ahead_ns = there_ns[fastest][1] - (sent_ns[fastest] + half_ns);
  const int64_t entered_ns = there_ns[0][0] - ahead_ns;
  const int64_t both_ns = entered_ns > sent_ns[0] ? entered_ns : sent_ns[0];
  return there_ns[0][1] - ahead_ns - both_ns - half_ns;
}

/* Passed on among the ranks of the first node: whoever has it makes its contacts. */
static void pass_turn(const struct Ranks* ranks, int from, int to) {
  char nothing = 0;
  if (ranks->number == from) MPI_Send(&nothing, 1, MPI_CHAR, ranks->here[to], kTag, MPI_COMM_WORLD);
  if (ranks->number == to) {
    MPI_Recv(&nothing, 1, MPI_CHAR, ranks->here[from], kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void contact_others(const struct Ranks* ranks, int pairs, struct Samples* samples) {
  for (int i = 0; i < pairs; ++i) {
    if (ranks->first_node && i > 0) pass_turn(ranks, i - 1, i);
    for (int j = 0; j < pairs; ++j) {
      if (i == j) continue;
      if (ranks->first_node && ranks->number == i) {
        samples->first_ns[samples->count++] = contact_ns(ranks->there[j]);
      } else if (!ranks->first_node && ranks->number == j) {
        answer(ranks->there[i]);
      }
    }
  }
}

/* Those that no turn was passed between: 0 and 2, 3 ... */
static void contact_own_node(const struct Ranks* ranks, int pairs, struct Samples* samples) {
  for (int j = 2; ranks->first_node && j < pairs; ++j) {
    if (ranks->number == 0) samples->first_ns[samples->count++] = contact_ns(ranks->here[j]);
    if (ranks->number == j) answer(ranks->here[0]);
  }
}

static void print_samples(const struct Samples* samples, int others) {
  printf("peer %lld\n", (long long)samples->peer_ns);
  for (int i = 0; i < samples->count; ++i) {
    printf("first %s %lld\n", i < others ? "remote" : "self", (long long)samples->first_ns[i]);
  }
}

int measure_contact(int argc, char** argv) {
  const int pairs = argc == 2 ? atoi(argv[1]) : 0;
  if (pairs < 2 || pairs > kMostPairs) {
    fprintf(stderr, "lbf-calibrate-pingpong: contact needs PAIRS (2 to %d)\n", kMostPairs);
    return 2;
  }
  yield_if_shared(pairs);
  MPI_Init(NULL, NULL);
  struct Ranks ranks;
  /* By number: finding out who is where would be a first contact. */
  guess_ranks(&ranks, pairs);
  static struct Samples samples;
  const int partner = ranks.there[ranks.number];
  if (ranks.first_node) {
    samples.peer_ns = contact_ns(partner);
  } else {
    answer(partner);
  }
  contact_others(&ranks, pairs, &samples);
  contact_own_node(&ranks, pairs, &samples);
  if (!are_as_guessed(&ranks, pairs)) {
    MPI_Finalize();
    return 1;
  }
  if (ranks.rank == 0) {
    print_samples(&samples, pairs - 1);
    for (int i = 1; i < pairs; ++i) {
      MPI_Recv(&samples, sizeof samples, MPI_BYTE, ranks.here[i], kResultTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      print_samples(&samples, pairs - 1);
    }
    printf("end\n");
    fflush(stdout);
  } else if (ranks.first_node) {
    MPI_Send(&samples, sizeof samples, MPI_BYTE, 0, kResultTag, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
