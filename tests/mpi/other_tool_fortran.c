/* Another PMPI tool, one that knows Fortran: says at the end how many sends it saw under each name, and how
 * often MPI_Finalize. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static int c_sends, mpifh_sends, f08_sends, ends;

static void __attribute__((destructor)) tell(void) {
  if (ends > 0) fprintf(stderr, "other tool: sends %d %d %d ends %d\n", c_sends, mpifh_sends, f08_sends, ends);
}

/* A tool may use MPI itself: that is not a call of the program. */
static void use_mpi(void) {
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
}

int MPI_Send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  ++c_sends;
  use_mpi();
  return PMPI_Send(buf, count, type, dest, tag, comm);
}

int MPI_Finalize(void) {
  ++ends;
  return PMPI_Finalize();
}

#ifdef OPEN_MPI
#define USE_MPI() use_mpi()
#else /* the capture sees a send of MPICH's Fortran where that calls C: this would be the program's */
#define USE_MPI() (void)0
#endif

/* The library's own function; what it is called besides depends on the library. */
#define FORTRAN_SEND(name, sends)                                                                \
  void name(void* buf, void* count, void* type, void* dest, void* tag, void* comm, void* ierr) { \
    void (*next)(void*, void*, void*, void*, void*, void*, void*);                               \
    *(void**)&next = dlsym(RTLD_NEXT, #name);                                                    \
    ++(sends);                                                                                   \
    USE_MPI();                                                                                   \
    next(buf, count, type, dest, tag, comm, ierr);                                               \
  }
FORTRAN_SEND(mpi_send_, mpifh_sends)
FORTRAN_SEND(mpi_send_f08_, f08_sends)
FORTRAN_SEND(mpi_send_f08ts_, f08_sends)

#define FORTRAN_FINALIZE(name)                \
  void name(void* ierr) {                     \
    void (*next)(void*);                      \
    *(void**)&next = dlsym(RTLD_NEXT, #name); \
    ++ends;                                   \
    next(ierr);                               \
  }
FORTRAN_FINALIZE(mpi_finalize_f08_)
#ifdef OPEN_MPI /* MPICH's calls MPI_Finalize */
FORTRAN_FINALIZE(mpi_finalize_)
#endif
