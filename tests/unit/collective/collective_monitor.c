/* Runs collectives, whose messages somebody else counts: openmpi_sends.c or mpich_sends.c.
 *
 * Arguments: cases OP:BYTES:ROOT:FLAGS, OP a number of lbf's CollectiveOp, FLAGS a sum of 1 (non-blocking), 2
 * (operation not commutative), 4 (MPI_IN_PLACE), 8 (intercommunicator: even world ranks against odd ones), 16 (counts
 * of vector operations all alike), 32 (on a periodic cartesian communicator of two rows). ROOT of operation 22 says
 * which communicator is made, as CommCreation. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kNonblocking = 1, kNotCommutative = 2, kInPlace = 4, kInter = 8, kAlike = 16, kCart = 32 };

static void combine(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)in;
  (void)inout;
  (void)length;
  (void)type;
}

/* Defined by what is linked or preloaded to count messages, if it wants to know which case begins. */
__attribute__((weak)) void collective_monitor_case(int number);

/* The same counts as in library_case.cpp. */
static int counts_alike = 0;
static int uneven(int rank, int count) {
  if (counts_alike) return count;
  return rank % 4 == 2 ? 0 : (rank % 3 + 1) * count;
}

/* How a communicator is made, by the numbers of lbf's CommCreation. */
static void create(int how, MPI_Comm comm, int inter, MPI_Request* request, int nonblocking) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group group;
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Comm_group(comm, &group);
  int dims[1] = {size}, periods[1] = {1};
  int* index = calloc(size, sizeof(int));
  int* edges = calloc(size, sizeof(int));
  for (int i = 0; i < size; ++i) {
    index[i] = i + 1;
    edges[i] = i;
  }
  switch (how) {
    case 1:
      if (nonblocking) {
        MPI_Comm_idup(comm, &made, request);
      } else {
        MPI_Comm_dup(comm, &made);
      }
      break;
    case 2:
      MPI_Comm_create(comm, group, &made);
      break;
    case 3:
      MPI_Comm_create_group(comm, group, 5, &made);
      break;
    case 4:
      MPI_Comm_split(comm, inter ? 0 : rank % 2, rank, &made);
      break;
    case 5:
      MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
      break;
    case 6:
      MPI_Cart_create(comm, 1, dims, periods, 0, &made);
      break;
    case 8:
      MPI_Graph_create(comm, size, index, edges, 0, &made);
      break;
    case 10:
      MPI_Dist_graph_create_adjacent(comm, 1, edges, index, 1, edges, index, MPI_INFO_NULL, 0, &made);
      break;
    case 12:
      MPI_Intercomm_merge(comm, 0, &made);
      break;
    default:
      MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Group_free(&group);
  free(index);
  free(edges);
  if (nonblocking) MPI_Wait(request, MPI_STATUS_IGNORE);
  if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
}

