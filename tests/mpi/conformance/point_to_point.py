"""Cases of point-to-point communication: modes, completions, datatypes, wildcards, statuses, probes, persistence."""

TYPES = {'int': ('MPI_INT', 25), 'char': ('MPI_CHAR', 1), 'vector': ('vector', 9), 'structure': ('structure', 4),
         'nothing': ('MPI_DOUBLE', 0), 'large': ('MPI_BYTE', 30000)}
MODES = ('', 'b', 's', 'r')
SETUP = '''  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status status, statuses[2];
  int flag = 0, index = 0, indices[2], done = 0;
  (void)to, (void)from, (void)requests, (void)status, (void)statuses, (void)flag, (void)index, (void)indices;
  (void)done;
'''
RECEIVES = {
    'exact': 'CALL(MPI_Recv, in, {k}, {t}, from, {tag}, MPI_COMM_WORLD, &status);',
    'any': 'CALL(MPI_Recv, in, {k} + 3, {t}, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);',
    'probed': 'CALL(MPI_Probe, from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);\n'
              '  CALL(MPI_Recv, in, {k}, {t}, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n'
              '  EVENTS("probe", 1);',
    'iprobed': 'while (!flag) CALL(MPI_Iprobe, MPI_ANY_SOURCE, {tag}, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);\n'
               '  CALL(MPI_Recv, in, {k}, {t}, from, {tag}, MPI_COMM_WORLD, &status);\n'
               '  EVENTS("probe", 1);',
}
# Completes requests[0] (receive) and requests[1] (send).
COMPLETIONS = {
    'wait': 'CALL(MPI_Wait, &requests[0], &status);\n  CALL(MPI_Wait, &requests[1], MPI_STATUS_IGNORE);',
    'waitall': 'CALL(MPI_Waitall, 2, requests, statuses);\n  status = statuses[0];',
    'waitall_ignore': 'CALL(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);',
    'waitany': 'for (int i = 0; i < 2; ++i) {\n    CALL(MPI_Waitany, 2, requests, &index, &statuses[0]);\n'
               '    if (index == 0) status = statuses[0];\n  }',
    'waitsome': 'while (done < 2) {\n    CALL(MPI_Waitsome, 2, requests, &index, indices, statuses);\n'
                '    for (int i = 0; i < index; ++i) {\n      if (indices[i] == 0) status = statuses[i];\n    }\n'
                '    done += index;\n  }',
    'test': 'while (!flag) CALL(MPI_Test, &requests[0], &flag, &status);\n'
            '  for (flag = 0; !flag;) CALL(MPI_Test, &requests[1], &flag, MPI_STATUS_IGNORE);',
    'testall': 'while (!flag) CALL(MPI_Testall, 2, requests, &flag, statuses);\n  status = statuses[0];',
    'testany': 'while (done < 2) {\n    CALL(MPI_Testany, 2, requests, &index, &flag, &statuses[0]);\n'
               '    if (!flag) continue;\n    if (index == 0) status = statuses[0];\n    ++done;\n  }',
    'testsome': 'while (done < 2) {\n    CALL(MPI_Testsome, 2, requests, &index, indices, statuses);\n'
                '    for (int i = 0; i < index; ++i) {\n      if (indices[i] == 0) status = statuses[i];\n    }\n'
                '    done += index;\n  }',
}
ATTACH = '''  static char space[1 << 17];
  void* detached;
  CALL(MPI_Buffer_attach, space, sizeof(space));
'''
DETACH = '''  CALL(MPI_Buffer_detach, &detached, &index);
  EVENTS("unmodelled", 1);
'''
END = '  status_result(&status, {t});\n  RESULT("%lx", hash(in, {bytes}));\n'
NO_STATUS = '  RESULT("%lx", hash(in, {bytes}));\n'


def blocking(mode, receive, type_name, tag):
    mpi_type, count = TYPES[type_name]
    values = {'t': mpi_type, 'k': count, 'tag': tag, 'bytes': 32768}
    send = f'CALL(MPI_{(mode + "send").capitalize()}, out, {count}, {mpi_type}, to, {tag}, MPI_COMM_WORLD);'
    body = SETUP + (ATTACH if mode == 'b' else '') + f'  fill({tag});\n'
    if mode == 'r':  # its receive must be posted
        body += f'''  CALL(MPI_Irecv, in, {count}, {mpi_type}, from, {tag}, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  {send}
  CALL(MPI_Wait, &requests[0], &status);
  EVENTS("coll", 1);
  EVENTS("startRecv", 1);
  EVENTS("endRecv", 1);
'''
    else:
        take = RECEIVES[receive].format(**values)
        body += f'''  if (rank % 2 == 0) {send}
  {take}
  if (rank % 2 == 1) {send}
  EVENTS("recv", 1);
'''
        if receive == 'any':  # nobody's next message may overtake
            body += '  CALL(MPI_Barrier, MPI_COMM_WORLD);\n  EVENTS("coll", 1);\n'
    body += '  EVENTS("send", 1);\n' + (DETACH if mode == 'b' else '')
    return body + END.format(**values)


