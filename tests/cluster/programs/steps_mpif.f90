! A Fortran program with mpif.h whose MPI calls are counted by hand beside each call and printed by each rank as
! "count RANK NAME NUMBER". usage: steps_mpif STEPS
program steps_mpif
  implicit none
  include 'mpif.h'
  integer, parameter :: n = 512
  integer :: ierr, rank, nranks, right, left, step, steps
  integer :: requests(2)
  integer :: sends, recvs, isends, irecvs, waitalls, allreduces, bcasts, barriers
  double precision :: out(n), in(n), total
  character(len=16) :: argument
  steps = 100
  if (command_argument_count() >= 1) then
    call get_command_argument(1, argument)
    read (argument, *) steps
  end if
  sends = 0; recvs = 0; isends = 0; irecvs = 0; waitalls = 0; allreduces = 0; bcasts = 0; barriers = 0
  out = 1.0d0
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
  right = mod(rank + 1, nranks)
  left = mod(rank + nranks - 1, nranks)
  do step = 1, steps
    if (mod(rank, 2) == 0) then
      call MPI_Send(out, 8, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, ierr)
      call MPI_Recv(in, 8, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    else
      call MPI_Recv(in, 8, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call MPI_Send(out, 8, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, ierr)
    end if
    sends = sends + 1
    recvs = recvs + 1
    call MPI_Irecv(in, n, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, requests(1), ierr)
    irecvs = irecvs + 1
    call MPI_Isend(out, n, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, requests(2), ierr)
    isends = isends + 1
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    waitalls = waitalls + 1
    if (mod(step, 10) == 0) then
      call MPI_Allreduce(in(1), total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
      allreduces = allreduces + 1
      call MPI_Bcast(total, 1, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
      bcasts = bcasts + 1
    end if
  end do
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  barriers = barriers + 1
  call report('MPI_Send', sends)
  call report('MPI_Recv', recvs)
  call report('MPI_Isend', isends)
  call report('MPI_Irecv', irecvs)
  call report('MPI_Waitall', waitalls)
  call report('MPI_Allreduce', allreduces)
  call report('MPI_Bcast', bcasts)
  call report('MPI_Barrier', barriers)
  call MPI_Finalize(ierr)
contains
  subroutine report(name, number)
    character(len=*), intent(in) :: name
    integer, intent(in) :: number
    write (*, '(a,i0,1x,a,1x,i0)') 'count ', rank, name, number
  end subroutine report
end program steps_mpif
