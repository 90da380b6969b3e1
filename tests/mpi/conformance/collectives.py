"""Cases of collective communication: every operation, blocking and not, datatypes, communicators, in place."""

# op: arguments after the buffers are known. {s}, {r}: buffers; {k}: count; {t}: datatype; c: communicator.
INTRA = {
    'barrier': 'c',
    'bcast': '{s}, {k}, {t}, root, c',
    'gather': '{s}, {k}, {t}, {r}, {k}, {t}, root, c',
    'scatter': '{s}, {k}, {t}, {r}, {k}, {t}, root, c',
    'allgather': '{s}, {k}, {t}, {r}, {k}, {t}, c',
    'alltoall': '{s}, {k}, {t}, {r}, {k}, {t}, c',
    'gatherv': '{s}, {k}, {t}, {r}, counts, displs, {t}, root, c',
    'scatterv': '{s}, counts, displs, {t}, {r}, {k}, {t}, root, c',
    'allgatherv': '{s}, {k}, {t}, {r}, counts, displs, {t}, c',
    'alltoallv': '{s}, counts, displs, {t}, {r}, counts, displs, {t}, c',
    'alltoallw': '{s}, counts, bytes_at, types, {r}, counts, bytes_at, types, c',
}
REDUCTIONS = {
    'reduce': '{s}, {r}, {k}, {t}, MPI_SUM, root, c',
    'allreduce': '{s}, {r}, {k}, {t}, MPI_SUM, c',
    'scan': '{s}, {r}, {k}, {t}, MPI_SUM, c',
    'exscan': '{s}, {r}, {k}, {t}, MPI_SUM, c',
    'reduce_scatter': '{s}, {r}, counts, {t}, MPI_SUM, c',
    'reduce_scatter_block': '{s}, {r}, {k}, {t}, MPI_SUM, c',
}
NEIGHBOURS = {
    'neighbor_allgather': '{s}, {k}, {t}, {r}, {k}, {t}, c',
    'neighbor_allgatherv': '{s}, {k}, {t}, {r}, counts, displs, {t}, c',
    'neighbor_alltoall': '{s}, {k}, {t}, {r}, {k}, {t}, c',
    'neighbor_alltoallv': '{s}, counts, displs, {t}, {r}, counts, displs, {t}, c',
    'neighbor_alltoallw': '{s}, counts, aint_at, types, {r}, counts, aint_at, types, c',
}
# What to give instead of a buffer, and who may.
IN_PLACE = {
    'reduce': ('s', 'me == root'), 'allreduce': ('s', '1'), 'scan': ('s', '1'), 'exscan': ('s', '1'),
    'reduce_scatter': ('s', '1'), 'reduce_scatter_block': ('s', '1'), 'gather': ('s', 'me == root'),
    'scatter': ('r', 'me == root'), 'allgather': ('s', '1'), 'alltoall': ('s', '1'), 'gatherv': ('s', 'me == root'),
    'scatterv': ('r', 'me == root'), 'allgatherv': ('s', '1'), 'alltoallv': ('s', '1'), 'alltoallw': ('s', '1'),
}
TYPES = {'int': 'MPI_INT', 'vector': 'vector', 'structure': 'structure'}
COMPLETIONS = [
    'CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);',
    'CALL(MPI_Waitall, 1, &request, MPI_STATUSES_IGNORE);',
    'CALL(MPI_Waitany, 1, &request, &index, &status);',
    'CALL(MPI_Waitsome, 1, &request, &index, indices, &status);',
    'for (flag = 0; !flag;) CALL(MPI_Test, &request, &flag, &status);',
    'for (flag = 0; !flag;) CALL(MPI_Testall, 1, &request, &flag, &status);',
    'for (flag = 0; !flag;) CALL(MPI_Testany, 1, &request, &index, &flag, MPI_STATUS_IGNORE);',
    'for (index = 0; index < 1;) CALL(MPI_Testsome, 1, &request, &index, indices, MPI_STATUSES_IGNORE);',
    'for (flag = 0; !flag;) CALL(MPI_Request_get_status, request, &flag, &status);\n'
    '  CALL(MPI_Wait, &request, &status);',
]
SETUP = '''  const MPI_Comm c = {comm};
  int me, n, flag = 0, index = 0, indices[1], counts[16], displs[16], bytes_at[16];
  MPI_Aint aint_at[16];
  MPI_Datatype types[16];
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  PMPI_Comm_rank(c, &me);
  PMPI_Comm_size(c, &n);
  const int root = {root};
  for (int i = 0; i < 16; ++i) {{
    counts[i] = {k};
    displs[i] = i * ({k} + 1);
    aint_at[i] = bytes_at[i] = i * 2048;
    types[i] = {t};
  }}
  (void)me, (void)n, (void)root, (void)flag, (void)index, (void)indices, (void)status, (void)request;
  (void)counts, (void)displs, (void)bytes_at, (void)aint_at, (void)types;
'''


