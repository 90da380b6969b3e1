! threads.c in Fortran, with OpenMP: 4 threads of each of 2 processes, the main one among them, exchange messages with their
! opposite at the same time, half of them on a communicator of their own, and these add up, too.
#include "fortran_binding.inc"
program threads
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer, parameter :: team = 4, rounds = 200, sums_every = 10
  integer :: rank, provided, id, ierr
  integer :: received(0:team - 1)
  COMM :: comms(0:team - 1)
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided IERR)
  if (provided /= MPI_THREAD_MULTIPLE) error stop 'no MPI_THREAD_MULTIPLE'
  call MPI_Comm_rank(MPI_COMM_WORLD, rank IERR)
  do id = 0, team - 1
    comms(id) = MPI_COMM_WORLD
    if (mod(id, 2) /= 0) call MPI_Comm_dup(MPI_COMM_WORLD, comms(id) IERR)
  end do
  received = 0
  !$omp parallel do num_threads(team) schedule(static, 1)
  do id = 0, team - 1
    call work(id)
  end do
  !$omp end parallel do
  call MPI_Barrier(MPI_COMM_WORLD IERR)
  write (*, '(a, i0, *(1x, i0))') 'result ', rank, received
  call expect('calls', 'MPI_Comm_dup', team / 2)
  call expect('calls', 'MPI_Isend', team * rounds)
  call expect('calls', 'MPI_Irecv', team * rounds)
  call expect('calls', 'MPI_Wait', team * rounds)
  call expect('calls', 'MPI_Waitall', team * rounds / 2)
  call expect('calls', 'MPI_Send', team * rounds)
  call expect('calls', 'MPI_Recv', team * rounds)
  call expect('calls', 'MPI_Allreduce', team / 2 * rounds / sums_every)
  call expect('events', 'isend', team * rounds)
  call expect('events', 'startRecv', team * rounds)
  call expect('events', 'endRecv', team * rounds)
  call expect('events', 'wait', team * rounds)
  call expect('events', 'send', team * rounds)
  call expect('events', 'recv', team * rounds)
  call expect('events', 'coll', team / 2 * rounds / sums_every + team / 2 + 1)
  call expect('events', 'commCreate', team / 2)
  call expect('events', 'unmodelled', 0)
  call expect('events', 'exit', 1)
  call MPI_Finalize(IERR1)
contains
  subroutine work(id)
    integer, intent(in) :: id
    integer :: other, i, ierr
    integer, volatile :: out(1), in(2)
    REQUEST :: requests(2)
    other = 1 - rank
    do i = 1, rounds
      out(1) = 1000 * id + i
      call MPI_Irecv(in, 2, MPI_INTEGER, MPI_ANY_SOURCE, id, comms(id), requests(1) IERR)
      call MPI_Isend(out, 1, MPI_INTEGER, other, id, comms(id), requests(2) IERR)
      if (mod(i, 2) == 0) then
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE IERR)
      else
        call MPI_Wait(requests(1), MPI_STATUS_IGNORE IERR)
        call MPI_Wait(requests(2), MPI_STATUS_IGNORE IERR)
      end if
      received(id) = received(id) + in(1)
      out(1) = rank
      if (rank == 0) call MPI_Send(out, 1, MPI_INTEGER, other, team + id, MPI_COMM_WORLD IERR)
      call MPI_Recv(in, 2, MPI_INTEGER, other, team + id, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERR)
      if (rank == 1) call MPI_Send(out, 1, MPI_INTEGER, other, team + id, MPI_COMM_WORLD IERR)
      received(id) = received(id) + in(1)
      if (mod(id, 2) /= 0 .and. mod(i, sums_every) == 0) then
        call MPI_Allreduce(out, in, 1, MPI_INTEGER, MPI_SUM, comms(id) IERR)
        if (in(1) /= 1) error stop 'sum'
      end if
    end do
  end subroutine
#include "fortran_expect.inc"
end program
