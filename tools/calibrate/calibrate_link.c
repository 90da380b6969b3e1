/* See calibrate_link.h. */
#define _GNU_SOURCE
#include "tools/calibrate/calibrate_link.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kRounds = 3, kWindow = 4, kTag = 2, kReadyTag = 3, kHostBytes = 256, kMostPairs = 64 };
enum { kLeastMessageBytes = 1024, kMostMessageBytes = 1 << 24, kMostRoundMs = 3600000, kNapNs = 500000 };

struct Stream {
  double bytes;
  double seconds;
};

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Until all ranks are here, without taking processor time from those that still stream. */
static void meet(void) {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; !done;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    const struct timespec nap = {0, kNapNs};
    if (!done) nanosleep(&nap, NULL);
  }
}

/* Messages of no bytes, one for each receive that the partner has posted, say that it is over. */
static void send_stream(char* buffer, int bytes, int partner, double seconds) {
  MPI_Request window[kWindow];
  MPI_Recv(NULL, 0, MPI_BYTE, partner, kReadyTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const double end_s = now_s() + seconds;
  for (int i = 0; i < kWindow; ++i) {
    MPI_Isend(buffer, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD, &window[i]);
  }
  for (int open = kWindow; open > 0;) {
    int i = 0;
    MPI_Waitany(kWindow, window, &i, MPI_STATUS_IGNORE);
    if (now_s() < end_s) {
      MPI_Isend(buffer, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD, &window[i]);
    } else {
      --open;
    }
  }
  for (int i = 0; i < kWindow; ++i) MPI_Send(NULL, 0, MPI_BYTE, partner, kTag, MPI_COMM_WORLD);
}

static struct Stream receive_stream(char* buffer, int bytes, int partner) {
  struct Stream stream = {0, 0};
  MPI_Request window[kWindow];
  for (int i = 0; i < kWindow; ++i) {
    MPI_Irecv(buffer + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD, &window[i]);
  }
  MPI_Send(NULL, 0, MPI_BYTE, partner, kReadyTag, MPI_COMM_WORLD);
  const double start_s = now_s();
  for (int open = kWindow; open > 0;) {
    int i = 0;
    MPI_Status status;
    MPI_Waitany(kWindow, window, &i, &status);
    int received = 0;
    MPI_Get_count(&status, MPI_BYTE, &received);
    if (received > 0) {
      stream.bytes += received;
      stream.seconds = now_s() - start_s;
      MPI_Irecv(buffer + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD, &window[i]);
    } else {
      --open;
    }
  }
  return stream;
}

/* On rank 0: bytes per second of all streams together, from the start of all to the end of the last one. */
static double together(struct Stream mine, int ranks) {
  struct Stream all[2 * kMostPairs];
  MPI_Gather(&mine, 2, MPI_DOUBLE, all, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return 0;
  double bytes = 0;
  double seconds = 0;
  for (int i = 0; i < ranks; ++i) {
    bytes += all[i].bytes;
    if (all[i].seconds > seconds) seconds = all[i].seconds;
  }
  return seconds > 0 ? bytes / seconds : 0;
}

/* The rank's number among those of its node, and the partner with the same number on the other node. 0: the
 * ranks are not PAIRS on each of two nodes. */
static int find_partner(char hosts[][kHostBytes], int rank, int pairs, int* number, int* partner) {
  int here = 0;
  int there = 0;
  int other_node = -1; /* the first rank on it */
  *number = 0;
  for (int i = 0; i < 2 * pairs; ++i) {
    if (strcmp(hosts[i], hosts[rank]) == 0) {
      ++here;
      *number += i < rank;
      continue;
    }
    if (other_node < 0) other_node = i;
    if (strcmp(hosts[i], hosts[other_node]) != 0) return 0;
    ++there;
  }
  int before = 0;
  for (int i = 0; i < 2 * pairs; ++i) {
    if (strcmp(hosts[i], hosts[rank]) != 0 && before++ == *number) *partner = i;
  }
  return here == pairs && there == pairs;
}

static long number_of(const char* text, long least, long most) {
  char* end = NULL;
  const long value = strtol(text, &end, 10);
  return end != text && *end == '\0' && value >= least && value <= most ? value : -1;
}

int measure_link(int argc, char** argv) {
  const long round_ms = argc == 4 ? number_of(argv[1], 1, kMostRoundMs) : -1;
  const int pairs = argc == 4 ? (int)number_of(argv[2], 1, kMostPairs) : -1;
  const int bytes = argc == 4 ? (int)number_of(argv[3], kLeastMessageBytes, kMostMessageBytes) : -1;
  if (round_ms < 0 || pairs < 0 || bytes < 0) {
    fprintf(stderr, "lbf-calibrate-pingpong: link needs MILLISECONDS PAIRS BYTES (up to %d pairs, %d to %d bytes)\n",
            kMostPairs, kLeastMessageBytes, kMostMessageBytes);
    return 2;
  }
  /* Ranks that share processors take turns only when a waiting one lets go of its own. */
  cpu_set_t allowed;
  const int yield = sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) < pairs;
  if (yield) setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);

  MPI_Init(NULL, NULL);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2 * pairs) {
    if (rank == 0) {
      fprintf(stderr,
              "lbf-calibrate-pingpong: %d rank(s) in MPI_COMM_WORLD, must be %d: does srun start MPI "
              "programs here "
              "(srun --mpi=pmix)?\n",
              ranks, 2 * pairs);
    }
    MPI_Finalize();
    return 1;
  }
  static char hosts[2 * kMostPairs][kHostBytes];
  char host[kHostBytes] = "";
  gethostname(host, sizeof host - 1);
  MPI_Allgather(host, kHostBytes, MPI_CHAR, hosts, kHostBytes, MPI_CHAR, MPI_COMM_WORLD);
  int number = 0;
  int partner = rank;
  if (!find_partner(hosts, rank, pairs, &number, &partner)) {
    if (rank == 0) fprintf(stderr, "lbf-calibrate-pingpong: the ranks are not %d on each of two nodes\n", pairs);
    MPI_Finalize();
    return 1;
  }
  const int sends = strcmp(hosts[rank], hosts[0]) == 0;
  char* buffer = malloc((size_t)kWindow * (size_t)bytes);
  if (buffer == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  memset(buffer, 1, (size_t)kWindow * (size_t)bytes);
  if (rank == 0) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = '\0';
    printf("library %s\nnode 0 %s\nnode 1 %s\nyield %d\n", library, hosts[0], hosts[partner], yield);
  }

  /* Round -1 opens the connections and does not count. */
  for (int round = -1; round < kRounds; ++round) {
    for (int streams = round < 0 ? pairs : 1; streams <= pairs; streams += pairs > 1 ? pairs - 1 : 1) {
      struct Stream mine = {0, 0};
      meet();
      if (number < streams && sends) send_stream(buffer, bytes, partner, round < 0 ? 0 : 1e-3 * (double)round_ms);
      if (number < streams && !sends) mine = receive_stream(buffer, bytes, partner);
      meet();
      const double bytes_per_s = together(mine, ranks);
      if (rank == 0 && round >= 0) {
        printf("stream %d %.0f\n", streams, bytes_per_s);
        fflush(stdout);
      }
    }
  }
  if (rank == 0) printf("end\n");
  free(buffer);
  MPI_Finalize();
  return 0;
}
