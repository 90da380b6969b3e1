/* lbf-calibrate-node: what the processors of a node share: memory bandwidth, and the start of teams of threads. Without
 * MPI and without an OpenMP runtime of its own. lbf-calibrate starts it through srun and reads its lines
 * (calibrate_node_table.h). */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/calibrate/calibrate_bandwidth.h"
#include "tools/calibrate/calibrate_team.h"

static void print_processor(void) {
  char line[512];
  FILE* const file = fopen("/proc/cpuinfo", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    char* const colon = strstr(line, ": ");
    if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
    printf("processor %s", colon + 2);
    break;
  }
  if (file != NULL) fclose(file);
}

int main(void) {
  static struct Cores cores;
  if (!find_cores(&cores)) {
    fprintf(stderr, "lbf-calibrate-node: no processor is known: is /sys mounted on the node?\n");
    return 1;
  }
  cpu_set_t allowed;
  const int processors = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : cores.count;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  printf("node 0 %s\n", host);
  print_processor();
  printf("domains %d %d %d\n", cores.domains, cores.count, cores.online);
  fflush(stdout);
  int status = measure_bandwidth(&cores);
  if (status == 0) status = measure_teams(processors);
  if (status == 0) printf("end\n");
  fflush(stdout);
  return status;
}
