"""Fortran cases of one-sided communication and MPI-IO (fortran.py says in which form)."""

CASES = {}

WINDOW = '''
WIN :: w
integer(MPI_ADDRESS_KIND) :: where_is
@MPI_Win_create(memory, ADDRESS(4 * 64), 4, MPI_INFO_NULL, MPI_COMM_WORLD, w)
do i = 1, 64
memory(i) = 1000 * rank + i - 1
end do
@MPI_Barrier(MPI_COMM_WORLD)
#coll 2
#commCreate 1
'''
FREE = '''
@MPI_Win_free(w)
#oneSidedSync 1
#coll 1
#commFree 1
'''
FENCE = '''
@MPI_Win_fence(0, w)
#oneSidedSync 1
#coll 1
'''
CASES['window_fences'] = WINDOW + FENCE + '''
out(1:4) = [rank, rank + 1, rank + 2, rank + 3]
@MPI_Put(out, 4, MPI_INTEGER, to, ADDRESS(8), 4, MPI_INTEGER, w)
@MPI_Put(out, 4, MPI_INTEGER, MPI_PROC_NULL, ADDRESS(8), 4, MPI_INTEGER, w)
#oneSided 1
''' + FENCE + '''
=memory(9:12)
@MPI_Get(in, 4, MPI_INTEGER, to, ADDRESS(0), 4, MPI_INTEGER, w)
#oneSided 1
''' + FENCE + '''
=in(1:4)
@MPI_Accumulate(out, 1, MPI_INTEGER, 0, ADDRESS(20), 1, MPI_INTEGER, MPI_SUM, w)
#oneSided 1
''' + FENCE + '=memory(21)\n' + FREE
CASES['window_locks'] = WINDOW + '''
integer :: value(1), old(1), compare(1), add(2), got(2)
value = 7 + rank
old = -1
compare = 5
if (rank /= 0) then
@MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w)
@MPI_Put(value, 1, MPI_INTEGER, 0, ADDRESS(rank), 1, MPI_INTEGER, w)
@MPI_Win_flush_local(0, w)
@MPI_Win_flush(0, w)
@MPI_Win_unlock(0, w)
#oneSided 2
#oneSidedSync 3
end if
@MPI_Barrier(MPI_COMM_WORLD)
if (rank == 0) then
@MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, w)
=memory(1:4)
@MPI_Win_unlock(0, w)
#oneSidedSync 1
end if
@MPI_Win_lock_all(0, w)
value = 1
@MPI_Fetch_and_op(value, old, MPI_INTEGER, 0, ADDRESS(40), MPI_SUM, w)
@MPI_Win_flush_all(w)
@MPI_Compare_and_swap(value, compare, old, MPI_INTEGER, 0, ADDRESS(5), w)
@MPI_Win_flush_local_all(w)
add = 1
got = -1
@MPI_Get_accumulate(add, 2, MPI_INTEGER, got, 2, MPI_INTEGER, to, ADDRESS(50), 2, MPI_INTEGER, MPI_SUM, w)
@MPI_Win_sync(w)
@MPI_Win_unlock_all(w)
=got
#oneSided 3
#oneSidedSync 4
@MPI_Barrier(MPI_COMM_WORLD)
#coll 2
if (rank == 0) then
=memory(41)
end if
''' + FREE
CASES['window_requests'] = WINDOW + '''
integer :: both(1)
out(1) = rank
@MPI_Win_lock_all(MPI_MODE_NOCHECK, w)
@MPI_Rput(out, 1, MPI_INTEGER, to, ADDRESS(0), 1, MPI_INTEGER, w, requests(1))
@MPI_Rget(in, 1, MPI_INTEGER, to, ADDRESS(9), 1, MPI_INTEGER, w, requests(2))
@MPI_Raccumulate(out, 1, MPI_INTEGER, to, ADDRESS(10), 1, MPI_INTEGER, MPI_SUM, w, requests(3))
@MPI_Rget_accumulate(out, 1, MPI_INTEGER, both, 1, MPI_INTEGER, to, ADDRESS(11), 1, MPI_INTEGER, MPI_SUM, w, requests(4))
@MPI_Wait(requests(2), MPI_STATUS_IGNORE)
@MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
=in(1), both
@MPI_Win_unlock_all(w)
#oneSided 4
#wait 4
#oneSidedSync 2
''' + FREE
CASES['window_post_and_start'] = WINDOW + '''
GROUP :: world, before, after
integer :: one(1)
@MPI_Comm_group(MPI_COMM_WORLD, world)
one = from
@MPI_Group_incl(world, 1, one, before)
one = to
@MPI_Group_incl(world, 1, one, after)
out(1) = rank
do i = 1, 2
@MPI_Win_post(before, 0, w)
@MPI_Win_start(after, 0, w)
@MPI_Put(out, 1, MPI_INTEGER, to, ADDRESS(i), 1, MPI_INTEGER, w)
@MPI_Win_complete(w)
if (i == 1) then
@MPI_Win_wait(w)
else
flag = .false.
do while (.not. flag)
@MPI_Win_test(w, flag)
end do
end if
=memory(i + 1)
#send 2
#recv 2
#oneSided 1
#oneSidedSync 1
end do
@MPI_Group_free(before)
@MPI_Group_free(after)
@MPI_Group_free(world)
''' + FREE
CASES['window_kinds'] = '''
WIN :: w
integer(MPI_ADDRESS_KIND) :: here(1), there(1), bytes
COMM :: node
[f08] type(c_ptr) :: base
[mpifh] integer(MPI_ADDRESS_KIND) :: base
integer :: unit
@MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, w)
@MPI_Win_attach(w, memory, ADDRESS(256))
@MPI_Get_address(memory, here(1))
@MPI_Sendrecv(here, 1, MPI_AINT, from, 0, there, 1, MPI_AINT, to, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
#coll 1
#commCreate 1
#startRecv 1
#send 1
#endRecv 1
#oneSided 1
''' + FENCE + '''
out(1) = rank + 1
@MPI_Put(out, 1, MPI_INTEGER, to, there(1), 1, MPI_INTEGER, w)
''' + FENCE + '''
=memory(1)
@MPI_Win_detach(w, memory)
''' + FREE + '''
@MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, node)
@MPI_Win_allocate(ADDRESS(64), 4, MPI_INFO_NULL, node, base, w)
''' + FENCE + '''
@MPI_Put(out, 1, MPI_INTEGER, 0, ADDRESS(5), 1, MPI_INTEGER, w)
''' + FENCE + FREE + '''
@MPI_Win_allocate_shared(ADDRESS(64), 4, MPI_INFO_NULL, node, base, w)
@MPI_Win_shared_query(w, 0, bytes, unit, base)
=bytes, unit
''' + FENCE + FREE + '''
@MPI_Comm_free(node)
#coll 3
#commCreate 3
#commFree 1
#oneSided 1
'''
CASES['window_queries'] = WINDOW + '''
GROUP :: members
INFO :: about
ERRHANDLER :: handler, other_handler
integer :: keyval
character(len=MPI_MAX_OBJECT_NAME) :: name
integer(MPI_ADDRESS_KIND) :: value
@MPI_Win_get_group(w, members)
@MPI_Group_size(members, n)
@MPI_Group_free(members)
@MPI_Win_set_name(w, 'w')
@MPI_Win_get_name(w, name, at)
=n, at
$name(1:at)
@MPI_Win_get_info(w, about)
@MPI_Win_set_info(w, about)
@MPI_Info_free(about)
@MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, keyval, ADDRESS(0))
@MPI_Win_set_attr(w, keyval, ADDRESS(4))
@MPI_Win_get_attr(w, keyval, value, flag)
=value, merge(1, 0, flag)
@MPI_Win_delete_attr(w, keyval)
@MPI_Win_free_keyval(keyval)
@MPI_Win_create_errhandler(ignore_window_errors, handler)
@MPI_Win_set_errhandler(w, handler)
@MPI_Win_call_errhandler(w, MPI_ERR_OTHER)
@MPI_Win_get_errhandler(w, other_handler)
@MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN)
?MPI_Put(out, 1, MPI_INTEGER, 999, ADDRESS(0), 1, MPI_INTEGER, w)
@MPI_Errhandler_free(handler)
''' + FENCE + FREE


