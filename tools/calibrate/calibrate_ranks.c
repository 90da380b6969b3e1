/* See calibrate_ranks.h. */
#define _GNU_SOURCE
#include "tools/calibrate/calibrate_ranks.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kHostBytes = 256 };

void yield_if_shared(int ranks) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) < ranks)
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
}

void guess_ranks(struct Ranks* ranks, int each) {
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
  ranks->number = ranks->rank / 2;
  ranks->first_node = ranks->rank % 2 == 0;
  for (int i = 0; i < each; ++i) {
    ranks->here[i] = 2 * i + ranks->rank % 2;
    ranks->there[i] = 2 * i + 1 - ranks->rank % 2;
  }
}

int are_as_guessed(const struct Ranks* ranks, int each) {
  static char hosts[2 * kMostRanksOfNode][kHostBytes];
  char host[kHostBytes] = "";
  int count = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  int right = count == 2 * each;
  if (right) {
    gethostname(host, sizeof host - 1);
    MPI_Allgather(host, kHostBytes, MPI_CHAR, hosts, kHostBytes, MPI_CHAR, MPI_COMM_WORLD);
    right = strcmp(hosts[0], hosts[1]) != 0;
    for (int i = 2; i < count; ++i) right = right && strcmp(hosts[i], hosts[i % 2]) == 0;
  }
  if (!right && ranks->rank == 0) {
    fprintf(stderr,
            "lbf-calibrate-pingpong: the ranks are not %d on each of two nodes, in turn (srun "
            "--distribution=cyclic): does --srun bring options that place tasks?\n",
            each);
  }
  return right;
}