def nonblocking(mode, completion, type_name, tag, persistent=False):
    mpi_type, count = TYPES[type_name]
    values = {'t': mpi_type, 'bytes': 32768}
    body = SETUP + (ATTACH if mode == 'b' else '') + f'  fill({tag});\n'
    send = f'{mode}send'.capitalize() + '_init' if persistent else f'I{mode}send'
    receive = 'Recv_init' if persistent else 'Irecv'
    body += f'  CALL(MPI_{receive}, in, {count}, {mpi_type}, from, {tag}, MPI_COMM_WORLD, &requests[0]);\n'
    rounds = 2 if persistent else 1
    if not persistent and mode == 'r':
        body += '  CALL(MPI_Barrier, MPI_COMM_WORLD);\n  EVENTS("coll", 1);\n'
    body += f'  CALL(MPI_{send}, out, {count}, {mpi_type}, to, {tag}, MPI_COMM_WORLD, &requests[1]);\n'
    for number in range(rounds):
        if persistent and mode == 'r':
            body += ('  CALL(MPI_Start, &requests[0]);\n  CALL(MPI_Barrier, MPI_COMM_WORLD);\n'
                     '  CALL(MPI_Start, &requests[1]);\n  EVENTS("coll", 1);\n')
        elif persistent:
            body += '  CALL(MPI_Startall, 2, requests);\n'
        body += f'  flag = done = 0;\n  {COMPLETIONS[completion]}\n'
    if persistent:
        body += '  CALL(MPI_Request_free, &requests[0]);\n  CALL(MPI_Request_free, &requests[1]);\n'
    for kind in ('isend', 'wait', 'startRecv', 'endRecv'):
        body += f'  EVENTS("{kind}", {rounds});\n'
    body += DETACH if mode == 'b' else ''
    return body + (NO_STATUS if completion == 'waitall_ignore' else END).format(**values)


def cases():
    tag = 100
    for mode in MODES:
        for type_name in TYPES:
            for receive in RECEIVES:
                if mode in ('s',) and receive == 'any' or mode == 'r' and receive != 'exact':
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
    for type_name, (mpi_type, count) in TYPES.items():
        tag += 1
        values = {'t': mpi_type, 'bytes': 32768}
        exchange = '  EVENTS("send", 1);\n  EVENTS("startRecv", 1);\n  EVENTS("endRecv", 1);\n'
        yield f'sendrecv_{type_name}', (
            SETUP + f'  fill({tag});\n  CALL(MPI_Sendrecv, out, {count}, {mpi_type}, to, {tag}, in, {count}, {mpi_type}, '
            f'from, {tag}, MPI_COMM_WORLD, &status);\n' + exchange + END.format(**values))
        yield f'sendrecv_replace_{type_name}', (
            SETUP + f'  fill({tag});\n  CALL(MPI_Sendrecv_replace, out, {count}, {mpi_type}, to, {tag}, from, {tag}, '
            'MPI_COMM_WORLD, &status);\n' + exchange +
            f'  status_result(&status, {mpi_type});\n  RESULT("%lx", hash(out, 32768));\n')
        for how in ('mprobe', 'improbe'):
            for take in ('mrecv', 'imrecv'):
                find = ('CALL(MPI_Mprobe, from, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);' if how == 'mprobe' else
                        f'while (!flag) CALL(MPI_Improbe, MPI_ANY_SOURCE, {tag}, MPI_COMM_WORLD, &flag, &message, '
                        'MPI_STATUS_IGNORE);')
                get = (f'CALL(MPI_Mrecv, in, {count}, {mpi_type}, &message, &status);' if take == 'mrecv' else
                       f'CALL(MPI_Imrecv, in, {count}, {mpi_type}, &message, &requests[0]);\n'
                       '  CALL(MPI_Wait, &requests[0], &status);')
                tag += 1
                find = find.replace(str(tag - 1), str(tag))
                yield f'{how}_{take}_{type_name}', (
                    SETUP + f'  MPI_Message message;\n  fill({tag});\n'
                    f'  CALL(MPI_Isend, out, {count}, {mpi_type}, to, {tag}, MPI_COMM_WORLD, &requests[1]);\n'
                    f'  {find}\n  {get}\n  CALL(MPI_Wait, &requests[1], MPI_STATUS_IGNORE);\n'
                    '  EVENTS("isend", 1);\n  EVENTS("wait", 1);\n  EVENTS("startRecv", 1);\n  EVENTS("endRecv", 1);\n' +
                    END.format(**values))
    yield 'proc_null', SETUP + '''  MPI_Message message;
  CALL(MPI_Send, out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
  CALL(MPI_Recv, in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
  status_result(&status, MPI_INT);
  CALL(MPI_Isend, out, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Irecv, in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]);
  CALL(MPI_Waitall, 2, requests, statuses);
  status_result(&statuses[1], MPI_INT);
  CALL(MPI_Probe, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
  CALL(MPI_Mprobe, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status);
  CALL(MPI_Mrecv, in, 1, MPI_INT, &message, &status);
  status_result(&status, MPI_INT);
'''
    yield 'null_and_inactive_requests', SETUP + '''  CALL(MPI_Wait, &requests[0], &status);
  status_result(&status, MPI_INT);
  CALL(MPI_Waitany, 2, requests, &index, &status);
  RESULT("index %d", index == MPI_UNDEFINED);
  CALL(MPI_Testall, 2, requests, &flag, statuses);
  CALL(MPI_Recv_init, in, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Test, &requests[0], &flag, &status);
  RESULT("flag %d", flag);
  CALL(MPI_Request_free, &requests[0]);
'''
    yield 'cancelled_receive', SETUP + '''  CALL(MPI_Irecv, in, 1, MPI_INT, from, 7777, MPI_COMM_WORLD, &requests[0]);
  CALL(MPI_Cancel, &requests[0]);
  CALL(MPI_Wait, &requests[0], &status);
  CALL(MPI_Test_cancelled, &status, &flag);
  RESULT("cancelled %d", flag);
  EVENTS("startRecv", 1);
  EVENTS("cancel", 1);
'''
    yield from truncated(tag)


