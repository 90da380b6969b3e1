#!/usr/bin/env python3
"""Makes the conformance programs in Fortran: the same cases through mpif.h and through mpi_f08.

As generate.py, which says what a case is: each is run bare and captured, and counts its own calls and events. A program
takes a folder for files and, as second argument, `quick`: then every eighth case of the tables runs, and all others;
or a case's name: that one alone. Cases with a word of LEFT_OUT in their name, or in a function of
theirs, do not run.
A function of event/mpi_functions.yml that the binding has and no case calls must be in NOT_HERE, or nothing is made.

usage: generate_fortran.py mpi_functions.yml OUTPUT_DIRECTORY      writes conformance_mpifh.f90, conformance_f08.f90
"""
import os
import re
import sys

import yaml

import fortran
import fortran_local_calls
import fortran_tables
import fortran_windows_files

QUICK = 8

NOT_HERE = {
    'C: tests/mpi/surface.c, aborted': r'MPI_(Abort|Init_thread)',
    'C: tests/mpi/spawn.c, connect.c': r'MPI_(Comm_(spawn\w*|accept|connect|join)|(Open|Close)_port'
                                       r'|(Publish|Unpublish|Lookup)_name)',
    'not tested: removed or deprecated': r'MPI_(Address|Errhandler_(create|get|set)'
                                         r'|Type_(extent|hindexed|hvector|lb|struct|ub))',
    'not tested: user-defined file representations': r'MPI_Register_datarep',
    'not tested: shared file pointers, in which Open MPI 4.1 hangs now and then by itself':
        r'MPI_File_\w*(shared|ordered)\w*',
    'mpif.h alone': r'MPI_(Attr_\w+|Keyval_\w+)',
}

