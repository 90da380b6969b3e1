"""The tables of collectives.py and point_to_point.py as Fortran cases (fortran.py says in which form)."""
import collectives
import point_to_point

TYPES = {'MPI_INT': 'MPI_INTEGER', 'MPI_CHAR': 'MPI_CHARACTER', 'MPI_DOUBLE': 'MPI_DOUBLE_PRECISION',
         'MPI_BYTE': 'MPI_BYTE', 'vector': 'vector', 'structure': 'structure'}

# The same completions as collectives.COMPLETIONS, in its order.
COLLECTIVE_COMPLETIONS = [
    '@MPI_Wait(request, MPI_STATUS_IGNORE)',
    'requests(1) = request\n@MPI_Waitall(1, requests, MPI_STATUSES_IGNORE)',
    'requests(1) = request\n@MPI_Waitany(1, requests, at, status)',
    'requests(1) = request\n@MPI_Waitsome(1, requests, n, indices, statuses)',
    'do while (.not. flag)\n@MPI_Test(request, flag, status)\nend do',
    'requests(1) = request\ndo while (.not. flag)\n@MPI_Testall(1, requests, flag, statuses)\nend do',
    'requests(1) = request\ndo while (.not. flag)\n@MPI_Testany(1, requests, at, flag, MPI_STATUS_IGNORE)\nend do',
    'requests(1) = request\nn = 0\ndo while (n < 1)\n@MPI_Testsome(1, requests, n, indices, MPI_STATUSES_IGNORE)\nend do',
    'do while (.not. flag)\n@MPI_Request_get_status(request, flag, status)\nend do\n@MPI_Wait(request, status)',
]
# requests(1) is the receive, requests(2) the send; names as in point_to_point.COMPLETIONS.
COMPLETIONS = {
    'wait': '@MPI_Wait(requests(1), status)\n@MPI_Wait(requests(2), MPI_STATUS_IGNORE)',
    'waitall': '@MPI_Waitall(2, requests, statuses)\nstatus = ITEM(statuses, 1)',
    'waitall_ignore': '@MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)',
    'waitany': 'do i = 1, 2\n@MPI_Waitany(2, requests, at, other)\nif (at == first) status = other\nend do',
    'waitsome': 'done = 0\ndo while (done < 2)\n@MPI_Waitsome(2, requests, n, indices, statuses)\ndo i = 1, n\n'
                'if (indices(i) == first) status = ITEM(statuses, i)\nend do\ndone = done + n\nend do',
    'test': 'do while (.not. flag)\n@MPI_Test(requests(1), flag, status)\nend do\nflag = .false.\n'
            'do while (.not. flag)\n@MPI_Test(requests(2), flag, MPI_STATUS_IGNORE)\nend do',
    'testall': 'do while (.not. flag)\n@MPI_Testall(2, requests, flag, statuses)\nend do\nstatus = ITEM(statuses, 1)',
    'testany': 'done = 0\ndo while (done < 2)\n@MPI_Testany(2, requests, at, flag, other)\nif (.not. flag) cycle\n'
               'if (at == first) status = other\ndone = done + 1\nend do',
    'testsome': 'done = 0\ndo while (done < 2)\n@MPI_Testsome(2, requests, n, indices, statuses)\ndo i = 1, n\n'
                'if (indices(i) == first) status = ITEM(statuses, i)\nend do\ndone = done + n\nend do',
}
RECEIVES = {
    'exact': '@MPI_Recv(in, {k}, {t}, from, {tag}, MPI_COMM_WORLD, status)',
    'any': '@MPI_Recv(in, {k} + 3, {t}, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status)',
    'probed': '@MPI_Probe(from, MPI_ANY_TAG, MPI_COMM_WORLD, status)\n'
              '@MPI_Recv(in, {k}, {t}, SOURCE_OF(status), TAG_OF(status), MPI_COMM_WORLD, MPI_STATUS_IGNORE)\n#probe 1',
    'iprobed': 'do while (.not. flag)\n@MPI_Iprobe(MPI_ANY_SOURCE, {tag}, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE)\n'
               'end do\n@MPI_Recv(in, {k}, {t}, from, {tag}, MPI_COMM_WORLD, status)\n#probe 1',
}
ATTACH = '@MPI_Buffer_attach(space, size_of_space)'
DETACH = '[f08] @MPI_Buffer_detach(pointer, n)\n[mpifh] @MPI_Buffer_detach(space, n)\n#unmodelled 1'
STATUS = '@MPI_Get_count(status, {t}, n)\n=SOURCE_OF(status), TAG_OF(status), n\n'
HASH = '=hash(in)\n'


