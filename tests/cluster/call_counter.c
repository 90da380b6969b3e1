/* libmpi_call_counter.so: counts the MPI calls of a program, C and Fortran entry points, independently of lbf.
 *
 * The cluster tests run a program bare under this library, then under `srun --lbf-predict` without it, and compare.
 * It shares nothing with the capture: no description of the functions, no wrapper generator. Each wrapper is three
 * instructions that add one to a counter and jump to the PMPI function with every register as it was, so it needs no
 * signatures and can get no argument wrong. x86-64 only.
 *
 * At MPI_Finalize each rank writes "NAME NUMBER" lines into $MPI_CALL_COUNTER_OUT.RANK.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* clang-format off */
#define FUNCTIONS(F) \
  F(Send) F(Ssend) F(Bsend) F(Rsend) F(Isend) F(Issend) F(Irsend) F(Recv) F(Irecv) F(Sendrecv) F(Sendrecv_replace) \
  F(Send_init) F(Recv_init) F(Start) F(Startall) F(Wait) F(Waitall) F(Waitany) F(Waitsome) F(Test) F(Testall) \
  F(Testany) F(Testsome) F(Request_free) F(Cancel) F(Probe) F(Iprobe) F(Mprobe) F(Improbe) F(Mrecv) F(Barrier) \
  F(Bcast) F(Reduce) F(Allreduce) F(Gather) F(Gatherv) F(Scatter) F(Scatterv) F(Allgather) F(Allgatherv) F(Alltoall) \
  F(Alltoallv) F(Reduce_scatter) F(Reduce_scatter_block) F(Scan) F(Exscan) F(Ibarrier) F(Ibcast) F(Iallreduce) \
  F(Comm_dup) F(Comm_split) F(Comm_create) F(Comm_free) F(Cart_create)
/* clang-format on */

#define NUMBER(name) kCall_##name,
enum { FUNCTIONS(NUMBER) kCalls };

__attribute__((visibility("hidden"), used)) unsigned long lbf_test_call_counts[kCalls];

/* The stack pointer, the argument registers and the vector registers reach PMPI untouched. */
#define WRAPPER(name)                                                                                       \
  __attribute__((naked, visibility("default"))) void counter_##name(void) __asm__("MPI_" #name);            \
  void counter_##name(void) {                                                                               \
    __asm__("lock incq %c0+lbf_test_call_counts(%%rip)\n\tjmp PMPI_" #name "@PLT" ::"i"(8 * kCall_##name)); \
  }
FUNCTIONS(WRAPPER)

#define NAME(name) "MPI_" #name,
static const char* const kNames[] = {FUNCTIONS(NAME)};

__attribute__((visibility("default"))) int MPI_Finalize(void) {
  const char* prefix = getenv("MPI_CALL_COUNTER_OUT");
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (prefix) {
    char path[4096];
    FILE* file;
    snprintf(path, sizeof path, "%s.%d", prefix, rank);
    file = fopen(path, "w");
    if (file) {
      for (int i = 0; i < kCalls; ++i)
        if (lbf_test_call_counts[i]) fprintf(file, "%s %lu\n", kNames[i], lbf_test_call_counts[i]);
      fclose(file);
    }
  }
  return PMPI_Finalize();
}
