! connect.c in Fortran: 2 ranks of one world meet once more, through a port whose name is published, and through a socket.
#include "fortran_binding.inc"
program connect_again
  use, intrinsic :: iso_c_binding
  USE_MPI
  implicit none
  INCLUDE_MPI
  interface
    integer(c_int) function socket(domain, kind, protocol) bind(C)
      import
      integer(c_int), value :: domain, kind, protocol
    end function
    integer(c_int) function bind_to(fd, address, length) bind(C, name='bind')
      import
      integer(c_int), value :: fd, length
      character(kind=c_char) :: address(*)
    end function
    integer(c_int) function connect_to(fd, address, length) bind(C, name='connect')
      import
      integer(c_int), value :: fd, length
      character(kind=c_char) :: address(*)
    end function
    integer(c_int) function listen(fd, backlog) bind(C)
      import
      integer(c_int), value :: fd, backlog
    end function
    integer(c_int) function accept(fd, address, length) bind(C)
      import
      integer(c_int), value :: fd
      type(c_ptr), value :: address, length
    end function
  end interface
  integer :: rank, fd, ierr
  character(len=MPI_MAX_PORT_NAME) :: port
  COMM :: other
  call MPI_Init(IERR1)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank IERR)
  if (rank == 0) then
    call MPI_Open_port(MPI_INFO_NULL, port IERR)
    call MPI_Publish_name('lbf-connect', MPI_INFO_NULL, port IERR)
  end if
  call MPI_Barrier(MPI_COMM_WORLD IERR)
  if (rank == 0) then
    call MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, other IERR)
  else
    call MPI_Lookup_name('lbf-connect', MPI_INFO_NULL, port IERR)
    call MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, other IERR)
  end if
  call talk()
  if (rank == 0) then
    call MPI_Unpublish_name('lbf-connect', MPI_INFO_NULL, port IERR)
    call MPI_Close_port(port IERR)
  end if
  fd = connected_socket()
  call MPI_Comm_join(fd, other IERR)
  call talk()
  call MPI_Barrier(MPI_COMM_WORLD IERR)
  call expect('calls', 'MPI_Open_port', merge(1, 0, rank == 0))
  call expect('calls', 'MPI_Publish_name', merge(1, 0, rank == 0))
  call expect('calls', 'MPI_Comm_accept', merge(1, 0, rank == 0))
  call expect('calls', 'MPI_Lookup_name', merge(0, 1, rank == 0))
  call expect('calls', 'MPI_Comm_connect', merge(0, 1, rank == 0))
  call expect('calls', 'MPI_Comm_join', 1)
  call expect('calls', 'MPI_Sendrecv', 2)
  call expect('calls', 'MPI_Comm_disconnect', 2)
  call expect('calls', 'MPI_Unpublish_name', merge(1, 0, rank == 0))
  call expect('calls', 'MPI_Close_port', merge(1, 0, rank == 0))
  call expect('events', 'unmodelled', merge(10, 7, rank == 0))
  call expect('events', 'send', merge(1, 0, rank == 0))
  call expect('events', 'recv', merge(0, 1, rank == 0))
  call expect('events', 'coll', 2)
  call expect('events', 'exit', 1)
  call MPI_Finalize(IERR1)
contains
  ! Both say their number to the other one, and part.
  subroutine talk()
    integer :: mine(1), theirs(1), remote
    call MPI_Comm_remote_size(other, remote IERR)
    mine = rank
    theirs = -1
    call MPI_Sendrecv(mine, 1, MPI_INTEGER, 0, 7, theirs, 1, MPI_INTEGER, 0, 7, other, MPI_STATUS_IGNORE IERR)
    call MPI_Comm_disconnect(other IERR)
    write (*, '(a, 3(1x, i0))') 'result', rank, remote, theirs
  end subroutine

  ! A connection between the two ranks through a Unix socket without a file: its name begins with a zero.
  integer function connected_socket() result(fd)
    integer, parameter :: unix = 1, stream = 1
    integer :: name(1), failed
    character(len=20) :: number
    character(len=:), allocatable :: address
    name = getpid()
    if (rank == 1) call MPI_Recv(name, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERR)
    write (number, '(i0)') name
    address = transfer(int(unix, c_int16_t), 'xx') // achar(0) // 'lbf-connect-' // trim(number)
    fd = socket(unix, stream, 0)
    if (rank == 0) then
      failed = bind_to(fd, address, len(address)) + listen(fd, 1)
      call MPI_Send(name, 1, MPI_INTEGER, 1, 0, MPI_COMM_WORLD IERR)
      fd = accept(fd, c_null_ptr, c_null_ptr)
    else
      failed = connect_to(fd, address, len(address))
    end if
    if (failed /= 0 .or. fd < 0) error stop 'socket'
  end function
#include "fortran_expect.inc"
end program
