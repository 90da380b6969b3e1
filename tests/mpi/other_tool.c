/* Another PMPI tool: counts sends and says so at the end; what MPI_Pcontrol was given it says at once. */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>

static int sends;

int MPI_Send(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  int size;
  ++sends;
  MPI_Comm_size(comm, &size); /* a tool may use MPI itself: that is not a call of the program */
  return PMPI_Send(buf, count, type, dest, tag, comm);
}

/* With level 2: a string, an int, a long, a pointer to an int, a long. */
int MPI_Pcontrol(const int level, ...) {
  va_list more;
  va_start(more, level);
  if (level == 2) {
    const char* const name = va_arg(more, const char*);
    const int number = va_arg(more, int);
    const long longer = va_arg(more, long);
    const int* const place = va_arg(more, const int*);
    fprintf(stderr, "other tool: phase %s %d %ld %d %ld\n", name, number, longer, *place, va_arg(more, long));
  }
  va_end(more);
  return PMPI_Pcontrol(level);
}

int MPI_Finalize(void) {
  fprintf(stderr, "other tool: %d sends\n", sends);
  return PMPI_Finalize();
}
