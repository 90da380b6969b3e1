#!/usr/bin/env python3
"""Makes the MPI wrappers of the capture library (C, mpif.h, mpi_f08) from event/mpi_functions.yml.

A wrapper holds no logic: it begins a Call, forwards the program's own arguments to the next function of that name
(a PMPI tool behind us, or the library), says that it returned, tells the recorder (spank_plugin/capture/recorder.h) what came out with the
arguments as C kinds, and finishes the Call. Functions of the kinds in COUNTING have two more wrappers, which only
count the call (spank_plugin/capture/counted_call.h: of a program with one thread in MPI at a time, and of others), and
go on in the first one where that does not do. What a kind of call means is written by hand in recorder_*.cpp; which
recorder function a role goes to, and with which arguments, is the table below.

usage: generate_wrappers.py mpi_functions.yml FAMILY OUTPUT_DIRECTORY
writes wrappers_c.cpp, wrappers_mpifh.cpp, wrappers_f08.cpp, wrappers_f08ts.cpp and wrapper_table.cpp for FAMILY (openmpi, mpich)
"""
import os
import sys

from mpi_description import BUFFERS, STRINGS, VARIADIC_WORDS, layout, read_functions, slots

# op of a collective -> recorder function, and the kinds of the arguments that it takes, in its order. 'op' stands for
# the operation itself.
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

# op of a one-sided operation -> the kinds of the arguments that say its bytes: into the window, or out of it.
ONE_SIDED_COUNT = {
    'put': 'count datatype',
    'get': 'count datatype',
    'accumulate': 'count datatype',
    'get_accumulate': '@result_count @result_datatype',
    'fetch_and_op': '=1 datatype',
    'compare_and_swap': '=1 datatype',
}

# role -> recorder function after the call, and its arguments: kinds, or literal text after '='.
AFTER = {
    'init': ('initialised', ''),
    'init_thread': ('initialised', ''),
    'finalize': ('finalized', ''),
    'abort': None,
    'pcontrol': ('phase', 'level'),
    'unmodelled': ('unmodelled', ''),
    'send': ('send', '=mode count datatype dest tag comm'),
    'isend': ('isend', '=mode count datatype dest tag comm request_out'),
    'persistent_init_send': ('send_init', '=mode count datatype dest tag comm request_out'),
    'recv': ('recv', 'source tag comm status'),
    'irecv': ('irecv', 'count datatype source tag comm request_out'),
    'persistent_init_recv': ('recv_init', 'count datatype source tag comm request_out'),
    'sendrecv': ('sendrecv', 'send_count send_datatype dest send_tag source recv_tag comm status'),
    'sendrecv_replace': ('sendrecv', 'count datatype dest send_tag source recv_tag comm status'),
    'probe': ('probe', '=true source tag comm status'),
    'iprobe': ('probe', 'flag source tag comm status'),
    'mprobe': ('mprobe', '=true source tag comm message_out status'),
    'improbe': ('mprobe', 'flag source tag comm message_out status'),
    'mrecv': ('mrecv', 'status'),
    'imrecv': ('imrecv', 'request_out'),
    'isendrecv': ('isendrecv', 'send_count send_datatype dest send_tag recv_count recv_datatype source recv_tag comm '
                  'request_out'),
    'isendrecv_replace': ('isendrecv', 'count datatype dest send_tag count datatype source recv_tag comm request_out'),
    'psend_init': ('psend_init', 'partitions count datatype dest tag comm request_out'),
    'precv_init': ('precv_init', 'partitions count datatype source tag comm request_out'),
    'pready': ('pready', '=1 request_in'),
    'pready_range': ('pready', '=partition_count request_in'),
    'pready_list': ('pready', '@length request_in'),
    'session_init': ('session_begun', 'session_out'),
    'session_finalize': ('session_ended', ''),
    'start': ('start', 'request_inout'),
    'startall': ('start', 'requests'),
    'wait': ('completed_one', '=true status'),
    'test': ('completed_one', 'flag status'),
    'waitany': ('completed_any', '=true index status'),
    'testany': ('completed_any', 'flag index status'),
    'waitall': ('completed_all', '=OUTCOME =true statuses'),
    'testall': ('completed_all', '=OUTCOME flag statuses'),
    'waitsome': ('completed_some', '=OUTCOME outcount indices statuses'),
    'testsome': ('completed_some', '=OUTCOME outcount indices statuses'),
    'request_get_status': ('request_status', 'flag'),
    'request_free': ('request_free', ''),
    'cancel': ('cancel', '*request_inout'),
    'comm_create': ('comm_create', '=how comm comm_out =tag'),
    'comm_create_from_group': ('comm_create_from_group', '=how string comm_out'),
    'comm_free': ('comm_free', '=comm_before'),
    'comm_disconnect': ('comm_free', '=comm_before'),
    'win_create': ('win_create', 'comm win_out'),
    'win_free': ('win_free', '=win_before'),
    'win_fence': ('win_fence', 'win'),
    'win_post': ('win_post', 'group @assert win'),
    'win_start': ('win_start', 'group @assert win'),
    'win_complete': ('win_complete', 'win'),
    'win_wait': ('win_wait', '=true win'),
    'win_test': ('win_wait', 'flag win'),
    'win_lock': ('win_lock', 'rank @assert win'),
    'win_lock_all': ('win_lock_all', 'win'),
    'win_flush': ('win_flush', 'rank win'),
    'win_flush_all': ('win_flush', '=MPI_ANY_SOURCE win'),
    'spawn': ('spawned', 'comm comm_out'),
}
COMPLETING = ('wait', 'waitany', 'waitall', 'waitsome', 'test', 'testany', 'testall', 'testsome', 'request_free')
OWN_STATUS = ('recv', 'sendrecv', 'sendrecv_replace', 'probe', 'iprobe', 'mprobe', 'improbe', 'mrecv')
# What still has to be told where the capture went off while the program ran.
ENDING = {'finalize': 'process_ends_uncaptured(ring::ProcessState::kFinalized);',
          'abort': 'process_ends_uncaptured(ring::ProcessState::kAborted);',
          'session_finalize': 'session_closes_uncaptured(SESSION);'}
