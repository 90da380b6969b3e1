/* For the test programs: counts the program's own MPI calls and events, and prints them for ring_dump
 * --expect. */
#ifndef LBF_TESTS_MPI_COUNTED_H
#define LBF_TESTS_MPI_COUNTED_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxNames = 512 };
static struct {
  const char* name;
  long count;
} lbf_calls[kMaxNames], lbf_events[kMaxNames];

static void lbf_add(int events, const char* name, long n) {
  for (int i = 0; i < kMaxNames; ++i) {
    if (events ? lbf_events[i].name == NULL : lbf_calls[i].name == NULL) {
      if (events) {
        lbf_events[i].name = name;
      } else {
        lbf_calls[i].name = name;
      }
    }
    if (strcmp(events ? lbf_events[i].name : lbf_calls[i].name, name) == 0) {
      if (events) {
        lbf_events[i].count += n;
      } else {
        lbf_calls[i].count += n;
      }
      return;
    }
  }
  abort();
}

/* One counted MPI call, which must succeed. */
#define CALL(function, ...)                                                   \
  do {                                                                        \
    lbf_add(0, #function, 1);                                                 \
    const int rc_ = function(__VA_ARGS__);                                    \
    if (rc_ != MPI_SUCCESS) {                                                 \
      fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #function, rc_); \
      abort();                                                                \
    }                                                                         \
  } while (0)
/* n events of a kind (names as in ring_dump) are to be recorded on this rank. */
#define EVENTS(kind, n) lbf_add(1, kind, (n))
#define REQUIRE(condition)                                                    \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                \
    }                                                                         \
  } while (0)

static void lbf_print_expectations(int rank) {
  char text[65536];
  size_t used = 0;
  for (int i = 0; i < kMaxNames && lbf_calls[i].name != NULL; ++i) {
    used += (size_t)snprintf(text + used, sizeof(text) - used, "expect calls %d %s %ld\n", rank, lbf_calls[i].name,
                             lbf_calls[i].count);
  }
  for (int i = 0; i < kMaxNames && lbf_events[i].name != NULL; ++i) {
    used += (size_t)snprintf(text + used, sizeof(text) - used, "expect events %d %s %ld\n", rank, lbf_events[i].name,
                             lbf_events[i].count);
  }
  fputs(text, stdout);
  fflush(stdout);
}

#endif