def blocking(mode, receive, type_name, tag):
    mpi_type, count = point_to_point.TYPES[type_name]
    values = {'t': TYPES[mpi_type], 'k': count, 'tag': tag}
    send = f'@MPI_{(mode + "send").capitalize()}(out, {{k}}, {{t}}, to, {{tag}}, MPI_COMM_WORLD)'
    lines = [ATTACH] if mode == 'b' else []
    lines.append('call fill({tag})')
    if mode == 'r':  # its receive must be posted
        lines += ['@MPI_Irecv(in, {k}, {t}, from, {tag}, MPI_COMM_WORLD, requests(1))', '@MPI_Barrier(MPI_COMM_WORLD)',
                  send, '@MPI_Wait(requests(1), status)', '#coll 1', '#startRecv 1', '#endRecv 1']
    else:
        lines += ['if (mod(rank, 2) == 0) then', send, 'end if', RECEIVES[receive], 'if (mod(rank, 2) == 1) then', send,
                  'end if', '#recv 1']
        if receive == 'any':  # nobody's next message may overtake
            lines += ['@MPI_Barrier(MPI_COMM_WORLD)', '#coll 1']
    lines += ['#send 1'] + ([DETACH] if mode == 'b' else [])
    return ('\n'.join(lines) + '\n' + STATUS + HASH).format(**values)


def nonblocking(mode, completion, type_name, tag, persistent=False):
    mpi_type, count = point_to_point.TYPES[type_name]
    values = {'t': TYPES[mpi_type], 'k': count, 'tag': tag}
    send = f'{mode}send'.capitalize() + '_init' if persistent else f'I{mode}send'
    receive = 'Recv_init' if persistent else 'Irecv'
    rounds = 2 if persistent else 1
    lines = [ATTACH] if mode == 'b' else []
    lines += ['call fill({tag})', f'@MPI_{receive}(in, {{k}}, {{t}}, from, {{tag}}, MPI_COMM_WORLD, requests(1))']
    if not persistent and mode == 'r':
        lines += ['@MPI_Barrier(MPI_COMM_WORLD)', '#coll 1']
    lines.append(f'@MPI_{send}(out, {{k}}, {{t}}, to, {{tag}}, MPI_COMM_WORLD, requests(2))')
    for _ in range(rounds):
        if persistent and mode == 'r':
            lines += ['@MPI_Start(requests(1))', '@MPI_Barrier(MPI_COMM_WORLD)', '@MPI_Start(requests(2))', '#coll 1']
        elif persistent:
            lines.append('@MPI_Startall(2, requests)')
        lines += ['flag = .false.', COMPLETIONS[completion]]
    if persistent:
        lines += ['@MPI_Request_free(requests(1))', '@MPI_Request_free(requests(2))']
    lines += [f'#{kind} {rounds}' for kind in ('isend', 'wait', 'startRecv', 'endRecv')]
    lines += [DETACH] if mode == 'b' else []
    return ('\n'.join(lines) + '\n' + ('' if completion == 'waitall_ignore' else STATUS) + HASH).format(**values)


def exchanges(type_name, tag):
    """Sendrecv and matched probes: (name, text), each with a tag of its own from `tag` on."""
    mpi_type, count = point_to_point.TYPES[type_name]
    t = TYPES[mpi_type]
    status = STATUS.format(t=t)
    both = '#send 1\n#startRecv 1\n#endRecv 1\n'
    yield f'sendrecv_{type_name}', (
        f'call fill({tag})\n@MPI_Sendrecv(out, {count}, {t}, to, {tag}, in, {count}, {t}, from, {tag}, MPI_COMM_WORLD, '
        f'status)\n{both}{status}{HASH}')
    yield f'sendrecv_replace_{type_name}', (
        f'call fill({tag})\n@MPI_Sendrecv_replace(out, {count}, {t}, to, {tag}, from, {tag}, MPI_COMM_WORLD, status)\n'
        f'{both}{status}=hash(out)\n')
    for how in ('mprobe', 'improbe'):
        for take in ('mrecv', 'imrecv'):
            tag += 1
            find = ('@MPI_Mprobe(from, MPI_ANY_TAG, MPI_COMM_WORLD, message, status)' if how == 'mprobe' else
                    f'do while (.not. flag)\n@MPI_Improbe(MPI_ANY_SOURCE, {tag}, MPI_COMM_WORLD, flag, message, '
                    'MPI_STATUS_IGNORE)\nend do')
            get = (f'@MPI_Mrecv(in, {count}, {t}, message, status)' if take == 'mrecv' else
                   f'@MPI_Imrecv(in, {count}, {t}, message, requests(1))\n@MPI_Wait(requests(1), status)')
            yield f'{how}_{take}_{type_name}', (
                f'call fill({tag})\n@MPI_Isend(out, {count}, {t}, to, {tag}, MPI_COMM_WORLD, requests(2))\n{find}\n{get}\n'
                f'@MPI_Wait(requests(2), MPI_STATUS_IGNORE)\n#isend 1\n#wait 1\n#startRecv 1\n#endRecv 1\n{status}{HASH}')