# Where no capture begins, after the call: why not, in one line.
UNCAPTURED = {'init': 'process_init_failed_to_capture();', 'init_thread': 'process_init_failed_to_capture();',
              'session_init': 'session_opens_uncaptured();'}
# A truncated message was received all the same: the status says which.
RECEIVING = ('recv', 'sendrecv', 'sendrecv_replace', 'mrecv', 'wait', 'waitany', 'waitall', 'waitsome', 'test', 'testany',
             'testall', 'testsome')
# What a call counts while calls are only counted: how a CountedCall begins, with which kinds of arguments, and how it counts.
# Other roles have no counting wrapper. 'comm' stands for the key of the communicator's handle.
COUNTING = {
    'send': ('begin', '=SkippedSide::kSends comm dest tag', 'count'),
    'isend': ('begin', '=SkippedSide::kSends comm dest tag', 'count'),
    'recv': ('begin', '=SkippedSide::kReceives comm source tag', 'count'),
    'irecv': ('begin_posted', 'comm source tag', 'count'),
    'sendrecv': ('begin_exchange', 'comm dest send_tag source recv_tag', 'count_both'),
    'sendrecv_replace': ('begin_exchange', 'comm dest send_tag source recv_tag', 'count_both'),
    'collective': ('begin', '=SkippedSide::kCollectives comm =kAnyRank =kAnyTag', 'count'),
    'probe': ('begin', '', None),
    'iprobe': ('begin', '', None),
}
COUNTING.update((role, ('begin_completion', '', None)) for role in COMPLETING if role != 'request_free')

# OPTIONAL in mpi_f08: without the program's variable the outcome still has to be known.
OWN_ERROR = ('  MPI_Fint own_error = MPI_SUCCESS;',
             '  MPI_Fint* const error = ierror != nullptr ? ierror : &own_error;')

# MPICH's mpi.h has these as macros, its library not at all.
MPICH_MACROS = ('_c2f', '_f2c')


def camel(words):
    return 'k' + ''.join(word.capitalize() for word in words.split('_'))