DATA = '''
! Made by tests/mpi/conformance/generate_fortran.py.
module conformance_data
{use}
  use, intrinsic :: iso_c_binding
  implicit none
{include}
  integer, parameter :: size_of_space = 131072
  ! Module variables: every external procedure may change them.
  integer, target :: out(16384), in(16384), memory(64)
  double precision, target :: dout(1024), din(1024)
  character(len=size_of_space), target :: space
  integer, pointer :: words(:)
  type(c_ptr) :: pointer
  integer :: rank, size, to, from, me, n, at, i, root, done, first, ierr, errors_handled
  integer :: counts(16), displs(16), bytes_at(16), indices(4)
  integer(MPI_ADDRESS_KIND) :: aint_at(16)
  logical :: flag, flags(4), run_all, is_open_mpi, is_open_mpi_5, is_mpich_5
  character(len=1024) :: left_out
{handles}
  character(len=4096) :: folder
  character(len=:), allocatable :: case_name
  integer, parameter :: most = 1024
  character(len=48) :: called(most) = '', recorded(most) = ''
  integer :: calls(most) = 0, events(most) = 0
end module
'''
HELPERS = '''
  logical function is_left_out(name)
    character(len=*), intent(in) :: name
    integer :: first, length
    is_left_out = .false.
    first = 1
    do while (first <= len_trim(left_out))
      length = index(left_out(first:), ' ') - 1
      if (index(name, left_out(first:first + length - 1)) > 0) is_left_out = .true.
      first = first + length + 1
    end do
  end function

  subroutine add(names, numbers, name, number)
    character(len=*), intent(inout) :: names(:)
    integer, intent(inout) :: numbers(:)
    character(len=*), intent(in) :: name
    integer, intent(in) :: number
    integer :: k
    do k = 1, most
      if (names(k) == '') names(k) = name
      if (names(k) == name) then
        numbers(k) = numbers(k) + number
        return
      end if
    end do
    error stop 'too many names'
  end subroutine
  subroutine count_call(name)
    character(len=*), intent(in) :: name
    if (.not. is_open_mpi) then
      {unseen}
    end if
    call add(called, calls, name, 1)
  end subroutine
  subroutine count_events(kind, number)
    character(len=*), intent(in) :: kind
    integer, intent(in) :: number
    call add(recorded, events, kind, number)
  end subroutine
  subroutine must_succeed(name)
    character(len=*), intent(in) :: name
    if (ierr == MPI_SUCCESS) return
    write (*, *) 'failed: ', case_name, ' ', name, ierr
    error stop 'a call failed'
  end subroutine
  subroutine class_result(name)
    character(len=*), intent(in) :: name
    integer :: class, error
    call count_call('MPI_Error_class')
    call MPI_Error_class(ierr, class, error)
    write (*, '("case ", A, 1X, I0, 1X, A, " gives class ", I0)') case_name, rank, name, class
  end subroutine
  subroutine errors_return(on)
    logical, intent(in) :: on
    integer :: error
    call count_call('MPI_Comm_set_errhandler')
    if (on) then
      call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, error)
    else
      call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, error)
    end if
  end subroutine
  subroutine begin_case(name)
    character(len=*), intent(in) :: name
    case_name = name
    flag = .false.
    n = 0
    at = 0
    request = MPI_REQUEST_NULL
    requests = MPI_REQUEST_NULL
  end subroutine
  subroutine fill(seed)
    integer, intent(in) :: seed
    integer :: k
    do k = 1, 16384
      out(k) = mod(k * 7 + rank * 13 + seed, 5)
    end do
    in = 0
  end subroutine
  ! Small whole numbers, so that the order of additions does not matter.
  subroutine fill_numbers()
    integer :: k
    do k = 1, 4096
      out(k) = rank + mod(k, 7)
      in(k) = rank * 3 + k
    end do
    do k = 1, 512
      dout(k) = rank + mod(k, 7)
      din(k) = rank * 3 + k
    end do
  end subroutine
  integer function hash(numbers)
    integer, intent(in) :: numbers(:)
    integer :: k
    integer(c_int64_t) :: h
    h = 17
    do k = 1, ubound(numbers, 1)
      h = mod(h * 31 + numbers(k), 1000003_c_int64_t)
    end do
    hash = int(h)
  end function
  integer function hash_double(numbers)
    double precision, intent(in) :: numbers(:)
    hash_double = hash(transfer(numbers, out))
  end function
  subroutine peers(comm, k, kind)
{peers}
    integer, intent(in) :: k
    integer :: j, error
    c = comm
    call count_call('MPI_Comm_rank')
    call MPI_Comm_rank(c, me, error)
    call count_call('MPI_Comm_size')
    call MPI_Comm_size(c, n, error)
    do j = 1, 16
      counts(j) = k
      displs(j) = (j - 1) * (k + 1)
      bytes_at(j) = (j - 1) * 2048
      aint_at(j) = (j - 1) * 2048
      types(j) = kind
    end do
  end subroutine
'''
# What MPICH's library does for Fortran in ways that no C function or wrapper sees: local functions, their count alone.
UNSEEN = {
    'mpifh': "if (index(name, '_attr') > 0 .or. index(name, 'MPI_Attr_') == 1) return\n"
             "      if (is_mpich_5 .and. (name == 'MPI_Op_create' .or. index(name, '_create_errhandler') > 0)) return",
    'f08': "if (index(name, 'MPI_Wti') == 1) return",
}
# mpif.h's MPI_Alloc_mem gives an address as a number; MPI_Free_mem takes the memory.
FREE_MEMORY = '''
  subroutine free_memory(address)
    integer(MPI_ADDRESS_KIND), intent(in) :: address
    integer, pointer :: there(:)
    type(c_ptr) :: place
    place = transfer(address, place)
    call c_f_pointer(place, there, [25])
    call count_call('MPI_Free_mem')
    call MPI_Free_mem(there, ierr)
    call must_succeed('MPI_Free_mem')
  end subroutine
'''
BEGIN = '''
integer :: dims(2) = [2, 2], index_(4) = [1, 3, 5, 6], edges(6) = [1, 0, 2, 1, 3, 2], lengths(2) = [1, 2], one(1), other_one(1)
integer(MPI_ADDRESS_KIND) :: places(2) = [0, 8]
logical :: periods(2) = [.true., .false.]
character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
@MPI_Comm_rank(MPI_COMM_WORLD, rank)
@MPI_Comm_size(MPI_COMM_WORLD, size)
if (size /= 4) error stop 'not 4 ranks'
to = mod(rank + 1, size)
from = mod(rank + size - 1, size)
@MPI_Get_library_version(version, n)
first = 1
is_open_mpi = index(version, 'Open MPI') == 1
is_open_mpi_5 = index(version, 'Open MPI v5') == 1
is_mpich_5 = index(version, 'MPICH Version:') == 1 .and. index(version, ' 5.') > 0
[f08] if (index(version(1:40), 'MPICH Version:') == 1 .and. index(version(1:40), '4.0') > 0) first = 0
@MPI_Barrier(MPI_COMM_SELF)
@MPI_Comm_split(MPI_COMM_WORLD, rank / 2, -rank, halves)
@MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., cart)
@MPI_Graph_create(MPI_COMM_WORLD, 4, index_, edges, .false., graph)
one = from
other_one = to
@MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, one, MPI_UNWEIGHTED, 1, other_one, MPI_UNWEIGHTED, MPI_INFO_NULL, .false., adjacent)
@MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, parity)
@MPI_Intercomm_create(parity, 0, MPI_COMM_WORLD, 1 - mod(rank, 2), 8, inter)
#coll 7
#commCreate 7
@MPI_Type_vector(3, 1, 2, MPI_INTEGER, vector)
@MPI_Type_commit(vector)
types(1) = MPI_CHARACTER
types(2) = MPI_INTEGER
@MPI_Type_create_struct(2, lengths, places, types, structure)
@MPI_Type_commit(structure)
'''
END = '''
@MPI_Type_free(vector)
@MPI_Type_free(structure)
@MPI_Comm_free(inter)
@MPI_Comm_free(parity)
@MPI_Comm_free(adjacent)
@MPI_Comm_free(graph)
@MPI_Comm_free(cart)
@MPI_Comm_free(halves)
#commFree 6
#exit 1
#gap 0
call count_call('MPI_Finalize')
do i = 1, most
if (called(i) /= '') write (*, '("expect calls ", I0, 1X, A, 1X, I0)') rank, trim(called(i)), calls(i)
if (recorded(i) /= '') write (*, '("expect events ", I0, 1X, A, 1X, I0)') rank, trim(recorded(i)), events(i)
end do
flush (6)
'''


