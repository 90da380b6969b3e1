! Sessions through mpif.h.
#define IERR , ierr
program sessions_mpifh
  implicit none
  include 'mpif.h'
  integer :: rank, size, i, ierr, session, second, group, comm
  integer, volatile :: out(1), in(1)
#include "sessions_body.inc"
end program