class Binding:
    """How one language says the arguments, and how they become C kinds."""

    def __init__(self, fortran, f08, described=False):
        self.fortran = fortran
        self.f08 = f08
        self.described = described  # buffers come as their descriptors

    def value(self, argument, own_status=None):
        """The C value of an argument, after the call."""
        name, _, kind = argument
        f = self.fortran
        if kind in ('comm', 'win', 'group'):
            return f'c_{kind}({name})' if f else name
        if kind in ('datatype', 'send_datatype', 'recv_datatype'):
            return f'c_type({name})' if f else name
        if kind in ('buf', 'send_buf', 'recv_buf'):
            return f'c_described_buffer({name})' if self.described else f'c_buffer({name})' if f else name
        if kind in ('send_datatypes', 'recv_datatypes'):
            return f'types_of({name})'
        if kind == 'request_out':
            return f'c_request({name})' if f else f'*{name}'
        if kind == 'request_in':
            return f'c_request({name})' if f else name
        if kind == 'request_inout':
            return f'requests_of(1, {name})'
        if kind == 'message_out':
            return f'c_message({name})' if f else f'*{name}'
        if kind == 'comm_out':
            return f'new_comm_of({name})'
        if kind == 'win_out':
            return f'c_win({name})' if f else f'*{name}'
        if kind in ('session_out', 'session_inout'):
            return f'c_session({name})' if f else f'*{name}'
        if kind == 'string':
            return f'Text{{{name}, {name}_length}}' if f else f'text_of({name})'
        first = 'family::f08_first_index()' if self.f08 else '1' if f else '0'
        if kind == 'index':
            return f'*{name} - {first}'
        if kind == 'indices':
            return f'Indices{{{name}, {first}}}'
        if kind == 'flag':
            return f'*{name} != 0'
        if kind in ('outcount', 'int_out'):
            return f'*{name}'
        if kind in ('status', 'statuses'):
            return own_status or name
        if kind in ('send_counts', 'recv_counts'):
            return f'counts_of({name})'
        return f'*{name}' if f else name  # plain integers


def c_parameter(argument):
    name, c_type, _ = argument
    if '(*)' in c_type:
        return c_type.replace('(*)', f'(*{name})')
    return f'{c_type} {name}'


def further_words(function):
    """Names for what may stand in the registers behind the arguments of a function with '...'."""
    return [f'word_{i}' for i in range(len(function['arguments']), VARIADIC_WORDS)]


def fortran_parameters(function, f08):
    """(declarations, forwarded names, ierror name or None)"""
    declarations, names = [], []
    lengths = []
    for name, c_type, kind in function['arguments']:
        if kind in ('argc', 'argv'):
            continue
        const = 'const ' if c_type.startswith('const ') else ''
        if kind in ('buf', 'send_buf', 'recv_buf'):
            declarations.append(f'{const}void* {name}')
        elif kind in STRINGS:
            declarations.append(f'char* {name}')
            lengths.append(f'{name}_length')
        elif fortran_integer(kind):
            declarations.append(f'{"MPI_Count" if c_type == "MPI_Count" else "MPI_Fint"}* {name}')
        else:
            declarations.append(f'void* {name}')
        names.append(name)
    ierror = None
    if function.get('fortran_ierror', True):
        ierror = 'ierror'
        declarations.append('MPI_Fint* ierror')
        names.append('ierror')
    if function.get('variadic') and not f08:  # mpif.h has no interface: a tool's routine may have more arguments
        declarations += [f'void* {name}' for name in further_words(function)]
        names += further_words(function)
    for length in lengths:
        declarations.append(f'std::size_t {length}')
        names.append(length)
    return declarations, names, ierror


INTEGER_KINDS = set(
    'count partitions send_count recv_count send_counts recv_counts datatype send_datatype recv_datatype send_datatypes '
    'recv_datatypes dest source root rank tag send_tag recv_tag comm comm_out comm_inout request_out request_inout '
    'request_in request_count requests status statuses flag index outcount indices message_out message_inout message '
    'level color key int int_out win win_out win_inout group session_out session_inout'.split())


def fortran_integer(kind):
    return kind in INTEGER_KINDS


def recordable(function, result, binding):
    """When a call's outcome is recorded. Fortran's Wait and its like leave statuses alone where the call failed."""
    tells = function['role'] in (OWN_STATUS if binding.fortran else RECEIVING)
    also = f' || family::may_be_truncated({result})' if tells else ''
    return f'if ({result} == MPI_SUCCESS{also}) '


def ending(function, binding):
    sessions = [binding.value(argument) for argument in function['arguments'] if argument[2] == 'session_inout']
    return ENDING[function['role']].replace('SESSION', ''.join(sessions))