def program(binding):
    """(text, functions that are called)"""
    f08 = binding == 'f08'
    renderer = fortran.Renderer(binding)
    handles = ['COMM :: halves, cart, graph, adjacent, inter, parity, c, new_comm', 'REQUEST :: request, requests(4)',
               'STATUS :: status, other, statuses(4)', 'DATATYPE :: vector, structure, types(16)', 'MESSAGE :: message']
    text = [DATA.format(use='  use mpi_f08' if f08 else '', include='' if f08 else "  include 'mpif.h'",
                        handles='\n'.join('  ' + renderer.words(line) for line in handles)),
            fortran_local_calls.CALLBACKS[binding]]
    tables = list(fortran_tables.point_to_point_cases()) + list(fortran_tables.collective_cases())
    others = list(fortran_local_calls.cases()) + list(fortran_windows_files.cases())
    names = [re.sub(r'\W', '_', name) for name, _ in tables + others]
    assert len(set(names)) == len(names), [n for n in names if names.count(n) > 1]
    main = ['program conformance', '  use conformance_data', '  implicit none']
    externals = 'add_twice, count_errors, ignore_window_errors, ignore_file_errors, grequest_query, grequest_free, ' \
                'grequest_cancel'
    if f08:
        main += ['  interface'] + [f'    {line}' for line in interfaces()] + ['  end interface']
    else:
        main.append(f'  external {externals}')
    main += ['  character(len=64) :: how', '  call get_command_argument(1, folder)', '  call get_command_argument(2, how)',
             "  call get_environment_variable('LEFT_OUT', left_out)",
             "  run_all = how == ''", "  call count_call('MPI_Init')", '  call MPI_Init(ierr)', '  call case_0()']
    for number, name in enumerate(names, 1):
        skipped = number <= len(tables) and number % QUICK != 0
        quick = '' if skipped else " .or. how == 'quick'"
        calls = ' '.join(sorted(set(re.findall(r'\bMPI_[A-Z][a-z_]+', (tables + others)[number - 1][1]))))
        main.append(f"  if ((run_all{quick} .or. how == '{name}') .and. .not. is_left_out('{name} {calls}')) call case_{number}()")
    main += [f'  call case_{len(names) + 1}()', '  call MPI_Finalize(ierr)', 'contains']
    cases = [('begin', BEGIN)] + [(name, body) for name, (_, body) in zip(names, tables + others)] + [('end', END)]
    peers = '\n'.join('    ' + renderer.words(line) for line in ('COMM :: comm', 'DATATYPE :: kind'))
    peers = peers.replace(' ::', ', intent(in) ::')
    main.append(HELPERS.replace('{peers}', peers).replace('{unseen}', UNSEEN[binding]))
    main += [] if f08 else [FREE_MEMORY]
    for number, (name, body) in enumerate(cases):
        main += ['  ' + line for line in renderer.case(name, body, number)]
    main.append('end program')
    counted = set(re.findall(r"count_call\('(MPI_\w+)'\)", '\n'.join(main)))
    return '\n'.join(text + main) + '\n', renderer.called | counted, len(names)


def interfaces():
    """Heads of the callbacks, for mpi_f08's checks of arguments."""
    lines = []
    for procedure in re.findall(r'subroutine .*?end subroutine', fortran_local_calls.CALLBACKS['f08'], re.S):
        for line in procedure.split('\n'):
            declares = re.match(r'\s*(type\(|integer(\(MPI_ADDRESS_KIND\))? ::|logical ::)', line)
            if line.startswith(('subroutine', 'end subroutine')) or declares and 'pointer' not in line:
                lines.append(line.replace(', n\n', '\n'))
            if line.startswith('subroutine'):
                lines += ['use mpi_f08', 'use, intrinsic :: iso_c_binding']
    return lines


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding='utf-8') as file:
        functions = yaml.safe_load(file)['functions']
    excused = [re.compile(pattern) for pattern in NOT_HERE.values()]
    for binding in ('mpifh', 'f08'):
        text, called, _ = program(binding)
        missing = [f['name'] for f in functions if binding in f.get('fortran', []) and f['name'] not in called and
                   'since' not in f and not any(p.fullmatch(f['name']) for p in excused)]
        if missing:
            sys.exit(f'no conformance case calls, through {binding}: ' + ', '.join(missing))
        unknown = called - {f['name'] for f in functions}
        if unknown:
            sys.exit('not in mpi_functions.yml: ' + ', '.join(sorted(unknown)))
        with open(os.path.join(sys.argv[2], f'conformance_{binding}.f90'), 'w', encoding='utf-8') as file:
            file.write(text)


if __name__ == '__main__':
    main()