def case(op, arguments, comm, type_name, count, blocking, completion, fill, in_place=None, root='n - 1'):
    mpi_type = {'int': 'MPI_INT', 'double': 'MPI_DOUBLE'}.get(type_name, type_name)
    buffers = {'s': 'out', 'r': 'in'}
    if in_place:
        which, who = in_place
        buffers[which] = f'({who} ? MPI_IN_PLACE : (void*){buffers[which]})'
    text = arguments.format(k=count, t=mpi_type, **buffers)
    function = 'MPI_' + (op.capitalize() if blocking else 'I' + op)
    body = SETUP.format(comm=comm, k=count, t=mpi_type, root=root) + fill
    if blocking:
        body += f'  CALL({function}, {text});\n  EVENTS("coll", 1);\n'
    else:
        body += (f'  CALL({function}, {text}, &request);\n  {completion}\n'
                 '  EVENTS("icoll", 1);\n  EVENTS("wait", 1);\n')
    body += '  RESULT("%lx %lx", hash(out, 8192), hash(in, 16384));\n'
    words = [op, comm, type_name, str(count)] + ([] if blocking else ['i']) + (['in_place'] if in_place else [])
    return '_'.join(words), body


def cases():
    number = 0
    for blocking in (True, False):
        for comm in ('MPI_COMM_WORLD', 'halves', 'MPI_COMM_SELF'):
            for op, arguments in INTRA.items():
                for type_name in (['int'] if op == 'barrier' else TYPES):
                    for count in ([0] if op == 'barrier' else [0, 1, 29] if comm == 'MPI_COMM_WORLD' else [5]):
                        number += 1
                        yield case(op, arguments, comm, type_name, count, blocking,
                                   COMPLETIONS[number % len(COMPLETIONS)], f'  fill({number});\n')
            for op, arguments in REDUCTIONS.items():
                for type_name in ('int', 'double'):
                    number += 1
                    is_double = int(type_name == 'double')
                    yield case(op, arguments, comm, type_name, 1 + number % 40, blocking,
                               COMPLETIONS[number % len(COMPLETIONS)], f'  fill_numbers({is_double}, 512);\n')
        for op, in_place in IN_PLACE.items():
            number += 1
            arguments = INTRA.get(op) or REDUCTIONS[op]
            yield case(op, arguments, 'MPI_COMM_WORLD', 'int', 11, blocking, COMPLETIONS[number % len(COMPLETIONS)],
                       '  fill_numbers(0, 4096);\n', in_place)
        for comm in ('cart', 'graph', 'adjacent'):
            for op, arguments in NEIGHBOURS.items():
                number += 1
                yield case(op, arguments, comm, 'int', 3, blocking, COMPLETIONS[number % len(COMPLETIONS)],
                           f'  fill({number});\n')
        for op in ('barrier', 'bcast', 'allgather', 'alltoall', 'gather', 'scatter', 'allgatherv'):
            number += 1
            yield case(op, INTRA[op], 'inter', 'int', 7, blocking, COMPLETIONS[number % len(COMPLETIONS)],
                       f'  fill({number});\n',
                       root='rank == 0 ? MPI_ROOT : rank % 2 == 0 ? MPI_PROC_NULL : 0')
