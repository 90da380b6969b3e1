/* A stand-in for a library of MPI's standard ABI: the functions that generate_stand_in.py makes, over the Open MPI that
 * is installed, which it opens for itself. It is no real one: what a real library does is shown by ./check
 * --slurm 26.05.
 *
 * STAND_IN_STATUS: where it keeps the count of a status: "open-mpi" or "mpich", as their libraries of Debian sid do;
 * "inverted": nowhere as it is; "mixed": as the one in what MPI_Status_set_* set, as the other in messages' statuses.
 * STAND_IN_CODES: "mpich": its error codes are no classes. STAND_IN_ABI: what MPI_Abi_get_version says.
 * STAND_IN_MOST_ASKED: a process that calls MPI_Get_count_c more often is aborted.
 * STAND_IN_VERSION: what MPI_Get_library_version says in the place of Open MPI's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int source, tag, error, internal[5];
} AbiStatus;

static void* real_library;
static void fill_tables(void); /* predefined_Comm and so on */
static inline int is_set(const char* variable, const char* value) {
  const char* const text = getenv(variable);
  return text != 0 && strcmp(text, value) == 0;
}
static inline void* real_object(const char* name) {
  void* const object = real_library != 0 ? dlsym(real_library, name) : 0;
  if (object == 0) fprintf(stderr, "stand-in: no %s: %s\n", name, dlerror()), abort();
  return object;
}
static inline void* real_function(const char* name) {
  if (real_library == 0) {
    real_library = dlopen(STAND_IN_FOR, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    fill_tables();
  }
  return real_object(name);
}
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, object) ((type)real_object(#object))
#define REAL(name) ((__typeof__(&name))real_function("P" #name))

/* Predefined handles; {number, address} */
typedef struct {
  uintptr_t abi;
  void* real;
} Predefined;

static inline void* to_real(const Predefined* table, void* abi) {
  if ((uintptr_t)abi >= 0x1000 || abi == 0) return abi;
  for (; table->abi != 0; ++table) {
    if (table->abi == (uintptr_t)abi) return table->real;
  }
  return 0;
}
static inline void* from_real(const Predefined* table, void* real) {
  for (; table->abi != 0; ++table) {
    if (table->real == real) return (void*)table->abi;
  }
  return real;
}

static inline int to_real_rank(int rank) {
  return rank == -3 ? MPI_PROC_NULL : rank == -1 ? MPI_ANY_SOURCE : rank == -4 ? MPI_ROOT : rank;
}
static inline int from_real_rank(int rank) {
  return rank == MPI_PROC_NULL ? -3 : rank == MPI_ANY_SOURCE ? -1 : rank;
}
static inline int to_real_tag(int tag) {
  return tag == -2 ? MPI_ANY_TAG : tag;
}
static inline const void* to_real_buffer(const void* buffer) {
  return (uintptr_t)buffer == 1 ? MPI_IN_PLACE : buffer;
}
static inline const int* to_real_weights(const int* weights) {
  return (uintptr_t)weights == 10 ? MPI_UNWEIGHTED : (uintptr_t)weights == 11 ? MPI_WEIGHTS_EMPTY : weights;
}
static inline int to_real_assert(int flags) {
  return ((flags & 1024) ? MPI_MODE_NOCHECK : 0) | ((flags & 2048) ? MPI_MODE_NOPRECEDE : 0) |
         ((flags & 4096) ? MPI_MODE_NOPUT : 0) | ((flags & 8192) ? MPI_MODE_NOSTORE : 0) |
         ((flags & 16384) ? MPI_MODE_NOSUCCEED : 0);
}
static inline int to_real_lock(int type) {
  return type == 301 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
}
static inline int to_real_level(int level) {
  return level / 1024 == 4 ? MPI_THREAD_MULTIPLE : level / 1024;
}
static inline int from_real_level(int level) {
  return level == MPI_THREAD_MULTIPLE ? 4096 : level * 1024;
}
static inline int from_real_topology(int kind) {
  return kind == MPI_CART ? 211 : kind == MPI_GRAPH ? 212 : kind == MPI_DIST_GRAPH ? 213 : kind;
}
static inline int from_real_comparison(int result) {
  return 201 + (result == MPI_CONGRUENT ? 1 : result == MPI_SIMILAR ? 2 : result == MPI_UNEQUAL ? 3 : 0);
}
static inline int from_real_class(int code) {
  return code == MPI_ERR_IN_STATUS ? 19 : code == MPI_ERR_PENDING ? 18 : code;
}
static inline int from_real_code(int code) {
  return from_real_class(code) + (code != MPI_SUCCESS && is_set("STAND_IN_CODES", "mpich") ? 0x2a00 : 0);
}

enum { kAsMpich = 77 };
static inline void from_real_status(AbiStatus* abi, const MPI_Status* real, int is_set_by_program) {
  const int cancelled = real->_cancelled;
  const uint64_t bytes = real->_ucount;
  abi->source = from_real_rank(real->MPI_SOURCE);
  abi->tag = real->MPI_TAG == MPI_ANY_TAG ? -2 : real->MPI_TAG;
  abi->error = from_real_code(real->MPI_ERROR);
  memset(abi->internal, 0, sizeof(abi->internal));
  if (is_set("STAND_IN_STATUS", "mpich") || (is_set("STAND_IN_STATUS", "mixed") && !is_set_by_program)) {
    const uint64_t words = (bytes & 0xffffffff) | bytes >> 32 << 33 | (uint64_t)(cancelled != 0) << 32;
    memcpy(&abi->internal[0], &words, sizeof(words));
    abi->internal[4] = kAsMpich;
  } else {
    const uint64_t kept = is_set("STAND_IN_STATUS", "inverted") ? ~bytes : bytes;
    abi->internal[0] = cancelled;
    memcpy(&abi->internal[1], &kept, sizeof(kept));
  }
}
static inline void to_real_status(MPI_Status* real, const AbiStatus* abi) {
  memset(real, 0, sizeof(*real));
  real->MPI_SOURCE = to_real_rank(abi->source);
  real->MPI_TAG = to_real_tag(abi->tag);
  if (abi->internal[4] == kAsMpich) {
    uint64_t words;
    memcpy(&words, &abi->internal[0], sizeof(words));
    real->_cancelled = words >> 32 & 1;
    real->_ucount = (words & 0xffffffff) | words >> 33 << 32;
  } else {
    uint64_t bytes;
    memcpy(&bytes, &abi->internal[1], sizeof(bytes));
    real->_cancelled = abi->internal[0];
    real->_ucount = is_set("STAND_IN_STATUS", "inverted") ? ~bytes : bytes;
  }
}
