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
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
  integer :: length, first_index
  ! MPICH 4.0's mpi_f08 counts completed requests from 0.
  call MPI_Get_library_version(version, length)
  first_index = 1
  if (index_of(version, 'MPICH Version:') == 1 .and. index_of(version, '4.0') > 0) first_index = 0
#include "bindings_body.inc"
contains
  integer function index_of(text, word)
    character(len=*), intent(in) :: text, word
    intrinsic :: index
    index_of = index(text(1:min(40, len(text))), word)
  end function
end program
