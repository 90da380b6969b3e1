/* Preloaded into collective_monitor under MPICH (device ch4:ucx): writes down every message that MPICH hands
 * to UCX, as lines "CASE PEER BYTES" in $LBF_SENDS.RANK. PEER is a rank of the world.
 *
 * Run with MPIR_CVAR_NOLOCAL=1: every rank is on a node of its own then, nothing passes through shared
 * memory. Which endpoint belongs to which rank is learnt after MPI_Init from one message to each. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int learning_peer = -1;
static void** endpoint_of_rank;
static int world_size;
static int current_case = -1;
static FILE* output;

static void sent(void* endpoint, long long bytes) {
  if (learning_peer >= 0) {
    endpoint_of_rank[learning_peer] = endpoint;
    return;
  }
  if (output == NULL) return;
  int peer = -1;
  for (int rank = 0; rank < world_size; ++rank) {
    if (endpoint_of_rank[rank] == endpoint) peer = rank;
  }
  fprintf(output, "%d %d %lld\n", current_case, peer, bytes);
}

/* The beginning of ucp_request_param_t. */
struct request_parameter {
  uint32_t fields, flags;
  void* request;
  void (*callback)(void);
  uint64_t datatype;
};
enum { kFieldDatatype = 1 << 3, kContiguousShift = 3, kKindMask = 7 };

/* -1: a datatype whose elements only MPICH knows. */
static long long bytes_of(size_t count, const struct request_parameter* parameter) {
  if ((parameter->fields & kFieldDatatype) == 0) return (long long)count;
  if ((parameter->datatype & kKindMask) != 0) return -1;
  return (long long)(count * (parameter->datatype >> kContiguousShift));
}

/* Called by collective_monitor before each case. */
void collective_monitor_case(int number) {
  current_case = number;
}

/* UCX's own, of which only what is passed on matters here. */
typedef void* (*send_function)(void*, const void*, size_t, uint64_t, const void*);
void* ucp_tag_send_nbx(void* endpoint, const void* buffer, size_t count, uint64_t tag, const void* parameter) {
  sent(endpoint, bytes_of(count, parameter));
  return ((send_function)dlsym(RTLD_NEXT, "ucp_tag_send_nbx"))(endpoint, buffer, count, tag, parameter);
}
void* ucp_tag_send_sync_nbx(void* endpoint, const void* buffer, size_t count, uint64_t tag, const void* parameter) {
  sent(endpoint, bytes_of(count, parameter));
  return ((send_function)dlsym(RTLD_NEXT, "ucp_tag_send_sync_nbx"))(endpoint, buffer, count, tag, parameter);
}

int MPI_Init(int* argc, char*** argv) {
  const int status = PMPI_Init(argc, argv);
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
  endpoint_of_rank = calloc((size_t)world_size, sizeof(void*));
  for (int peer = 0; peer < world_size; ++peer) {
    if (peer == rank) continue;
    char byte = 0;
    char received = 0;
    MPI_Request request;
    PMPI_Irecv(&received, 1, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &request);
    learning_peer = peer;
    PMPI_Send(&byte, 1, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
    learning_peer = -1;
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  PMPI_Barrier(MPI_COMM_WORLD);
  const char* prefix = getenv("LBF_SENDS");
  if (prefix != NULL) {
    char name[4096];
    snprintf(name, sizeof(name), "%s.%d", prefix, rank);
    output = fopen(name, "w");
  }
  return status;
}

int MPI_Finalize(void) {
  current_case = -1;
  PMPI_Barrier(MPI_COMM_WORLD);
  if (output != NULL) fclose(output);
  output = NULL;
  return PMPI_Finalize();
}
