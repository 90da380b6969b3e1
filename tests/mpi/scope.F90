! scope.c in Fortran: MPI_Pcontrol ends the scope of what is recorded and begins it anew.
#include "fortran_binding.inc"
#ifdef BINDING_f08
#define DATATYPE type(MPI_Datatype)
#else
#define DATATYPE integer
#endif
program scope
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer, parameter :: rounds = 5, into = 7, out_of = 8, ring = 9
  integer :: rank, size, left, right, i, ierr
  integer, volatile :: out(3), in(3), other(3)
  double precision :: value, sum
  COMM :: made
  DATATYPE :: triple
  REQUEST :: early, sent, late
  call MPI_Init(IERR1)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank IERR)
  call MPI_Comm_size(MPI_COMM_WORLD, size IERR)
  right = mod(rank + 1, size)
  left = mod(rank + size - 1, size)
  out = [1, 2, 3]
  value = 1
  call MPI_Barrier(MPI_COMM_WORLD IERR)

  call MPI_Pcontrol(0)
  call MPI_Comm_dup(MPI_COMM_WORLD, made IERR)
  call MPI_Type_contiguous(3, MPI_INTEGER, triple IERR)
  call MPI_Type_commit(triple IERR)
  call MPI_Irecv(in, 1, triple, left, into, made, early IERR)
  do i = 1, 2 * rounds
    call exchange(MPI_COMM_WORLD)
  end do
  call MPI_Barrier(MPI_COMM_WORLD IERR)
  call MPI_Pcontrol(1)

  call MPI_Isend(out, 1, triple, right, into, made, sent IERR)
  call MPI_Wait(early, MPI_STATUS_IGNORE IERR)
  call MPI_Wait(sent, MPI_STATUS_IGNORE IERR)
  call MPI_Isend(out, 1, triple, right, out_of, MPI_COMM_WORLD, late IERR)
  call MPI_Pcontrol(0)
  call MPI_Recv(other, 1, triple, left, out_of, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERR)
  call MPI_Wait(late, MPI_STATUS_IGNORE IERR)
  call MPI_Barrier(MPI_COMM_WORLD IERR)

  call MPI_Pcontrol(1)
  call MPI_Pcontrol(1)
  do i = 1, rounds
    call exchange(made)
    call MPI_Allreduce(value, sum, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD IERR)
  end do
  call MPI_Pcontrol(2)
  call MPI_Pcontrol(0)
  call MPI_Pcontrol(0)
  call exchange(MPI_COMM_WORLD)
  if (in(3) /= 3 .or. other(3) /= 3 .or. nint(sum) /= size) error stop 'wrong results'
  call MPI_Finalize(IERR1)
contains
  subroutine exchange(comm)
    COMM :: comm
    integer :: from, to, ierr
    to = right
    from = -1
    call MPI_Sendrecv(to, 1, MPI_INTEGER, right, ring, from, 1, MPI_INTEGER, left, ring, comm, MPI_STATUS_IGNORE IERR)
  end subroutine
end program