int main(int argc, char** argv) {
  int world_rank, world_size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Op ordered;
  MPI_Op_create(combine, 0, &ordered);
  MPI_Comm half, inter = MPI_COMM_NULL, cart = MPI_COMM_NULL;
  int flags_of_all = 0;
  for (int i = 1; i < argc; ++i) {
    int flags = 0;
    if (sscanf(argv[i], "%*d:%*d:%*d:%d", &flags) != 1) MPI_Abort(MPI_COMM_WORLD, 2);
    flags_of_all |= flags;
  }
  if ((flags_of_all & kInter) != 0) {
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, world_rank % 2 == 0 ? 1 : 0, 1, &inter);
  }
  if ((flags_of_all & kCart) != 0) { /* rows of two: the neighbour above is the one below */
    int dims[2] = {2, world_size / 2}, periods[2] = {1, 1};
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
  }

  for (int i = 1; i < argc; ++i) {
    int op = 0, bytes = 0, root = 0, flags = 0;
    if (sscanf(argv[i], "%d:%d:%d:%d", &op, &bytes, &root, &flags) != 4) MPI_Abort(MPI_COMM_WORLD, 2);
    if (collective_monitor_case != NULL) collective_monitor_case(i - 1);
    int element = bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
    MPI_Datatype type = element == 8 ? MPI_DOUBLE : element == 4 ? MPI_INT : element == 2 ? MPI_SHORT : MPI_SIGNED_CHAR;
    int count = bytes / element;
    MPI_Comm comm = (flags & kInter) ? inter : (flags & kCart) ? cart : MPI_COMM_WORLD;
    counts_alike = (flags & kAlike) != 0;
    int rank, size, peers;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    peers = size;
    int nonblocking = flags & kNonblocking;
    if (flags & kInter) {
      MPI_Comm_remote_size(comm, &peers);
      if (world_rank % 2 == 0 && op != 22)
        root = rank == root ? MPI_ROOT : MPI_PROC_NULL; /* the root is in the even group */
    }
    MPI_Op reduction = (flags & kNotCommutative) ? ordered : MPI_MAX;
    int ranks = peers > size ? peers : size;
    if (ranks < 4) ranks = 4; /* neighbours */
    char *send = calloc((size_t)5 * (ranks + 1), bytes + 8), *receive = calloc((size_t)5 * (ranks + 1), bytes + 8);
    void* source = (flags & kInPlace) ? MPI_IN_PLACE : send;
    int *counts = calloc(ranks, sizeof(int)), *offsets = calloc(ranks, sizeof(int));
    int *alike = calloc(ranks, sizeof(int)), *alike_offsets = calloc(ranks, sizeof(int));
    int* byte_offsets = calloc(ranks, sizeof(int));
    MPI_Datatype* types = calloc(ranks, sizeof(MPI_Datatype));
    for (int peer = 0; peer < ranks; ++peer) {
      counts[peer] = uneven(peer, count);
      if (peer > 0) offsets[peer] = offsets[peer - 1] + counts[peer - 1];
      alike[peer] = uneven(rank, count);
      alike_offsets[peer] = peer * 3 * count;
      byte_offsets[peer] = peer * 3 * bytes;
      types[peer] = type;
    }
    MPI_Request request = MPI_REQUEST_NULL;

#define RUN(BLOCKING, NONBLOCKING) \
  do {                             \
    if (nonblocking) {             \
      NONBLOCKING;                 \
    } else {                       \
      BLOCKING;                    \
    }                              \
  } while (0)
    switch (op) {
      case 0:
        RUN(MPI_Barrier(comm), MPI_Ibarrier(comm, &request));
        break;
      case 1:
        RUN(MPI_Bcast(send, count, type, root, comm), MPI_Ibcast(send, count, type, root, comm, &request));
        break;
      case 2:
        RUN(MPI_Reduce(send, receive, count, type, reduction, root, comm),
            MPI_Ireduce(send, receive, count, type, reduction, root, comm, &request));
        break;
      case 3:
        RUN(MPI_Allreduce(source, receive, count, type, reduction, comm),
            MPI_Iallreduce(source, receive, count, type, reduction, comm, &request));
        break;
      case 4:
        RUN(MPI_Gather(send, count, type, receive, count, type, root, comm),
            MPI_Igather(send, count, type, receive, count, type, root, comm, &request));
        break;
      case 5:
        RUN(MPI_Scatter(send, count, type, receive, count, type, root, comm),
            MPI_Iscatter(send, count, type, receive, count, type, root, comm, &request));
        break;
      case 6:
        RUN(MPI_Allgather(send, count, type, receive, count, type, comm),
            MPI_Iallgather(send, count, type, receive, count, type, comm, &request));
        break;
      case 7:
        RUN(MPI_Alltoall(source, count, type, receive, count, type, comm),
            MPI_Ialltoall(source, count, type, receive, count, type, comm, &request));
        break;
      case 8:
        RUN(MPI_Reduce_scatter_block(send, receive, count, type, reduction, comm),
            MPI_Ireduce_scatter_block(send, receive, count, type, reduction, comm, &request));
        break;
      case 9:
        RUN(MPI_Scan(send, receive, count, type, reduction, comm),
            MPI_Iscan(send, receive, count, type, reduction, comm, &request));
        break;
      case 10:
        RUN(MPI_Exscan(send, receive, count, type, reduction, comm),
            MPI_Iexscan(send, receive, count, type, reduction, comm, &request));
        break;
      case 11:
        RUN(MPI_Gatherv(send, uneven(rank, count), type, receive, counts, offsets, type, root, comm),
            MPI_Igatherv(send, uneven(rank, count), type, receive, counts, offsets, type, root, comm, &request));
        break;
      case 12:
        RUN(MPI_Scatterv(send, counts, offsets, type, receive, uneven(rank, count), type, root, comm),
            MPI_Iscatterv(send, counts, offsets, type, receive, uneven(rank, count), type, root, comm, &request));
        break;
      case 13:
        RUN(MPI_Allgatherv(send, uneven(rank, count), type, receive, counts, offsets, type, comm),
            MPI_Iallgatherv(send, uneven(rank, count), type, receive, counts, offsets, type, comm, &request));
        break;
      case 14: /* everybody gets from rank r what r's count says */
        RUN(MPI_Alltoallv(send, alike, alike_offsets, type, receive, counts, offsets, type, comm),
            MPI_Ialltoallv(send, alike, alike_offsets, type, receive, counts, offsets, type, comm, &request));
        break;
      case 15:
        RUN(MPI_Alltoallw(send, alike, byte_offsets, types, receive, counts, byte_offsets, types, comm),
            MPI_Ialltoallw(send, alike, byte_offsets, types, receive, counts, byte_offsets, types, comm, &request));
        break;
      case 16:
        RUN(MPI_Reduce_scatter(send, receive, counts, type, reduction, comm),
            MPI_Ireduce_scatter(send, receive, counts, type, reduction, comm, &request));
        break;
      case 19:
        RUN(MPI_Neighbor_alltoall(send, count, type, receive, count, type, comm),
            MPI_Ineighbor_alltoall(send, count, type, receive, count, type, comm, &request));
        break;
      case 20: { /* direction d sends d + 1 blocks; what comes from below was sent up */
        int out[4], in[4], at[4];
        for (int d = 0; d < 4; ++d) {
          out[d] = (d + 1) * count;
          in[d] = ((d ^ 1) + 1) * count;
          at[d] = d * 4 * count;
        }
        MPI_Neighbor_alltoallv(send, out, at, type, receive, in, at, type, comm);
        break;
      }
      case 22:
        create(root, comm, flags & kInter, &request, nonblocking);
        break;
      default:
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(send);
    free(receive);
    free(counts);
    free(offsets);
    free(alike);
    free(alike_offsets);
    free(byte_offsets);
    free(types);
  }
  MPI_Finalize();
  return 0;
}
