! bindings.c through mpi_f08, without the optional error argument.
#define IERR
#define IERR1
program bindings_f08
  use mpi_f08
  implicit none
  integer, parameter :: words = 16
  integer :: rank, size, index, outcount, right, left, pair, half_rank, half_size, i
  integer :: a(words), b(words * 64), c(words * 64), counts(64), displs(64), indices(4), dims(1)
  logical :: flag, periods(1)
  type(MPI_Request) :: requests(4)
  type(MPI_Status) :: status, statuses(4)
  type(MPI_Comm) :: dup, half, cart
  type(MPI_Message) :: message
#include "bindings_body.inc"
end program
