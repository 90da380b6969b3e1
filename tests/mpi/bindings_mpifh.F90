! bindings.c through mpif.h.
#define IERR , ierr
#define IERR1 ierr
program bindings_mpifh
  implicit none
  include 'mpif.h'
  integer, parameter :: words = 16
  integer :: rank, size, index, outcount, right, left, pair, half_rank, half_size, i, ierr
  integer :: a(words), b(words * 64), c(words * 64), counts(64), displs(64), indices(4), dims(1)
  logical :: flag, periods(1)
  integer :: requests(4), status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 4), dup, half, cart, message
  integer, parameter :: first_index = 1
#include "bindings_body.inc"
end program