def io(text):
    """Every call on a file but the queries is an `io` event; so is the wait for a non-blocking one."""
    silent = ('get_view', 'get_type_extent', 'get_group', 'get_info', 'get_amode', 'get_atomicity', 'get_byte_offset',
              'get_position', 'errhandler')
    lines = []
    for line in text.split('\n'):
        lines.append(line)
        if line.startswith('@MPI_File_') and not any(f'MPI_File_{s}(' in line or s == 'errhandler' and s in line
                                                     for s in silent):
            lines.append('#io 1')
        elif line.startswith('@MPI_Wait'):
            lines.append('#io 1')
    return '\n'.join(lines)


OPEN = '''
FILE :: f
character(len=4096) :: path
path = trim(folder) // '/' // case_name
@MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, f)
call fill(1)
'''
CLOSE = '''
@MPI_File_close(f)
@MPI_Barrier(MPI_COMM_WORLD)
#coll 1
if (rank == 0) then
@MPI_File_delete(path, MPI_INFO_NULL)
end if
'''
CASES['file_queries'] = io(OPEN + '''
FILE :: no_file
GROUP :: members
INFO :: about
DATATYPE :: etype, filetype
ERRHANDLER :: handler
integer(MPI_OFFSET_KIND) :: offset_found
integer(MPI_ADDRESS_KIND) :: extent
character(len=MPI_MAX_DATAREP_STRING) :: representation
if (is_open_mpi) then ! Debian's MPICH 4.0 crashes in it, captured or not
?MPI_File_open(MPI_COMM_SELF, '/nowhere/at/all', MPI_MODE_RDONLY, MPI_INFO_NULL, no_file)
end if
@MPI_File_preallocate(f, OFFSET(4096))
@MPI_File_set_size(f, OFFSET(4096))
@MPI_File_get_size(f, offset_found)
=offset_found
@MPI_File_set_view(f, OFFSET(0), MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL)
@MPI_File_get_view(f, offset_found, etype, filetype, representation)
$representation
@MPI_File_get_type_extent(f, MPI_INTEGER, extent)
@MPI_File_get_group(f, members)
@MPI_Group_free(members)
@MPI_File_get_info(f, about)
@MPI_File_set_info(f, about)
@MPI_Info_free(about)
@MPI_File_get_amode(f, n)
=merge(1, 0, n == MPI_MODE_CREATE + MPI_MODE_RDWR)
@MPI_File_set_atomicity(f, .false.)
@MPI_File_get_atomicity(f, flag)
@MPI_File_get_byte_offset(f, OFFSET(3), offset_found)
=offset_found, extent
@MPI_File_create_errhandler(ignore_file_errors, handler)
@MPI_File_set_errhandler(f, handler)
@MPI_File_call_errhandler(f, MPI_ERR_OTHER)
@MPI_Errhandler_free(handler)
@MPI_File_get_errhandler(f, handler)
@MPI_Errhandler_free(handler)
''' + CLOSE)
CASES['file_explicit_offsets'] = io(OPEN + '''
@MPI_File_write_at(f, OFFSET(rank * 64), out, 16, MPI_INTEGER, status)
@MPI_File_write_at_all(f, OFFSET(256 + rank * 64), out, 16, MPI_INTEGER, MPI_STATUS_IGNORE)
@MPI_File_sync(f)
@MPI_File_read_at(f, OFFSET(rank * 64), in, 16, MPI_INTEGER, status)
@MPI_Get_count(status, MPI_INTEGER, n)
=n, hash(in)
@MPI_File_read_at_all(f, OFFSET(256 + rank * 64), in, 16, MPI_INTEGER, status)
@MPI_File_write_at_all_begin(f, OFFSET(rank * 64), out, 16, MPI_INTEGER)
@MPI_File_write_at_all_end(f, out, status)
@MPI_File_read_at_all_begin(f, OFFSET(rank * 64), in, 16, MPI_INTEGER)
@MPI_File_read_at_all_end(f, in, status)
@MPI_File_iwrite_at(f, OFFSET(rank * 64), out, 16, MPI_INTEGER, request)
@MPI_Wait(request, status)
@MPI_File_iread_at(f, OFFSET(rank * 64), in, 16, MPI_INTEGER, request)
do while (.not. flag)
@MPI_Test(request, flag, status)
end do
#io 1
@MPI_File_iwrite_at_all(f, OFFSET(rank * 64), out, 16, MPI_INTEGER, request)
@MPI_Wait(request, status)
@MPI_File_iread_at_all(f, OFFSET(rank * 64), in, 16, MPI_INTEGER, requests(1))
@MPI_Waitall(1, requests, MPI_STATUSES_IGNORE)
=hash(in)
''' + CLOSE)
CASES['file_own_pointers'] = io(OPEN + '''
integer(MPI_OFFSET_KIND) :: offset_found
@MPI_File_seek(f, OFFSET(rank * 64), MPI_SEEK_SET)
@MPI_File_get_position(f, offset_found)
=offset_found
@MPI_File_write(f, out, 4, MPI_INTEGER, status)
@MPI_File_seek(f, OFFSET(rank * 64), MPI_SEEK_SET)
@MPI_File_read(f, in, 4, MPI_INTEGER, status)
@MPI_File_write_all(f, out, 4, MPI_INTEGER, status)
@MPI_File_seek(f, OFFSET(rank * 64), MPI_SEEK_SET)
@MPI_File_read_all(f, in, 4, MPI_INTEGER, MPI_STATUS_IGNORE)
@MPI_File_write_all_begin(f, out, 4, MPI_INTEGER)
@MPI_File_write_all_end(f, out, status)
@MPI_File_seek(f, OFFSET(rank * 64), MPI_SEEK_SET)
@MPI_File_read_all_begin(f, in, 4, MPI_INTEGER)
@MPI_File_read_all_end(f, in, status)
@MPI_File_iwrite(f, out, 4, MPI_INTEGER, request)
@MPI_Wait(request, status)
@MPI_File_seek(f, OFFSET(rank * 64), MPI_SEEK_SET)
@MPI_File_iread(f, in, 4, MPI_INTEGER, request)
@MPI_Wait(request, status)
@MPI_File_iwrite_all(f, out, 4, MPI_INTEGER, request)
@MPI_Wait(request, status)
@MPI_File_seek(f, OFFSET(rank * 64), MPI_SEEK_SET)
@MPI_File_iread_all(f, in, 4, MPI_INTEGER, request)
@MPI_Wait(request, status)
=hash(in)
''' + CLOSE)


def cases():
    yield from CASES.items()
