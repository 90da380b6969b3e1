/* What the generated conformance programs share; generate.py says what they are for. */
#ifndef LBF_TESTS_MPI_CONFORMANCE_H
#define LBF_TESTS_MPI_CONFORMANCE_H

#include "counted.h"

enum { kBytes = 1 << 16 };
/* Not every program uses all of them. */
#define MAY_BE_UNUSED __attribute__((unused))
static int rank, size;
MAY_BE_UNUSED static int errors_handled;
static const char* case_name;
/* 16-byte aligned: any basic datatype may lie in them. */
static long double send_space[kBytes / sizeof(long double)], recv_space[kBytes / sizeof(long double)];
static char *const out = (char*)send_space, *const in = (char*)recv_space;
static MPI_Comm halves, cart, graph, adjacent, inter;
static MPI_Datatype vector, structure;

/* What a case found, the same bare and captured. */
#define RESULT(...)                         \
  do {                                      \
    printf("case %s %d ", case_name, rank); \
    printf(__VA_ARGS__);                    \
    printf("\n");                           \
  } while (0)
/* A counted call that may fail: its error class is the result. */
#define CODE(function, ...)                         \
  do {                                              \
    lbf_add(0, #function, 1);                       \
    const int code_ = function(__VA_ARGS__);        \
    int class_ = -1;                                \
    PMPI_Error_class(code_, &class_);               \
    RESULT("%s gives class %d", #function, class_); \
  } while (0)
/* The same for a call that is repeated until it found something. */
#define CODE_IF_DONE(function, done, ...)                                               \
  do {                                                                                  \
    lbf_add(0, #function, 1);                                                           \
    const int code_ = function(__VA_ARGS__);                                            \
    int class_ = -1;                                                                    \
    PMPI_Error_class(code_, &class_);                                                   \
    if ((done) || code_ != MPI_SUCCESS) RESULT("%s gives class %d", #function, class_); \
  } while (0)

MAY_BE_UNUSED static unsigned long hash(const void* memory, size_t bytes) {
  unsigned long h = 14695981039346656037UL;
  for (size_t i = 0; i < bytes; ++i) h = (h ^ ((const unsigned char*)memory)[i]) * 1099511628211UL;
  return h;
}
MAY_BE_UNUSED static void fill(unsigned seed) {
  for (int i = 0; i < kBytes; ++i) {
    out[i] = (char)((i * 7 + rank * 13 + (int)seed) % 5);
    in[i] = 0;
  }
}
/* Reductions: small whole numbers, so that the order of additions does not matter. */
MAY_BE_UNUSED static void fill_numbers(int is_double, int n) {
  for (int i = 0; i < n; ++i) {
    if (is_double) {
      ((double*)out)[i] = rank + i % 7;
      ((double*)in)[i] = rank * 3 + i;
    } else {
      ((int*)out)[i] = rank + i % 7;
      ((int*)in)[i] = rank * 3 + i;
    }
  }
}
MAY_BE_UNUSED static void status_result(const MPI_Status* status, MPI_Datatype type) {
  int count = -1;
  PMPI_Get_count(status, type, &count);
  RESULT("source %d tag %d count %d", status->MPI_SOURCE, status->MPI_TAG, count);
}
#endif
