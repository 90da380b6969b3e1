"""What a wrapper says to the recorder, by the role of its function: the tables of generate_wrappers.py.

A line of C++ may hold <kind>: the argument of that kind as a C value; <*kind>: what it refers to; <@name>: the argument of that
name (wrapper_bindings.py). Arguments of a recorder function are words: a kind, *kind, @name, or =text for literal text. The
words in FUNCTION_WORDS depend on the function.
"""
from dataclasses import dataclass

C, FORTRAN = 'c', 'fortran'


@dataclass(frozen=True)
class Counting:
    """How the call is counted while calls are only counted: how a CountedCall begins, with which arguments, and how it counts.
    'key' is the key of the communicator's handle."""
    begin: str
    arguments: str = ''
    count: str | None = None


@dataclass(frozen=True)
class Role:
    # Recorder function after the call and its arguments; None: nothing is recorded. With `chosen_by` a table of such pairs, by
    # that property of the function.
    after: object = None
    chosen_by: str | None = None
    # What turns the call's request into the last argument of `after`; None: it has no such argument.
    request: str | None = None
    # Lines before the call. A line that declares own_status: the call gets it in place of the program's status.
    before: tuple = ()
    # Where the status tells of a failed call too: a truncated message was received all the same. Fortran's Wait and its like
    # leave statuses alone where the call failed.
    truncated: tuple = ()
    # What still has to be told where the capture went off while the program ran, before the call.
    while_off: str | None = None
    # Where no capture begins, after the call: why not.
    uncaptured: str | None = None
    counting: Counting | None = None

    @property
    def has_own_status(self):
        return any('own_status' in line for line in self.before)

    @property
    def keeps_wrapper(self):
        """The library looks for a call of it where other wrappers are passed by (library.h, ending_slots)."""
        return self.while_off is not None or self.uncaptured == SESSION_UNCAPTURED


def camel(words):
    return 'k' + ''.join(word.capitalize() for word in words.split('_'))


SEND_FLAGS = {'synchronous': 'kFlagSync', 'buffered': 'kFlagBuffered'}
FUNCTION_WORDS = {
    '=op': lambda function: f'CollectiveOp::{camel(function["op"])}',
    '=one_sided_op': lambda function: f'OneSidedOp::{camel(function["op"])}',
    '=direction': lambda function: f'IoDirection::{camel(function["direction"])}',
    '=mode': lambda function: SEND_FLAGS.get(function['mode'], '0'),
    '=how': lambda function: f'How::{camel(function["how"])}',
}

COLLECTIVES = {
    'barrier': ('barrier', 'comm'),
    'bcast': ('bcast', 'count datatype root comm'),
    'reduce': ('reduce', 'send_buf recv_buf count datatype root comm'),
    'allreduce': ('reduce_all', '=op send_buf count datatype comm'),
    'scan': ('reduce_all', '=op send_buf count datatype comm'),
    'exscan': ('reduce_all', '=op send_buf count datatype comm'),
    'reduce_scatter_block': ('reduce_all', '=op send_buf recv_count datatype comm'),
    'gather': ('gather', 'send_buf send_count send_datatype recv_count recv_datatype root comm'),
    'scatter': ('scatter', 'send_count send_datatype recv_buf recv_count recv_datatype root comm'),
    'allgather': ('all_to_all', '=op send_buf send_count send_datatype recv_count recv_datatype comm'),
    'alltoall': ('all_to_all', '=op send_buf send_count send_datatype recv_count recv_datatype comm'),
    'gatherv': ('gatherv', 'send_buf send_count send_datatype recv_counts recv_datatype root comm'),
    'scatterv': ('scatterv', 'send_counts send_datatype recv_buf recv_count recv_datatype root comm'),
    'allgatherv': ('allgatherv', 'send_buf send_count send_datatype recv_counts recv_datatype comm'),
    'alltoallv': ('alltoallv', 'send_buf send_counts send_datatype recv_counts recv_datatype comm'),
    'alltoallw': ('alltoallw', 'send_buf send_counts send_datatypes recv_counts recv_datatypes comm'),
    'reduce_scatter': ('reduce_scatter', 'send_buf recv_counts datatype comm'),
    'neighbor_allgather': ('neighbor', '=op send_count send_datatype recv_count recv_datatype comm'),
    'neighbor_alltoall': ('neighbor', '=op send_count send_datatype recv_count recv_datatype comm'),
    'neighbor_allgatherv': ('neighbor_allgatherv', 'send_count send_datatype recv_counts recv_datatype comm'),
    'neighbor_alltoallv': ('neighbor_alltoallv', 'send_counts send_datatype recv_counts recv_datatype comm'),
    'neighbor_alltoallw': ('neighbor_alltoallw', 'send_counts send_datatypes recv_counts recv_datatypes comm'),
}

