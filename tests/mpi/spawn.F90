! spawn.c in Fortran: 2 ranks start 2 more processes of themselves, twice, talk to them and let them end.
#include "fortran_binding.inc"
program spawn
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: rank, children, answer(1), word(1), codes(2), i, root, ierr
  character(len=500) :: self, selves(2)
  COMM :: parent, both
#ifdef BINDING_f08
  type(MPI_Info) :: infos(2)
#else
  integer :: infos(2)
#endif
  call MPI_Init(IERR1)
  call MPI_Comm_get_parent(parent IERR)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank IERR)
  if (parent /= MPI_COMM_NULL) then
    call MPI_Bcast(word, 1, MPI_INTEGER, 0, parent IERR)
    word(1) = word(1) + rank
    if (rank == 1) call MPI_Send(word, 1, MPI_INTEGER, 0, 5, parent IERR)
    call MPI_Barrier(MPI_COMM_WORLD IERR)
    call MPI_Comm_disconnect(parent IERR)
    call MPI_Finalize(IERR1)
    stop
  end if
  call get_command_argument(0, self)
  selves = self
  infos = MPI_INFO_NULL
  root = MPI_PROC_NULL
  if (rank == 0) root = MPI_ROOT
  do i = 1, 2
    call MPI_Barrier(MPI_COMM_WORLD IERR)
    if (i == 1) then
      call MPI_Comm_spawn(self, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, both, codes IERR)
    else
      call MPI_Comm_spawn_multiple(2, selves, MPI_ARGVS_NULL, (/1, 1/), infos, 0, MPI_COMM_WORLD, both, codes IERR)
    end if
    call MPI_Comm_remote_size(both, children IERR)
    word(1) = 42 + i
    answer(1) = 0
    call MPI_Bcast(word, 1, MPI_INTEGER, root, both IERR)
    if (rank == 0) call MPI_Recv(answer, 1, MPI_INTEGER, 1, 5, both, MPI_STATUS_IGNORE IERR)
    call MPI_Comm_disconnect(both IERR)
    write (*, '(a, 5(1x, i0))') 'result', rank, children, answer, codes
  end do
  call MPI_Barrier(MPI_COMM_WORLD IERR)
  call expect('calls', 'MPI_Comm_spawn', 1)
  call expect('calls', 'MPI_Comm_spawn_multiple', 1)
  call expect('calls', 'MPI_Bcast', 2)
  call expect('calls', 'MPI_Recv', merge(2, 0, rank == 0))
  call expect('calls', 'MPI_Comm_disconnect', 2)
  call expect('events', 'unmodelled', merge(8, 6, rank == 0))
  call expect('events', 'recv', 0)
  call expect('events', 'coll', 3)
  call expect('events', 'exit', 1)
  call MPI_Finalize(IERR1)
contains
#include "fortran_expect.inc"
end program
