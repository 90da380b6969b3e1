/* Where the messages and operands of lbf-calibrate's measurements come from and go to: a ring of memory, each
 * piece behind the last one, so that the data come from outside the caches that the ring does not fit into.
 */
#ifndef LBF_TOOLS_CALIBRATE_RING_H
#define LBF_TOOLS_CALIBRATE_RING_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kCacheLineBytes = 64 };

struct Ring {
  char* memory;
  int64_t bytes;
  int64_t next;
  int turns; /* 0: all have the same buffer */
};

static inline int64_t whole_lines(int64_t bytes) {
  return (bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
}

/* Touched, so that no page is missing when it is used. Returns 0 where there is no memory. */
static inline int make_ring(struct Ring* ring, int64_t bytes, int turns) {
  ring->memory = (char*)aligned_alloc(kCacheLineBytes, (size_t)whole_lines(bytes));
  if (ring->memory == NULL) return 0;
  memset(ring->memory, 1, (size_t)bytes);
  ring->bytes = bytes;
  ring->next = 0;
  ring->turns = turns;
  return 1;
}

/* The buffer of the next piece of so many bytes. */
static inline char* take(struct Ring* ring, int64_t bytes) {
  if (ring->next + bytes > ring->bytes) ring->next = 0;
  char* buffer = ring->memory + ring->next;
  if (ring->turns) ring->next += whole_lines(bytes);
  return buffer;
}

#endif
