"""Fortran cases of functions without communication, of communicator creation, errors, callbacks (fortran.py says in
which form)."""

CASES = {}

CASES['groups'] = '''
GROUP :: world, a, b, c
integer :: ranks(2) = [0, 2], both(2) = [0, 1], translated(2), ranges(3, 1), relation, r
@MPI_Comm_group(MPI_COMM_WORLD, world)
@MPI_Group_incl(world, 2, ranks, a)
@MPI_Group_excl(world, 2, ranks, b)
@MPI_Group_size(a, n)
@MPI_Group_rank(a, r)
@MPI_Group_translate_ranks(a, 2, both, world, translated)
=n, merge(-1, r, r == MPI_UNDEFINED), translated
@MPI_Group_union(a, b, c)
@MPI_Group_compare(c, world, relation)
=merge(1, 0, relation == MPI_SIMILAR)
@MPI_Group_free(c)
@MPI_Group_intersection(a, world, c)
@MPI_Group_free(c)
@MPI_Group_difference(world, a, c)
@MPI_Group_free(c)
ranges(:, 1) = [0, 3, 2]
@MPI_Group_range_incl(world, 1, ranges, c)
@MPI_Group_free(c)
@MPI_Group_range_excl(world, 1, ranges, c)
@MPI_Group_free(c)
@MPI_Group_free(a)
@MPI_Group_free(b)
@MPI_Group_free(world)
'''
CASES['communicator_queries'] = '''
GROUP :: a
INFO :: about
COMM :: parent
integer :: relation, length
character(len=MPI_MAX_OBJECT_NAME) :: name
@MPI_Comm_size(halves, n)
@MPI_Comm_rank(halves, at)
@MPI_Comm_compare(halves, MPI_COMM_WORLD, relation)
@MPI_Comm_test_inter(inter, flag)
@MPI_Comm_remote_size(inter, length)
=n, at, merge(1, 0, relation == MPI_UNEQUAL), merge(1, 0, flag), length
@MPI_Comm_remote_group(inter, a)
@MPI_Group_free(a)
@MPI_Comm_set_name(halves, 'half')
@MPI_Comm_get_name(halves, name, length)
=length
$name(1:length)
@MPI_Comm_get_info(halves, about)
@MPI_Comm_set_info(halves, about)
@MPI_Info_free(about)
@MPI_Comm_get_parent(parent)
=merge(1, 0, parent == MPI_COMM_NULL)
'''
CASES['communicator_creation'] = '''
COMM :: made, other_comm
GROUP :: all, odd
integer :: members(2) = [1, 3]
@MPI_Comm_dup(MPI_COMM_WORLD, made)
@MPI_Barrier(made)
@MPI_Comm_free(made)
@MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, made)
@MPI_Comm_disconnect(made)
@MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, made)
@MPI_Comm_free(made)
#coll 4
#commCreate 3
#commFree 3
@MPI_Comm_idup(MPI_COMM_WORLD, new_comm, request)
@MPI_Wait(request, MPI_STATUS_IGNORE)
@MPI_Comm_free(new_comm)
#icoll 1
#wait 1
#commCreate 1
#commFree 1
@MPI_Comm_group(MPI_COMM_WORLD, all)
@MPI_Group_incl(all, 2, members, odd)
@MPI_Comm_create(MPI_COMM_WORLD, odd, made)
#coll 1
if (mod(rank, 2) == 1) then
@MPI_Comm_create_group(MPI_COMM_WORLD, odd, 3, other_comm)
@MPI_Comm_free(other_comm)
@MPI_Comm_free(made)
#coll 1
#commCreate 2
#commFree 2
end if
@MPI_Group_free(odd)
@MPI_Group_free(all)
@MPI_Intercomm_merge(inter, mod(rank, 2) == 1, made)
@MPI_Comm_free(made)
#coll 1
#commCreate 1
#commFree 1
'''
CASES['topologies'] = '''
COMM :: made
integer :: dims(2), coords(2), d, index_(4), edges(8), neighbours(4), weights(4), source_rank, target_rank, others(1), ones(1)
logical :: periods(2), remain(2), weighted
dims = 0
remain = [.false., .true.]
@MPI_Dims_create(size, 2, dims)
@MPI_Cartdim_get(cart, d)
@MPI_Cart_get(cart, 2, dims, periods, coords)
@MPI_Cart_rank(cart, coords, n)
@MPI_Cart_coords(cart, n, 2, coords)
@MPI_Cart_shift(cart, 0, 1, source_rank, target_rank)
@MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, n)
=d, coords, source_rank, target_rank
@MPI_Cart_sub(cart, remain, made)
@MPI_Comm_free(made)
@MPI_Topo_test(graph, n)
@MPI_Graphdims_get(graph, n, d)
@MPI_Graph_get(graph, n, d, index_, edges)
@MPI_Graph_neighbors_count(graph, rank, n)
@MPI_Graph_neighbors(graph, rank, n, neighbours)
=n, d, neighbours(1)
@MPI_Graph_map(MPI_COMM_WORLD, size, index_, edges, n)
@MPI_Dist_graph_neighbors_count(adjacent, n, d, weighted)
@MPI_Dist_graph_neighbors(adjacent, n, neighbours, weights, d, coords, weights)
=n, d, neighbours(1), merge(1, 0, weighted)
others(1) = mod(rank + 1, size)
ones(1) = 1
indices(1) = rank
@MPI_Dist_graph_create(MPI_COMM_WORLD, 1, indices, ones, others, MPI_UNWEIGHTED, MPI_INFO_NULL, .false., made)
@MPI_Comm_free(made)
@MPI_Dist_graph_create(MPI_COMM_WORLD, 1, indices, ones, others, ones, MPI_INFO_NULL, .false., made)
@MPI_Comm_free(made)
@MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, others, MPI_WEIGHTS_EMPTY, 0, others, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, .false., made)
@MPI_Neighbor_allgather(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, made)
@MPI_Comm_free(made)
#coll 5
#commCreate 4
#commFree 4
'''
CASES['attributes'] = '''
integer(MPI_ADDRESS_KIND) :: value
integer :: keyval, old
@MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, keyval, ADDRESS(0))
@MPI_Comm_set_attr(halves, keyval, ADDRESS(5))
@MPI_Comm_get_attr(halves, keyval, value, flag)
=merge(1, 0, flag), value
@MPI_Comm_delete_attr(halves, keyval)
@MPI_Comm_free_keyval(keyval)
@MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, keyval, ADDRESS(0))
@MPI_Type_set_attr(vector, keyval, ADDRESS(6))
@MPI_Type_get_attr(vector, keyval, value, flag)
@MPI_Type_delete_attr(vector, keyval)
@MPI_Type_free_keyval(keyval)
@MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
=merge(1, 0, flag), merge(1, 0, value > 32766)
[mpifh] @MPI_Keyval_create(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, keyval, 0)
[mpifh] @MPI_Attr_put(halves, keyval, 8)
[mpifh] @MPI_Attr_get(halves, keyval, old, flag)
[mpifh] =old
[mpifh] @MPI_Attr_delete(halves, keyval)
[mpifh] @MPI_Keyval_free(keyval)
'''
CASES['datatypes'] = '''
DATATYPE :: a, b, c, types_found(8)
integer :: lengths(2) = [1, 2], places(2) = [0, 3], sizes(2) = [4, 4], subsizes(2) = [2, 2], starts(2) = [1, 1]
integer :: combiner, dims(2) = [2, 2], integers, addresses, types_in, integers_found(8)
integer :: distribs(2) = [MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE]
integer :: dargs(2) = [MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG]
integer(MPI_ADDRESS_KIND) :: bytes_apart(2) = [0, 24], lower, extent, addresses_found(8)
integer(MPI_COUNT_KIND) :: big, big_lower
character(len=MPI_MAX_OBJECT_NAME) :: name
@MPI_Type_contiguous(3, MPI_INTEGER, a)
@MPI_Type_commit(a)
@MPI_Type_size(a, n)
@MPI_Type_size_x(a, big)
@MPI_Type_get_extent(a, lower, extent)
@MPI_Type_get_extent_x(a, big_lower, big)
@MPI_Type_get_true_extent(a, lower, extent)
@MPI_Type_get_true_extent_x(a, big_lower, big)
=n, extent, big
@MPI_Type_get_envelope(a, integers, addresses, types_in, combiner)
@MPI_Type_get_contents(a, integers, addresses, types_in, integers_found, addresses_found, types_found)
=integers, types_in, integers_found(1)
@MPI_Type_set_name(a, 'three')
@MPI_Type_get_name(a, name, n)
$name(1:n)
@MPI_Type_dup(a, b)
@MPI_Type_free(b)
@MPI_Type_indexed(2, lengths, places, MPI_INTEGER, b)
@MPI_Type_free(b)
@MPI_Type_create_hindexed(2, lengths, bytes_apart, MPI_INTEGER, b)
@MPI_Type_free(b)
@MPI_Type_create_indexed_block(2, 2, places, MPI_INTEGER, b)
@MPI_Type_free(b)
@MPI_Type_create_hindexed_block(2, 2, bytes_apart, MPI_INTEGER, b)
@MPI_Type_free(b)
@MPI_Type_create_hvector(2, 1, ADDRESS(32), MPI_INTEGER, b)
@MPI_Type_free(b)
@MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_INTEGER, b)
@MPI_Type_free(b)
@MPI_Type_create_darray(size, rank, 2, sizes, distribs, dargs, dims, MPI_ORDER_FORTRAN, MPI_INTEGER, b)
@MPI_Type_free(b)
@MPI_Type_create_resized(a, ADDRESS(0), ADDRESS(64), c)
@MPI_Type_size(c, n)
=n
@MPI_Type_free(c)
@MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, c)
@MPI_Type_free(a)
'''
CASES['parameterised_types'] = '''
DATATYPE :: a
@MPI_Type_create_f90_integer(6, a)
@MPI_Type_size(a, n)
=n
@MPI_Sendrecv(out, 3, a, to, 1, in, 3, a, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
@MPI_Type_create_f90_real(12, MPI_UNDEFINED, a)
@MPI_Type_size(a, n)
=n
@MPI_Type_create_f90_complex(12, MPI_UNDEFINED, a)
@MPI_Type_size(a, n)
=n
#send 1
#startRecv 1
#endRecv 1
'''
CASES['packing'] = '''
integer :: two(2), back(2)
integer(MPI_ADDRESS_KIND) :: external_at, external
two = [rank, 9]
back = 0
at = 0
external_at = 0
@MPI_Pack_size(2, MPI_INTEGER, MPI_COMM_WORLD, n)
@MPI_Pack(two, 2, MPI_INTEGER, out, 64, at, MPI_COMM_WORLD)
n = at
at = 0
@MPI_Unpack(out, n, at, back, 2, MPI_INTEGER, MPI_COMM_WORLD)
=n, back
@MPI_Pack_external_size('external32', 2, MPI_INTEGER, external)
@MPI_Pack_external('external32', two, 2, MPI_INTEGER, out, ADDRESS(64), external_at)
external_at = 0
@MPI_Unpack_external('external32', out, external, external_at, back, 2, MPI_INTEGER)
=external, back(2)
@MPI_Sendrecv(out, 8, MPI_PACKED, to, 0, in, 8, MPI_PACKED, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
#send 1
#startRecv 1
#endRecv 1
'''
CASES['operations'] = '''
OP :: ours
integer :: a(2), b(2)
a = [rank, 1]
b = 0
@MPI_Op_create(add_twice, .true., ours)
@MPI_Op_commutative(ours, flag)
@MPI_Allreduce(a, b, 2, MPI_INTEGER, ours, MPI_COMM_WORLD)
=merge(1, 0, flag), b
@MPI_Op_free(ours)
@MPI_Reduce_local(a, b, 2, MPI_INTEGER, MPI_SUM)
#coll 1
'''
CASES['statuses'] = '''
integer(MPI_COUNT_KIND) :: big
@MPI_Status_set_elements(status, MPI_INTEGER, 3)
@MPI_Status_set_elements_x(status, MPI_INTEGER, COUNT(3))
@MPI_Status_set_cancelled(status, .true.)
@MPI_Get_count(status, MPI_INTEGER, n)
@MPI_Get_elements(status, MPI_INTEGER, n)
@MPI_Get_elements_x(status, MPI_INTEGER, big)
@MPI_Test_cancelled(status, flag)
=n, big, merge(1, 0, flag)
'''
CASES['info'] = '''
INFO :: a, b
integer :: length
character(len=64) :: value
character(len=MPI_MAX_INFO_KEY) :: key
@MPI_Info_create(a)
@MPI_Info_set(a, 'color', 'blue')
@MPI_Info_dup(a, b)
@MPI_Info_get(b, 'color', 63, value, flag)
$value
@MPI_Info_get_valuelen(b, 'color', length, flag)
@MPI_Info_get_nkeys(b, n)
@MPI_Info_get_nthkey(b, 0, key)
=length, n, merge(1, 0, flag)
$key
@MPI_Info_delete(b, 'color')
@MPI_Info_free(b)
@MPI_Info_free(a)
'''
CASES['environment'] = '''
integer :: a, b
character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: text
character(len=MPI_MAX_PROCESSOR_NAME) :: node
character(len=MPI_MAX_ERROR_STRING) :: message_text
integer(MPI_ADDRESS_KIND) :: place
[f08] type(c_ptr) :: memory
[mpifh] integer(MPI_ADDRESS_KIND) :: memory
@MPI_Get_version(a, b)
=a, b
@MPI_Get_library_version(text, n)
@MPI_Get_processor_name(node, n)
@MPI_Initialized(flag)
=merge(1, 0, flag)
@MPI_Finalized(flag)
=merge(1, 0, flag)
@MPI_Query_thread(b)
@MPI_Is_thread_main(flag)
=merge(1, 0, flag)
@MPI_Alloc_mem(ADDRESS(100), MPI_INFO_NULL, memory)
[f08] call c_f_pointer(memory, words, [25])
[f08] @MPI_Free_mem(words)
[mpifh] call free_memory(memory)
@MPI_Get_address(n, place)
=merge(1, 0, place /= 0)
@MPI_Error_string(MPI_ERR_RANK, message_text, a)
$message_text(1:a)
@MPI_Error_class(MPI_ERR_RANK, a)
@MPI_Add_error_class(a)
@MPI_Add_error_code(a, b)
@MPI_Add_error_string(b, 'ours')
message_text = ''
@MPI_Error_string(b, message_text, a)
$message_text(1:a)
call count_call('MPI_Wtime')
call count_call('MPI_Wtick')
=merge(1, 0, MPI_Wtime() > 0), merge(1, 0, MPI_Wtick() > 0)
@MPI_Pcontrol(2)
#phase 1
'''
CASES['error_handlers'] = '''
ERRHANDLER :: handler, before
@MPI_Comm_create_errhandler(count_errors, handler)
@MPI_Comm_get_errhandler(MPI_COMM_WORLD, before)
@MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler)
errors_handled = 0
?MPI_Send(out, 1, MPI_INTEGER, 999, 0, MPI_COMM_WORLD)
?MPI_Irecv(in, -1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, request)
@MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER)
=errors_handled
@MPI_Comm_set_errhandler(MPI_COMM_WORLD, before)
@MPI_Errhandler_free(handler)
'''
CASES['proc_null'] = '''
@MPI_Send(out, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD)
@MPI_Recv(in, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, status)
=merge(1, 0, SOURCE_OF(status) == MPI_PROC_NULL), merge(1, 0, TAG_OF(status) == MPI_ANY_TAG)
@MPI_Isend(out, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, requests(1))
@MPI_Irecv(in, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, requests(2))
@MPI_Waitall(2, requests, statuses)
@MPI_Probe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, status)
@MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, message, status)
@MPI_Mrecv(in, 1, MPI_INTEGER, message, status)
=merge(1, 0, SOURCE_OF(status) == MPI_PROC_NULL)
'''
CASES['null_and_inactive_requests'] = '''
@MPI_Wait(requests(1), status)
@MPI_Waitany(2, requests, at, status)
=merge(1, 0, at == MPI_UNDEFINED)
@MPI_Testall(2, requests, flag, statuses)
@MPI_Recv_init(in, 1, MPI_INTEGER, from, 1, MPI_COMM_WORLD, requests(1))
@MPI_Test(requests(1), flag, status)
=merge(1, 0, flag)
@MPI_Request_free(requests(1))
'''
CASES['cancelled_receive'] = '''
@MPI_Irecv(in, 1, MPI_INTEGER, from, 7777, MPI_COMM_WORLD, requests(1))
@MPI_Cancel(requests(1))
@MPI_Wait(requests(1), status)
@MPI_Test_cancelled(status, flag)
=merge(1, 0, flag)
#startRecv 1
#cancel 1
'''
# The receive's match is in the status: it is recorded. MPICH's has another length than the message (conformance in C).
CASES['truncated_recv'] = '''
if (.not. is_open_mpi) return
call errors_return(.true.)
@MPI_Isend(out, 4, MPI_INTEGER, to, 9001, MPI_COMM_WORLD, request)
?MPI_Recv(in, 1, MPI_INTEGER, MPI_ANY_SOURCE, 9001, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
@MPI_Wait(request, MPI_STATUS_IGNORE)
call errors_return(.false.)
@MPI_Barrier(MPI_COMM_WORLD)
#isend 1
#recv 1
#wait 1
#coll 1
'''
CASES['bottom'] = '''
DATATYPE :: there
integer(MPI_ADDRESS_KIND) :: places(1)
integer :: ones(1) = [4], back(4)
back = 0
call fill(3)
@MPI_Get_address(out, places(1))
@MPI_Type_create_hindexed(1, ones, places, MPI_INTEGER, there)
@MPI_Type_commit(there)
@MPI_Sendrecv(MPI_BOTTOM, 1, there, to, 3, back, 4, MPI_INTEGER, from, 3, MPI_COMM_WORLD, status)
@MPI_Get_count(status, MPI_INTEGER, n)
=n, back
@MPI_Bcast(MPI_BOTTOM, 1, there, 2, MPI_COMM_WORLD)
=hash(out)
@MPI_Type_free(there)
#send 1
#startRecv 1
#endRecv 1
#coll 1
'''
CASES['generalised_requests'] = '''
@MPI_Grequest_start(grequest_query, grequest_free, grequest_cancel, ADDRESS(0), request)
@MPI_Grequest_complete(request)
@MPI_Wait(request, status)
=TAG_OF(status)
#unmodelled 3
'''

