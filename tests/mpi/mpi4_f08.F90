! mpi4.c through mpi_f08, without the optional error argument and without partitioned messages: Open MPI 5.0 has them there
! without their info. MPI writes some of it behind the compiler's back.
#define IERR
#define IERR1
#ifdef F08_LARGE_COUNTS
#define LARGE_COUNTS
#endif
program mpi4_f08
  use mpi_f08
  implicit none
  integer :: rank, size, right, left, round, again, i
  integer, volatile :: out(64), in(64), all(256), counts(64), same(64), places(64), bytes(64), dims(1), mine(1), sums(1)
  logical :: periods(1)
  type(MPI_Request) :: requests(7)
  type(MPI_Comm) :: ring
  type(MPI_Datatype) :: types(64)
  type(MPI_Status) :: status
  integer(MPI_COUNT_KIND) :: large, large_counts(64)
  integer(MPI_ADDRESS_KIND) :: large_places(64)
#include "mpi4_body.inc"
end program