# Forms of a receive whose buffer is too short: the match is known from the status, so the receive is recorded.
TRUNCATED = {
    'recv': 'CODE(MPI_Recv, in, 1, MPI_INT, MPI_ANY_SOURCE, {tag}, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n'
            '  EVENTS("recv", 1);',
    'mrecv': 'CALL(MPI_Mprobe, from, {tag}, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);\n'
             '  CODE(MPI_Mrecv, in, 1, MPI_INT, &message, &status);',
    'wait': 'CODE(MPI_Wait, &requests[0], MPI_STATUS_IGNORE);',
    'waitall': 'CODE(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);',
    'waitall_statuses': 'CODE(MPI_Waitall, 2, requests, statuses);\n'
                        '  RESULT("%d %d", statuses[0].MPI_SOURCE, statuses[0].MPI_TAG);',
    'waitany': 'CODE(MPI_Waitany, 2, requests, &index, &status);\n  RESULT("%d %d", index, status.MPI_TAG);',
    'waitsome': 'CODE(MPI_Waitsome, 2, requests, &index, indices, statuses);\n  RESULT("%d %d", index, indices[0]);',
    'test': 'while (!flag) CODE_IF_DONE(MPI_Test, flag, &requests[0], &flag, MPI_STATUS_IGNORE);',
    'testall': 'while (!flag) CODE_IF_DONE(MPI_Testall, flag, 2, requests, &flag, MPI_STATUSES_IGNORE);',
    'testsome': 'while (!index) CODE_IF_DONE(MPI_Testsome, index, 2, requests, &index, indices, MPI_STATUSES_IGNORE);',
}


def truncated(tag):
    for form, receive in TRUNCATED.items():
        tag += 1
        posts = form not in ('recv', 'mrecv')
        body = SETUP + '  MPI_Request sent;\n  MPI_Message message;\n  (void)message;\n'
        body += '  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);\n'
        if posts:
            body += f'  CALL(MPI_Irecv, in, 1, MPI_INT, from, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);\n'
        body += f'  CALL(MPI_Isend, out, 4, MPI_INT, to, {tag}, MPI_COMM_WORLD, &sent);\n'
        body += '  ' + receive.format(tag=tag) + '\n'
        if form != 'recv':
            body += '  EVENTS("startRecv", 1);\n  EVENTS("endRecv", 1);\n'
        yield f'truncated_{form}', body + '''  CALL(MPI_Wait, &sent, MPI_STATUS_IGNORE);
  RESULT("%d", requests[0] == MPI_REQUEST_NULL);
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  EVENTS("coll", 1);
  EVENTS("isend", 1);
  EVENTS("wait", 1);
'''