def is_wrapped(slot, family):
    """Whether a library of the family may have the function, and no wrapper of another binding sees its calls."""
    if family == 'openmpi':
        return True
    name = slot.function['name']
    if slot.binding == 'c':
        return not name.endswith(MPICH_MACROS) or name.startswith('MPI_Status')
    # mpif.h's functions call the C ones, and so do those of mpi_f08 that take a buffer (mpi_family_mpich.h).
    return slot.binding == 'f08' and not any(a[2] in BUFFERS for a in slot.function['arguments'])


# Releases of a library differ in what they declare const (MPI_Pready_list of MPICH 4 and 5).
WITHOUT_CONST = '''
template <class T>
struct WithoutConst {
  using type = T;
};
template <class T>
struct WithoutConst<const T*> {
  using type = T*;
};
template <class Result, class... Parameters>
struct WithoutConst<Result(Parameters...)> {
  using type = Result(typename WithoutConst<Parameters>::type...);
};
template <class Wrapper, class Function>
inline constexpr bool fits = std::is_same_v<typename WithoutConst<Wrapper>::type, typename WithoutConst<Function>::type>;

'''


def prototype_check(slot, family):
    """The description against mpi.h, for functions that were described last, where this mpi.h has them."""
    if slot.fortran:
        return ''
    name = slot.function['name']
    check = f'static_assert(fits<decltype(wrap_{slot.number}), decltype({name})>, "{name}");\n'
    if family == 'openmpi':
        return f'#if OMPI_MAJOR_VERSION >= {6 if name.endswith("_c") else 5}\n{check}#endif\n'
    return check


