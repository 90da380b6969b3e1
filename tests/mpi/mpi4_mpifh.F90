! mpi4.c through mpif.h.
#define IERR , ierr
#define IERR1 ierr
#define PARTITIONED
program mpi4_mpifh
  implicit none
  include 'mpif.h'
  integer :: rank, size, right, left, round, again, i, ierr
  integer, volatile :: out(64), in(64), all(256), counts(64), same(64), places(64), bytes(64), dims(1), last(1), mine(1), sums(1)
  integer(MPI_COUNT_KIND), parameter :: each = 100
  double precision, volatile :: parts_out(400), parts_in(400)
  logical :: flag, periods(1)
  integer :: requests(7), ring, types(64)
#include "mpi4_body.inc"
end program
