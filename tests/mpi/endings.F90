! endings HOW, in Fortran: endings.c's ways to end, or to go on, without what MPI asks for, with the language's own ones, MPI_Abort
! and SIGKILL; "finalize" ends as it should.
#include "fortran_binding.inc"
subroutine leave_with_exit()
  call exit(8)
end subroutine

program endings
  use, intrinsic :: iso_c_binding
  USE_MPI
  implicit none
  INCLUDE_MPI
  interface
    subroutine exit_at_once(status) bind(C, name='_exit')
      import
      integer(c_int), value :: status
    end subroutine
    subroutine quick_exit(status) bind(C)
      import
      integer(c_int), value :: status
    end subroutine
    integer(c_int) function fork() bind(C)
      import
    end function
    integer(c_int) function waitpid(pid, status, options) bind(C)
      import
      integer(c_int), value :: pid, options
      integer(c_int) :: status
    end function
    integer(c_int) function execv(path, arguments) bind(C)
      import
      character(kind=c_char) :: path(*)
      type(c_ptr) :: arguments(*)
    end function
  end interface
  external :: leave_with_exit
  integer :: rank, size, provided, id, child, status, i, ierr
  integer :: x(1)
  character(len=20) :: how
  character(len=10), target :: continued
  call get_command_argument(1, how)
  if (how == 'continued') stop  ! what exec left: another program, without MPI_Init
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided IERR)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank IERR)
  call messages(100)
  call MPI_Barrier(MPI_COMM_WORLD IERR)
  ! Whoever leaves this one knows that both ranks are back from the first: a rank that ends is the other one's end, too.
  call MPI_Barrier(MPI_COMM_WORLD IERR)
  select case (how)
  case ('stop')
    stop
  case ('stop_5')
    stop 5
  case ('error_stop')
    error stop 6
  case ('exit')
    call exit(7)
  case ('_exit')
    call exit_at_once(7)
  case ('quick_exit')
    call quick_exit(7)
  case ('abort')
    call abort()
  case ('handler_exit')  ! the handler interrupts a wrapper: nobody sends
    call alarm(1, leave_with_exit)
    call MPI_Recv(x, 1, MPI_INTEGER, 1 - rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERR)
  case ('mpi_abort', 'thread_abort', 'kill')  ! one rank ends both
    if (rank /= 0) call MPI_Recv(x, 1, MPI_INTEGER, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERR)
    if (how == 'mpi_abort') call MPI_Abort(MPI_COMM_WORLD, 9 IERR)
    if (how == 'kill') call kill(getpid(), 9)
    !$omp parallel do num_threads(2) schedule(static, 1) private(ierr)
    do id = 1, 2
      if (id == 2) call MPI_Abort(MPI_COMM_WORLD, 9 IERR)
    end do
    !$omp end parallel do
  case ('exec')
    continued = 'continued' // c_null_char
    status = execv('/proc/self/exe' // c_null_char, (/c_loc(continued), c_loc(continued), c_null_ptr/))
    error stop 'exec'
  case ('fork')  ! the child calls MPI, the parent goes on
    child = fork()
    if (child == 0) then
      size = 0
      do i = 1, 100
        call MPI_Comm_size(MPI_COMM_WORLD, size IERR)
      end do
      call exit_at_once(merge(0, 1, size == 2))
    end if
    if (waitpid(child, status, 0) /= child .or. status /= 0) error stop 'fork'
    call messages(10)
    call MPI_Finalize(IERR1)
  case ('finalize')
    call expect('calls', 'MPI_Comm_rank', 1)
    call expect('calls', 'MPI_Comm_size', 0)
    call expect('calls', 'MPI_Send', merge(100, 0, rank == 0))
    call expect('calls', 'MPI_Recv', merge(0, 100, rank == 0))
    call expect('calls', 'MPI_Barrier', 2)
    call expect('events', 'send', merge(100, 0, rank == 0))
    call expect('events', 'recv', merge(0, 100, rank == 0))
    call expect('events', 'coll', 2)
    call expect('events', 'exit', 1)
    call MPI_Finalize(IERR1)
  end select
contains
  subroutine messages(n)
    integer, intent(in) :: n
    x = 0
    do i = 1, n
      if (rank == 0) call MPI_Send(x, 1, MPI_INTEGER, 1, 0, MPI_COMM_WORLD IERR)
      if (rank == 1) call MPI_Recv(x, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERR)
    end do
  end subroutine
#include "fortran_expect.inc"
end program