class Generator:
    def __init__(self, family):
        self.family = family
        self.text = {'c': [], 'mpifh': [], 'f08': [], 'f08ts': []}
        self.counting = []  # numbers of the slots that have counting wrappers

    def record_arguments(self, function, spec, binding, own_status):
        by_kind = {}
        by_name = {}
        for argument in function['arguments']:
            by_kind.setdefault(argument[2], argument)
            by_name[argument[0]] = argument
        result = []
        for word in spec.split():
            if word == '=op':
                result.append(f'CollectiveOp::{camel(function["op"])}')
            elif word == '=mode':
                result.append({'synchronous': 'kFlagSync', 'buffered': 'kFlagBuffered'}.get(function['mode'], '0'))
            elif word == '=how':
                result.append(f'How::{camel(function["how"])}')
            elif word == '=tag':
                result.append(binding.value(by_kind['tag']) if 'tag' in by_kind else '0')
            elif word.startswith('='):
                result.append(word[1:])
            elif word.startswith('@'):
                result.append(binding.value(by_name[word[1:]]))
            elif word == '*request_inout':
                name = by_kind['request_inout'][0]
                result.append(f'c_request({name})' if binding.fortran else f'*{name}')
            elif word == 'requests':
                count = binding.value(by_kind['request_count'])
                result.append(f'requests_of({count}, {by_kind["requests"][0]})')
            else:
                result.append(binding.value(by_kind[word], own_status))
        if function['role'] in ('collective', 'collective_init', 'comm_create', 'one_sided', 'io'):
            if function.get('blocking', 'request_out' not in by_kind):
                result.append('kBlockingCall')
            else:
                request = by_kind['request_out'][0]
                made = 'made_persistent' if function['role'] == 'collective_init' else 'made'
                result.append(f'{made}(c_request({request}))' if binding.fortran else f'{made}(*{request})')
        return result

    def body(self, function, binding, forward):
        """Lines of a wrapper between `next` and the return; forward(status_replacement) -> the call's text."""
        role = function['role']
        by_kind = {}
        for argument in function['arguments']:
            by_kind.setdefault(argument[2], argument)
        lines = [f'Call call({function["id"]});  // {function["name"]}']
        before = []
        own_status = None
        status_argument = None
        if role in COMPLETING:
            look = 'before_free' if role == 'request_free' else 'before_completion'
            if 'requests' in by_kind:
                count = binding.value(by_kind['request_count'])
                before.append(f'record::{look}(call, requests_of({count}, {by_kind["requests"][0]}));')
            else:
                name = by_kind['request_inout'][0]
                one = f'c_request({name})' if binding.fortran else f'*{name}'
                before.append(f'record::{look}(call, {one if look == "before_completion" else f"requests_of(1, {name})"});')
            if 'status' in by_kind:
                status_argument = by_kind['status'][0]
                own_status = 'own_status'
                before.append(f'auto* const own_status = record::completion_status_for(call, {status_argument});')
            elif 'statuses' in by_kind:
                status_argument = by_kind['statuses'][0]
                own_status = 'own_status'
                before.append(f'auto* const own_status = record::completion_statuses_for(call, {status_argument});')
        elif role in OWN_STATUS:
            status_argument = by_kind['status'][0]
            own_status = 'own_status'
            before.append(f'auto* const own_status = record::status_for(call, {status_argument});')
        if role in ('mrecv', 'imrecv'):
            name = by_kind['message_inout'][0]
            before.append(f'record::look_at_message(call, {f"c_message({name})" if binding.fortran else "*" + name});')
        if role in ('start', 'startall'):
            if 'requests' in by_kind:
                requests = f'requests_of({binding.value(by_kind["request_count"])}, {by_kind["requests"][0]})'
            else:
                requests = f'requests_of(1, {by_kind["request_inout"][0]})'
            before.append(f'record::look_at_requests(call, {requests});')
        if role in ('comm_free', 'comm_disconnect'):
            name = by_kind['comm_inout'][0]
            before.append(f'const MPI_Comm comm_before = {f"c_comm({name})" if binding.fortran else "*" + name};')
            before.append('record::freeing(call, key_of(comm_before));')
        if role == 'win_free':
            name = by_kind['win_inout'][0]
            before.append(f'const MPI_Win win_before = {f"c_win({name})" if binding.fortran else "*" + name};')
            before.append('record::freeing(call, key_of(win_before));')
        if role == 'pready_range':
            low, high = (binding.value(a) for a in function['arguments'][:2])
            before.append(f'const int partition_count = {high} - {low} + 1;')
        if role == 'finalize':
            before.append('record::finalizing(call);')
        if role == 'session_finalize':
            before.append(f'record::session_ending(call, {binding.value(by_kind["session_inout"])});')
        if role == 'abort':
            before.append('record::aborting(call);')
        if role in ('collective', 'collective_init'):
            after = COLLECTIVES[function['op']]
        elif role == 'one_sided':
            after = ('one_sided', f'=OneSidedOp::{camel(function["op"])} {ONE_SIDED_COUNT[function["op"]]} rank win')
        elif role == 'io':
            direction = function.get('direction')
            after = ('io', f'=IoDirection::{camel(direction)} count datatype' if direction
                     else '=IoDirection::kNone =0 =MPI_Datatype{}')
        else:
            after = AFTER[role]
        return lines, before, own_status, status_argument, after

    def after_lines(self, function, binding, after, own_status, success):
        lines = []
        if after is not None:
            # OUTCOME: what the call returned
            arguments = ', '.join(['call'] + self.record_arguments(function, after[1], binding, own_status))
            arguments = arguments.replace('OUTCOME', '*error' if binding.fortran else 'result')
            lines.append(f'{success}record::{after[0]}({arguments});')
        lines.append('call.finish();')
        if function['role'] in UNCAPTURED:
            lines.append('process_leave();')
        return lines

    def counting_wrappers(self, slot, *rest):
        if slot.function['role'] not in COUNTING:
            return
        self.counting_wrapper('count', 'CountedCall', slot, *rest)
        self.counting_wrapper('share', 'SharedCountedCall', slot, *rest)
        self.counting.append(slot.number)

    def counting_wrapper(self, prefix, call_class, slot, binding, returns, declared, call, result, outcome):
        """A wrapper that counts. `result`, `outcome`: text of the call's result, or None and what says it."""
        function = slot.function
        begin, kinds, count = COUNTING[function['role']]
        by_kind = {}
        for argument in function['arguments']:
            by_kind.setdefault(argument[2], argument)
        values = []
        for word in kinds.split():
            if word == 'comm':
                values.append(f'key_of({binding.value(by_kind["comm"])})')
            else:
                values.append(word[1:] if word.startswith('=') else binding.value(by_kind[word]))
        begins = f'call.{begin}({", ".join(values)})'
        out = self.text[slot.binding]
        names = ', '.join(name for name in call[1])
        # Apart from the others, which stay as close together as they can.
        apart = '[[gnu::section(".text.shared")]] ' if prefix == 'share' else ''
        out.append(f'{apart}{returns} {prefix}_{slot.number}({declared}) {{')
        out.append(f'  {call_class} call({function["id"]});  // {function["name"]}')
        out.append(f'  if (!{begins}) [[unlikely]]')
        out.append(f'    return wrap_{slot.number}({names});')
        out.append(f'  const auto next = reinterpret_cast<{call[0]}>(next_function({slot.number}));')
        if outcome and not result:
            out += OWN_ERROR
        out.append('  call.forward();')
        out.append(f'  {"const int result = " if result else ""}next({", ".join(call[2])});')
        out.append('  call.returned();')
        if count:
            out.append(f'  {recordable(function, result or outcome, binding)}[[likely]]\n    call.{count}();' if outcome or result
                       else f'  call.{count}();')
        out.append('  call.finish();')
        if result:
            out.append('  return result;')
        out.append('}')

    # --- C ---
    def c_wrapper(self, slot):
        function = slot.function
        name = function['name']
        out = self.text['c']
        declared = ', '.join(c_parameter(a) for a in function['arguments'])
        arguments = [a[0] for a in function['arguments']]
        returns = function['returns']
        pointer = f'reinterpret_cast<{returns} (*)({declared}{", ..." if function.get("variadic") else ""})>'
        if function.get('variadic'):
            more = further_words(function)
            declared += ''.join(f', std::uintptr_t {name}' for name in more)
            arguments += more
        out.append(f'{returns} wrap_{slot.number}({declared or "void"}) {{')
        out.append(f'  const auto next = {pointer}(next_function({slot.number}));')
        binding = Binding(False, False)
        call = f'next({", ".join(arguments)})'
        if function['role'] == 'local':
            out.append(f'  const LocalCall call({function["id"]});')
            if name == 'MPI_Type_free':
                out.append('  record::type_freed();')
            out.append(f'  return {call};')
            out.append('}')
            return
        role = function['role']
        lines, before, own_status, status_argument, after = self.body(function, binding, None)
        out.append('  ' + lines[0])
        if role in UNCAPTURED:
            out.append('  if (!call.begin()) {')
            out.append(f'    const int bare = {call};')
            out.append(f'    if (bare == MPI_SUCCESS) {UNCAPTURED[role]}')
            out.append('    return bare;')
            out.append('  }')
        elif role in ENDING:
            out.append(f'  if (!call.begin()) {{ {ending(function, binding)} return {call}; }}')
        else:
            out.append(f'  if (!call.begin()) return {call};')
        out += ['  ' + line for line in before]
        forwarded = [own_status if own_status and a == status_argument else a for a in arguments]
        out.append('  call.forward();')
        out.append(f'  const int result = next({", ".join(forwarded)});')
        out.append('  call.returned();')
        out += ['  ' + line for line in
                self.after_lines(function, binding, after, own_status, recordable(function, 'result', binding))]
        out.append('  return result;')
        out.append('}')
        self.counting_wrappers(slot, binding, returns, declared or 'void',
                               (f'{returns} (*)({declared})', arguments, arguments), 'result', None)

    # --- Fortran ---
    def fortran_wrapper(self, slot):
        function = slot.function
        role = function['role']
        f08 = slot.binding in ('f08', 'f08ts')
        out = self.text[slot.binding]
        binding = Binding(True, f08, slot.binding == 'f08ts')
        if function['returns'] == 'double':
            out.append(f'double wrap_{slot.number}() {{')
            out.append(f'  const auto next = reinterpret_cast<double (*)()>(next_function({slot.number}));')
            out.append(f'  const LocalCall call({function["id"]});')
            out.append('  return next();')
            out.append('}')
            return
        declarations, names, ierror = fortran_parameters(function, f08)
        if self.family == 'mpich' and f08 and function['name'] == 'MPI_Pcontrol':  # an ierror that MPI does not have
            declarations.append('MPI_Fint* ierror')
            names.append('ierror')
        parameters = ', '.join(declarations)
        out.append(f'void wrap_{slot.number}({parameters}) {{')
        out.append(f'  const auto next = reinterpret_cast<void (*)({parameters})>(next_function({slot.number}));')
        call = f'next({", ".join(names)});'
        if role == 'local':
            out.append(f'  const LocalCall call({function["id"]});')
            if function['name'] == 'MPI_Type_free':
                out.append('  record::type_freed();')
            out.append(f'  {call}')
            out.append('}')
            return
        lines, before, own_status, status_argument, after = self.body(function, binding, None)
        out.append('  ' + lines[0])
        if role in UNCAPTURED:
            out.append('  if (!call.begin()) {')
            out.append(f'    {call}')
            out.append(f'    {UNCAPTURED[role]}')
            out.append('    return;')
            out.append('  }')
        elif role in ENDING:
            out.append(f'  if (!call.begin()) {{ {ending(function, binding)} return {call} }}')
        else:
            out.append(f'  if (!call.begin()) return {call}')
        success = ''
        if ierror:
            out += OWN_ERROR
            success = recordable(function, '*error', binding)
        out += ['  ' + line for line in before]
        forwarded = []
        for n in names:
            if own_status and n == status_argument:
                forwarded.append(own_status)
            elif n == 'ierror' and ierror:
                forwarded.append('error')
            else:
                forwarded.append(n)
        out.append('  call.forward();')
        out.append(f'  next({", ".join(forwarded)});')
        out.append('  call.returned();')
        out += ['  ' + line for line in self.after_lines(function, binding, after, own_status, success)]
        out.append('}')
        given = ['error' if n == 'ierror' and ierror else n for n in names]
        self.counting_wrappers(slot, binding, 'void', parameters, (f'void (*)({parameters})', names, given), None,
                               '*error' if ierror else None)

    def write(self, directory, table):
        head = ('// Made from event/mpi_functions.yml by spank_plugin/capture/generate_wrappers.py.\n'
                '#include <type_traits>\n\n#include "spank_plugin/capture/recorder.h"\n\n')
        wrapped = [slot for slot in table if is_wrapped(slot, self.family)]
        for slot in wrapped:
            if slot.fortran:
                self.fortran_wrapper(slot)
            else:
                self.c_wrapper(slot)
        for part, lines in self.text.items():
            with open(os.path.join(directory, f'wrappers_{part}.cpp'), 'w', encoding='utf-8') as file:
                file.write(head + 'using namespace lbf;\nusing namespace lbf::capture;\n\nextern "C" {\n')
                file.write('\n'.join(lines) + '\n}\n')
                if part == 'c':
                    file.write(WITHOUT_CONST + ''.join(prototype_check(slot, self.family) for slot in wrapped if 'since' in slot.function))
        numbers = {slot.number for slot in wrapped}
        with open(os.path.join(directory, 'wrapper_table.cpp'), 'w', encoding='utf-8') as file:
            file.write('// Made from event/mpi_functions.yml by spank_plugin/capture/generate_wrappers.py.\n'
                       '#include "spank_plugin/capture/library.h"\n\nextern "C" {\n')
            file.write(''.join(f'void wrap_{number}();\n' for number in sorted(numbers)))
            file.write(''.join(f'void count_{number}();\nvoid share_{number}();\n' for number in sorted(self.counting)))
            file.write(f'}}\n\nnamespace lbf::capture {{\n\nconst std::uint64_t wrapper_layout = {layout(table)};\n')
            file.write(f'constinit lbf_function wrapper_next[{len(table)}] = {{}};\n')
            file.write(f'const std::size_t wrapper_slots = {len(table)};\n')
            file.write('constinit const CountingWrapper counting_wrappers[] = {\n')
            file.write(''.join(f'    {{{number}, count_{number}, share_{number}}},\n' for number in sorted(self.counting)))
            file.write(f'}};\nconst std::size_t counting_wrapper_count = {len(self.counting)};\n')
            ending = [slot.number for slot in wrapped if slot.function['role'] in ENDING or slot.function['role'] == 'session_init']
            file.write(f'constinit const std::uint32_t ending_slots[] = {{{", ".join(map(str, ending))}}};\n')
            file.write(f'const std::size_t ending_slot_count = {len(ending)};\n')
            file.write('constinit const lbf_function wrappers[] = {\n')
            file.write(''.join(f'    wrap_{slot.number},  // {slot.name}\n' if slot.number in numbers else '    nullptr,\n'
                               for slot in table))
            file.write('};\n\n}  // namespace lbf::capture\n')


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in ('openmpi', 'mpich'):
        sys.exit(__doc__)
    Generator(sys.argv[2]).write(sys.argv[3], list(slots(read_functions(sys.argv[1]))))


if __name__ == '__main__':
    main()