# Calls that fail: a class of error as bare, and no event.
ERRORS = {
    'MPI_Send': ['out, 1, MPI_INTEGER, 999, 0, MPI_COMM_WORLD', 'out, -1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD',
                 'out, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD', 'out, 1, MPI_INTEGER, 0, -5, MPI_COMM_WORLD',
                 'out, 1, MPI_INTEGER, 0, 0, MPI_COMM_NULL'],
    'MPI_Ssend': ['out, 1, MPI_INTEGER, 999, 0, MPI_COMM_WORLD'],
    'MPI_Recv': ['in, -1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE',
                 'in, 1, MPI_INTEGER, 999, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE'],
    'MPI_Isend': ['out, 1, MPI_INTEGER, 999, 0, MPI_COMM_WORLD, request'],
    'MPI_Irecv': ['in, 1, MPI_INTEGER, 999, 0, MPI_COMM_WORLD, request'],
    'MPI_Send_init': ['out, 1, MPI_INTEGER, 999, 0, MPI_COMM_WORLD, request'],
    'MPI_Recv_init': ['in, 1, MPI_INTEGER, 999, 0, MPI_COMM_WORLD, request'],
    'MPI_Probe': ['999, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE'],
    'MPI_Iprobe': ['999, 0, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE'],
    'MPI_Bcast': ['out, 1, MPI_INTEGER, 999, MPI_COMM_WORLD', 'out, -1, MPI_INTEGER, 0, MPI_COMM_WORLD'],
    'MPI_Reduce': ['out, in, 1, MPI_INTEGER, MPI_OP_NULL, 0, MPI_COMM_WORLD'],
    'MPI_Allreduce': ['out, in, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD'],
    'MPI_Gather': ['out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, 999, MPI_COMM_WORLD'],
    'MPI_Scatter': ['out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, 999, MPI_COMM_WORLD'],
    'MPI_Alltoall': ['out, 1, MPI_DATATYPE_NULL, in, 1, MPI_INTEGER, MPI_COMM_WORLD'],
    'MPI_Iallreduce': ['out, in, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD, request'],
    'MPI_Barrier': ['MPI_COMM_NULL'],
    'MPI_Comm_split': ['MPI_COMM_NULL, 0, 0, new_comm'],
    'MPI_Comm_dup': ['MPI_COMM_NULL, new_comm'],
    'MPI_Cart_create': ['MPI_COMM_WORLD, -1, indices, flags, .false., new_comm'],
    'MPI_Win_fence': ['0, MPI_WIN_NULL'],
}

