/* See calibrate_cores.h. */
#define _GNU_SOURCE
#include "tools/calibrate/calibrate_cores.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kTextBytes = 16384, kMostCaches = 16 };

static int read_text(const char* path, char* text) {
  FILE* const file = fopen(path, "r");
  if (file == NULL) return 0;
  const int read = fgets(text, kTextBytes, file) != NULL;
  fclose(file);
  return read;
}

/* "0-3,8": each number with its place. */
static int read_list(const char* path, int* numbers, int most) {
  static char text[kTextBytes];
  if (!read_text(path, text)) return 0;
  int count = 0;
  for (char* at = text; *at >= '0' && *at <= '9';) {
    const long first = strtol(at, &at, 10);
    const long last = *at == '-' ? strtol(at + 1, &at, 10) : first;
    for (long number = first; number <= last && count < most; ++number) numbers[count++] = (int)number;
    if (*at == ',') ++at;
  }
  return count;
}

static int is_in(const cpu_set_t* set, size_t bytes, int cpu) {
  return CPU_ISSET_S((size_t)cpu, bytes, set);
}

/* Whether no hardware thread before this one, of those that may be used, has the same core. `set` NULL: of all. */
static int is_first_of_core(int cpu, const cpu_set_t* set, size_t bytes) {
  char path[128];
  int siblings[64];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
  const int count = read_list(path, siblings, 64);
  for (int i = 0; i < count && siblings[i] < cpu; ++i) {
    if (set == NULL || is_in(set, bytes, siblings[i])) return 0;
  }
  return 1;
}

static int64_t largest_cache(int cpu) {
  static char text[kTextBytes];
  int64_t largest = 0;
  for (int i = 0; i < kMostCaches; ++i) {
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/size", cpu, i);
    if (!read_text(path, text)) break;
    char* unit = NULL;
    const int64_t number = strtoll(text, &unit, 10);
    const int64_t bytes = *unit == 'K' ? number << 10 : *unit == 'M' ? number << 20 : number;
    if (bytes > largest) largest = bytes;
  }
  return largest;
}

static void take_domain(const char* path, const cpu_set_t* set, size_t bytes, struct Cores* cores) {
  static int cpus[kMostCores];
  static struct Cores domain;
  const int count = read_list(path, cpus, kMostCores);
  if (count == 0) return;
  memset(&domain, 0, sizeof domain);
  for (int i = 0; i < count; ++i) {
    domain.online += is_first_of_core(cpus[i], NULL, 0);
    if (is_in(set, bytes, cpus[i]) && is_first_of_core(cpus[i], set, bytes)) domain.cpu[domain.count++] = cpus[i];
  }
  domain.domains = cores->domains + 1;
  if (domain.count > cores->count) {
    *cores = domain;
  } else {
    cores->domains = domain.domains;
  }
}

int find_cores(struct Cores* cores) {
  static const char kFolder[] = "/sys/devices/system/node";
  memset(cores, 0, sizeof *cores);
  cpu_set_t* const set = CPU_ALLOC(kMostCores);
  const size_t bytes = CPU_ALLOC_SIZE(kMostCores);
  if (set == NULL || sched_getaffinity(0, bytes, set) != 0) return 0;
  DIR* const folder = opendir(kFolder);
  for (const struct dirent* entry = NULL; folder != NULL && (entry = readdir(folder)) != NULL;) {
    char path[512];
    if (strncmp(entry->d_name, "node", 4) != 0) continue;
    snprintf(path, sizeof path, "%s/%s/cpulist", kFolder, entry->d_name);
    take_domain(path, set, bytes, cores);
  }
  if (folder != NULL) closedir(folder);
  if (cores->domains == 0) take_domain("/sys/devices/system/cpu/online", set, bytes, cores);
  if (cores->count > 0) cores->cache_bytes = largest_cache(cores->cpu[0]);
  CPU_FREE(set);
  return cores->count > 0;
}

int pin_to(int cpu) {
  cpu_set_t* const set = CPU_ALLOC(kMostCores);
  const size_t bytes = CPU_ALLOC_SIZE(kMostCores);
  if (set == NULL) return 0;
  CPU_ZERO_S(bytes, set);
  CPU_SET_S((size_t)cpu, bytes, set);
  const int pinned = sched_setaffinity(0, bytes, set) == 0;
  CPU_FREE(set);
  return pinned;
}