def point_to_point_cases():
    tag = 100
    for mode in point_to_point.MODES:
        for type_name in point_to_point.TYPES:
            for receive in RECEIVES:
                if mode == 's' and receive == 'any' or mode == 'r' and receive != 'exact':
                    continue
                if receive == 'any' and type_name == 'large':
                    continue
                tag += 1
                yield f'{mode}send_{receive}_{type_name}', blocking(mode, receive, type_name, tag)
        for number, completion in enumerate(COMPLETIONS):
            for type_name in ('int', 'large') if number % 2 else ('vector', 'structure'):
                tag += 1
                yield f'i{mode}send_{completion}_{type_name}', nonblocking(mode, completion, type_name, tag)
            tag += 1
            yield f'{mode}send_init_{completion}', nonblocking(mode, completion, 'int', tag, True)
    for type_name in point_to_point.TYPES:
        tag += 10
        yield from exchanges(type_name, tag)


def collective(op, arguments, comm, type_name, count, blocking_call, completion, fill, in_place=None, root='n - 1'):
    mpi_type = {'int': 'MPI_INTEGER', 'double': 'MPI_DOUBLE_PRECISION'}.get(type_name, type_name)
    is_double = type_name == 'double'
    buffers = {'s': 'dout', 'r': 'din'} if is_double else {'s': 'out', 'r': 'in'}
    function = 'MPI_' + (op.capitalize() if blocking_call else 'I' + op)
    end = '' if blocking_call else ', request'

    def call(**changed):
        return f'@{function}({arguments.format(k=count, t=mpi_type, **{**buffers, **changed})}{end})'

    # Open MPI 4.1's Fortran bindings free the datatypes before the operation is done: it crashes, captured or not.
    lines = ['if (is_open_mpi) return'] if op == 'alltoallw' and not blocking_call else []
    # Open MPI 5.0.7's Fortran bindings do the same in all of them: free(): invalid pointer.
    if not blocking_call and type_name in ('vector', 'structure'):
        lines.append('if (is_open_mpi_5) return')
    # MPICH 4.0's mpi_f08 takes every topology for a distributed graph there: it aborts, captured or not.
    lines += ['[f08] if (.not. is_open_mpi) return'] if op == 'neighbor_alltoallw' and comm != 'adjacent' else []
    lines += [f'call peers({comm}, {count}, {mpi_type})', f'root = {root}', fill]
    if in_place:
        which, who = in_place
        if who == '1':
            lines.append(call(**{which: 'MPI_IN_PLACE'}))
        else:
            lines += [f'if ({who}) then', call(**{which: 'MPI_IN_PLACE'}), 'else', call(), 'end if']
    else:
        lines.append(call())
    lines += ['#coll 1'] if blocking_call else [completion, '#icoll 1', '#wait 1']
    lines.append('=hash_double(dout), hash_double(din)' if is_double else '=hash(out), hash(in)')
    short = {'MPI_COMM_WORLD': 'world', 'MPI_COMM_SELF': 'self'}.get(comm, comm)
    words = [op, short, type_name, str(count)] + ([] if blocking_call else ['i']) + (['in_place'] if in_place else [])
    return '_'.join(words), '\n'.join(lines)


def collective_cases():
    number = 0

    def completion():
        return COLLECTIVE_COMPLETIONS[number % len(COLLECTIVE_COMPLETIONS)]

    for blocking_call in (True, False):
        for comm in ('MPI_COMM_WORLD', 'halves', 'MPI_COMM_SELF'):
            for op, arguments in collectives.INTRA.items():
                for type_name in (['int'] if op == 'barrier' else collectives.TYPES):
                    for count in ([0] if op == 'barrier' else [0, 29] if comm == 'MPI_COMM_WORLD' else [5]):
                        number += 1
                        yield collective(op, arguments, comm, type_name, count, blocking_call, completion(),
                                         f'call fill({number})')
            for op, arguments in collectives.REDUCTIONS.items():
                for type_name in ('int', 'double'):
                    number += 1
                    yield collective(op, arguments, comm, type_name, 1 + number % 40, blocking_call, completion(),
                                     'call fill_numbers()')
        for op, in_place in collectives.IN_PLACE.items():
            number += 1
            arguments = collectives.INTRA.get(op) or collectives.REDUCTIONS[op]
            yield collective(op, arguments, 'MPI_COMM_WORLD', 'int', 11, blocking_call, completion(),
                             'call fill_numbers()', in_place)
        for comm in ('cart', 'graph', 'adjacent'):
            for op, arguments in collectives.NEIGHBOURS.items():
                number += 1
                yield collective(op, arguments, comm, 'int', 3, blocking_call, completion(), f'call fill({number})')
        for op in ('barrier', 'bcast', 'allgather', 'alltoall', 'gather', 'scatter', 'allgatherv'):
            number += 1
            yield collective(op, collectives.INTRA[op], 'inter', 'int', 7, blocking_call, completion(),
                             f'call fill({number})',
                             root='merge(MPI_ROOT, merge(MPI_PROC_NULL, 0, mod(rank, 2) == 0), rank == 0)')