# Of the program that contains the cases: external procedures, with the interfaces of the binding.
CALLBACKS = {
    'mpifh': '''
subroutine add_twice(a, b, n, kind)
  integer :: n, kind, a(n), b(n)
  b = b + a
end subroutine
subroutine count_errors(comm, code)
  use conformance_data
  integer :: comm, code, members, error
  call MPI_Comm_size(comm, members, error) ! inside the call that failed: not the program's own
  errors_handled = errors_handled + 1
end subroutine
subroutine ignore_window_errors(win, code)
  integer :: win, code
end subroutine
subroutine ignore_file_errors(file, code)
  integer :: file, code
end subroutine
subroutine grequest_query(state, s, error)
  use conformance_data
  integer :: s(MPI_STATUS_SIZE), error
  integer(MPI_ADDRESS_KIND) :: state
  call MPI_Status_set_elements(s, MPI_INTEGER, 0, error)
  call MPI_Status_set_cancelled(s, .false., error)
  s(MPI_SOURCE) = 12
  s(MPI_TAG) = 12
  error = MPI_SUCCESS
end subroutine
subroutine grequest_free(state, error)
  use conformance_data
  integer :: error
  integer(MPI_ADDRESS_KIND) :: state
  error = MPI_SUCCESS
end subroutine
subroutine grequest_cancel(state, complete, error)
  use conformance_data
  integer :: error
  integer(MPI_ADDRESS_KIND) :: state
  logical :: complete
  error = MPI_SUCCESS
end subroutine
''',
    'f08': '''
subroutine add_twice(a, b, n, kind)
  use mpi_f08
  use, intrinsic :: iso_c_binding
  type(c_ptr), value :: a, b
  integer :: n
  type(MPI_Datatype) :: kind
  integer, pointer :: from(:), to(:)
  call c_f_pointer(a, from, [n])
  call c_f_pointer(b, to, [n])
  to = to + from
end subroutine
subroutine count_errors(comm, code)
  use conformance_data
  type(MPI_Comm) :: comm
  integer :: code, members
  call MPI_Comm_size(comm, members) ! inside the call that failed: not the program's own
  errors_handled = errors_handled + 1
end subroutine
subroutine ignore_window_errors(win, code)
  use mpi_f08
  type(MPI_Win) :: win
  integer :: code
end subroutine
subroutine ignore_file_errors(file, code)
  use mpi_f08
  type(MPI_File) :: file
  integer :: code
end subroutine
subroutine grequest_query(state, s, error)
  use mpi_f08
  type(MPI_Status) :: s
  integer :: error
  integer(MPI_ADDRESS_KIND) :: state
  call MPI_Status_set_elements(s, MPI_INTEGER, 0)
  call MPI_Status_set_cancelled(s, .false.)
  s%MPI_SOURCE = 12
  s%MPI_TAG = 12
  error = MPI_SUCCESS
end subroutine
subroutine grequest_free(state, error)
  use mpi_f08
  integer :: error
  integer(MPI_ADDRESS_KIND) :: state
  error = MPI_SUCCESS
end subroutine
subroutine grequest_cancel(state, complete, error)
  use mpi_f08
  integer :: error
  integer(MPI_ADDRESS_KIND) :: state
  logical :: complete
  error = MPI_SUCCESS
end subroutine
''',
}


def cases():
    yield from CASES.items()
    for function, calls in ERRORS.items():
        for number, arguments in enumerate(calls):
            yield f'error_{function}_{number}', (
                f'call errors_return(.true.)\n?{function}({arguments})\ncall errors_return(.false.)\n')