# The arguments that say the bytes: into the window, or out of it.
ONE_SIDED = {
    'put': ('one_sided', '=one_sided_op count datatype rank win'),
    'get': ('one_sided', '=one_sided_op count datatype rank win'),
    'accumulate': ('one_sided', '=one_sided_op count datatype rank win'),
    'get_accumulate': ('one_sided', '=one_sided_op @result_count @result_datatype rank win'),
    'fetch_and_op': ('one_sided', '=one_sided_op =1 datatype rank win'),
    'compare_and_swap': ('one_sided', '=one_sided_op =1 datatype rank win'),
}

IO = {
    'read': ('io', '=direction count datatype'),
    'write': ('io', '=direction count datatype'),
    None: ('io', '=IoDirection::kNone =0 =MPI_Datatype{}'),
}

SESSION_UNCAPTURED = 'session_opens_uncaptured();'
OWN_STATUS = ('auto* const own_status = record::status_for(call, <status>);',)
LOOK_AT_MESSAGE = ('record::look_at_message(call, <*message_inout>);',)
COMPLETES_ONE = ('record::before_completion(call, <*request_inout>);',
                 'auto* const own_status = record::completion_status_for(call, <status>);')
COMPLETES_ANY = ('record::before_completion(call, <requests>);',
                 'auto* const own_status = record::completion_status_for(call, <status>);')
COMPLETES_MANY = ('record::before_completion(call, <requests>);',
                  'auto* const own_status = record::completion_statuses_for(call, <statuses>);')
FREES_COMM = ('const MPI_Comm comm_before = <*comm_inout>;', 'record::freeing(call, key_of(comm_before));')
FREES_WIN = ('const MPI_Win win_before = <*win_inout>;', 'record::freeing(call, key_of(win_before));')
COUNTS_SEND = Counting('begin', '=SkippedSide::kSends key dest tag', 'count')
COUNTS_EXCHANGE = Counting('begin_exchange', 'key dest send_tag source recv_tag', 'count_both')
COUNTS_NOTHING = Counting('begin')
COUNTS_COMPLETION = Counting('begin_completion')


def initialises():
    return Role(('initialised', ''), uncaptured='process_init_failed_to_capture();')


def completes(before, *after):
    return Role(after, before=before, truncated=(C,), counting=COUNTS_COMPLETION)


def receives(before, *after, counting=None):
    return Role(after, before=before, truncated=(C, FORTRAN), counting=counting)


def probes(*after, counting=None):
    return Role(after, before=OWN_STATUS, truncated=(FORTRAN,), counting=counting)


