! Sessions through mpi_f08, without the optional error argument.
#define IERR
program sessions_f08
  use mpi_f08
  implicit none
  integer :: rank, size, i
  integer, volatile :: out(1), in(1)
  type(MPI_Session) :: session, second
  type(MPI_Group) :: group
  type(MPI_Comm) :: comm
#include "sessions_body.inc"
end program