ROLES = {
    'init': initialises(),
    'init_thread': initialises(),
    'finalize': Role(('finalized', ''), before=('record::finalizing(call);',),
                     while_off='process_ends_uncaptured(ring::ProcessState::kFinalized);'),
    'abort': Role(before=('record::aborting(call);',),
                  while_off='process_ends_uncaptured(ring::ProcessState::kAborted);'),
    'session_init': Role(('session_begun', 'session_out'), uncaptured=SESSION_UNCAPTURED),
    'session_finalize': Role(('session_ended', ''), before=('record::session_ending(call, <session_inout>);',),
                             while_off='session_closes_uncaptured(<session_inout>);'),
    'pcontrol': Role(('phase', 'level'), before=('record::set_scope(call, <level>);',)),
    'unmodelled': Role(('unmodelled', '')),
    'spawn': Role(('spawned', 'comm comm_out')),
    'io': Role(IO, chosen_by='direction', request='made'),

    'send': Role(('send', '=mode count datatype dest tag comm'), counting=COUNTS_SEND),
    'isend': Role(('isend', '=mode count datatype dest tag comm request_out'), counting=COUNTS_SEND),
    'persistent_init_send': Role(('send_init', '=mode count datatype dest tag comm request_out')),
    'recv': receives(OWN_STATUS, 'recv', 'source tag comm =own_status',
                     counting=Counting('begin', '=SkippedSide::kReceives key source tag', 'count')),
    'irecv': Role(('irecv', 'count datatype source tag comm request_out'),
                  counting=Counting('begin_posted', 'key source tag', 'count')),
    'persistent_init_recv': Role(('recv_init', 'count datatype source tag comm request_out')),
    'sendrecv': receives(OWN_STATUS, 'sendrecv', 'send_count send_datatype dest send_tag source recv_tag comm =own_status',
                         counting=COUNTS_EXCHANGE),
    'sendrecv_replace': receives(OWN_STATUS, 'sendrecv', 'count datatype dest send_tag source recv_tag comm =own_status',
                                 counting=COUNTS_EXCHANGE),
    'isendrecv': Role(('isendrecv', 'send_count send_datatype dest send_tag recv_count recv_datatype source recv_tag comm '
                       'request_out')),
    'isendrecv_replace': Role(('isendrecv', 'count datatype dest send_tag count datatype source recv_tag comm request_out')),
    'probe': probes('probe', '=true source tag comm =own_status', counting=COUNTS_NOTHING),
    'iprobe': probes('probe', 'flag source tag comm =own_status', counting=COUNTS_NOTHING),
    'mprobe': probes('mprobe', '=true source tag comm message_out =own_status'),
    'improbe': probes('mprobe', 'flag source tag comm message_out =own_status'),
    'mrecv': receives(OWN_STATUS + LOOK_AT_MESSAGE, 'mrecv', '=own_status'),
    'imrecv': Role(('imrecv', 'request_out'), before=LOOK_AT_MESSAGE),

    'psend_init': Role(('psend_init', 'partitions count datatype dest tag comm request_out')),
    'precv_init': Role(('precv_init', 'partitions count datatype source tag comm request_out')),
    'pready': Role(('pready', '=1 request_in')),
    'pready_range': Role(('pready', '=partition_count request_in'),
                         before=('const int partition_count = <@partition_high> - <@partition_low> + 1;',)),
    'pready_list': Role(('pready', '@length request_in')),

    'start': Role(('start', 'request_inout'), before=('record::look_at_requests(call, <request_inout>);',)),
    'startall': Role(('start', 'requests'), before=('record::look_at_requests(call, <requests>);',)),
    'wait': completes(COMPLETES_ONE, 'completed_one', '=true =own_status'),
    'test': completes(COMPLETES_ONE, 'completed_one', 'flag =own_status'),
    'waitany': completes(COMPLETES_ANY, 'completed_any', '=true index =own_status'),
    'testany': completes(COMPLETES_ANY, 'completed_any', 'flag index =own_status'),
    'waitall': completes(COMPLETES_MANY, 'completed_all', '=outcome =true =own_status'),
    'testall': completes(COMPLETES_MANY, 'completed_all', '=outcome flag =own_status'),
    'waitsome': completes(COMPLETES_MANY, 'completed_some', '=outcome outcount indices =own_status'),
    'testsome': completes(COMPLETES_MANY, 'completed_some', '=outcome outcount indices =own_status'),
    'request_get_status': Role(('request_status', 'flag')),
    'request_free': Role(('request_free', ''), before=('record::before_free(call, <request_inout>);',)),
    'cancel': Role(('cancel', '*request_inout')),

    'collective': Role(COLLECTIVES, chosen_by='op', request='made',
                       counting=Counting('begin', '=SkippedSide::kCollectives key =kAnyRank =kAnyTag', 'count')),
    'collective_init': Role(COLLECTIVES, chosen_by='op', request='made_persistent'),

    'comm_create': Role(('comm_create', '=how comm comm_out =tag'), request='made'),
    'comm_create_from_group': Role(('comm_create_from_group', '=how string comm_out')),
    'comm_free': Role(('comm_free', '=comm_before'), before=FREES_COMM),
    'comm_disconnect': Role(('comm_free', '=comm_before'), before=FREES_COMM),

    'win_create': Role(('win_create', 'comm win_out')),
    'win_free': Role(('win_free', '=win_before'), before=FREES_WIN),
    'win_fence': Role(('win_fence', 'win')),
    'win_post': Role(('win_post', 'group @assert win')),
    'win_start': Role(('win_start', 'group @assert win')),
    'win_complete': Role(('win_complete', 'win')),
    'win_wait': Role(('win_wait', '=true win')),
    'win_test': Role(('win_wait', 'flag win')),
    'win_lock': Role(('win_lock', 'rank @assert win')),
    'win_lock_all': Role(('win_lock_all', 'win')),
    'win_flush': Role(('win_flush', 'rank win')),
    'win_flush_all': Role(('win_flush', '=MPI_ANY_SOURCE win')),
    'one_sided': Role(ONE_SIDED, chosen_by='op', request='made'),
}

# Functions without communication: no record. What the recorder wants to know of some all the same.
LOCAL = 'local'
LOCAL_BEFORE = {'MPI_Type_free': ('record::type_freed();',)}
