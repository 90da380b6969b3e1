"""How a function's arguments look in each binding, and how they become C values: between the description
(mpi_description.py) and the text (generate_wrappers.py)."""
import re

from mpi_description import BUFFERS, STRINGS, VARIADIC_WORDS
from wrapper_roles import C, FORTRAN, FUNCTION_WORDS, LOCAL, ROLES

# kind -> its C value in C, in Fortran. {0} is the argument, {first} the number of an array's first element, {buffer} what makes
# a buffer of it. '*kind': what the argument refers to, as it is before the call.
HANDLE = '{0}'
REFERRED = '*{0}'
VALUES = {
    'comm': (HANDLE, 'c_comm({0})'),
    'win': (HANDLE, 'c_win({0})'),
    'group': (HANDLE, 'c_group({0})'),
    'request_in': (HANDLE, 'c_request({0})'),
    'request_inout': ('requests_of(1, {0})', 'requests_of(1, {0})'),
    'request_out': (REFERRED, 'c_request({0})'),
    'message_out': (REFERRED, 'c_message({0})'),
    'comm_out': ('new_comm_of({0})', 'new_comm_of({0})'),
    'win_out': (REFERRED, 'c_win({0})'),
    'session_out': (REFERRED, 'c_session({0})'),
    'session_inout': (REFERRED, 'c_session({0})'),
    '*request_inout': (REFERRED, 'c_request({0})'),
    '*message_inout': (REFERRED, 'c_message({0})'),
    '*comm_inout': (REFERRED, 'c_comm({0})'),
    '*win_inout': (REFERRED, 'c_win({0})'),
    'string': ('text_of({0})', 'Text{{{0}, {0}_length}}'),
    'index': ('*{0} - {first}', '*{0} - {first}'),
    'indices': ('Indices{{{0}, {first}}}', 'Indices{{{0}, {first}}}'),
    'flag': ('*{0} != 0', '*{0} != 0'),
    'outcount': (REFERRED, REFERRED),
    'int_out': (REFERRED, REFERRED),
    'status': ('{0}', '{0}'),
    'statuses': ('{0}', '{0}'),
    'send_counts': ('counts_of({0})', 'counts_of({0})'),
    'recv_counts': ('counts_of({0})', 'counts_of({0})'),
    'send_datatypes': ('types_of({0})', 'types_of({0})'),
    'recv_datatypes': ('types_of({0})', 'types_of({0})'),
}
VALUES.update({kind: (HANDLE, 'c_type({0})') for kind in ('datatype', 'send_datatype', 'recv_datatype')})
VALUES.update({kind: (HANDLE, '{buffer}({0})') for kind in BUFFERS})
WHOLE_NUMBER = ('{0}', REFERRED)

# Kinds that Fortran passes as an INTEGER, a LOGICAL or arrays of them.
FORTRAN_INTEGERS = set(
    'count partitions send_count recv_count send_counts recv_counts datatype send_datatype recv_datatype send_datatypes '
    'recv_datatypes dest source root rank tag send_tag recv_tag comm comm_out comm_inout request_out request_inout '
    'request_in request_count requests status statuses flag index outcount indices message_out message_inout message '
    'level color key int int_out win win_out win_inout group session_out session_inout'.split())


class Binding:
    def __init__(self, language, first='', buffer='', outcome=''):
        self.language = language
        self.column = (C, FORTRAN).index(language)
        self.words = {'first': first, 'buffer': buffer}
        self.outcome = outcome  # what says whether the call succeeded


BINDINGS = {
    'c': Binding(C, first='0', outcome='result'),
    'mpifh': Binding(FORTRAN, first='1', buffer='c_buffer', outcome='*error'),
    'f08': Binding(FORTRAN, first='family::f08_first_index()', buffer='c_buffer', outcome='*error'),
    'f08ts': Binding(FORTRAN, first='family::f08_first_index()', buffer='c_described_buffer', outcome='*error'),
}


class Arguments:
    """The arguments of one function in one binding, as C values."""

    def __init__(self, function, binding):
        self.function = function
        self.binding = binding
        self.names = {}  # by kind: the first one's
        self.kinds = {}  # by name
        for name, _, kind in function['arguments']:
            self.names.setdefault(kind, name)
            self.kinds[name] = kind

    def _value(self, name, kind):
        return VALUES.get(kind, WHOLE_NUMBER)[self.binding.column].format(name, **self.binding.words)

    def value(self, word):
        """Of a kind, *kind or @name (wrapper_roles.py)."""
        if word == 'requests':
            return f'requests_of({self.value("request_count")}, {self.names["requests"]})'
        if word == 'key':
            return f'key_of({self.value("comm")})'
        if word.startswith('@'):
            return self._value(word[1:], self.kinds[word[1:]])
        return self._value(self.names[word.lstrip('*')], word)

    def literal(self, word):
        if word in FUNCTION_WORDS:
            return FUNCTION_WORDS[word](self.function)
        if word == '=outcome':
            return self.binding.outcome
        if word == '=tag':
            return self.value('tag') if 'tag' in self.names else '0'
        return word[1:]

    def values(self, words):
        return [self.literal(word) if word.startswith('=') else self.value(word) for word in words.split()]

    def filled(self, line):
        return re.sub(r'<([*@]?\w+)>', lambda match: self.value(match.group(1)), line)

    def made_request(self, made):
        """The request that the call leaves; none of a blocking call."""
        if self.function.get('blocking', 'request_out' not in self.names):
            return 'kBlockingCall'
        return f'{made}({self.value("request_out")})'


def further_words(function):
    """Names for what may stand in the registers behind the arguments of a function with '...'."""
    return [f'word_{i}' for i in range(len(function['arguments']), VARIADIC_WORDS)]


def c_parameter(argument):
    name, c_type, _ = argument
    return c_type.replace('(*)', f'(*{name})') if '(*)' in c_type else f'{c_type} {name}'


def fortran_parameter(argument):
    name, c_type, kind = argument
    if kind in BUFFERS:
        return f'{"const " if c_type.startswith("const ") else ""}void* {name}'
    if kind in STRINGS:
        return f'char* {name}'
    if kind in FORTRAN_INTEGERS:
        return f'{"MPI_Count" if c_type == "MPI_Count" else "MPI_Fint"}* {name}'
    return f'void* {name}'


class CSignature:
    """The parameters of a function, as its wrapper declares and forwards them."""

    def __init__(self, function):
        self.returns = function['returns']
        declared = [c_parameter(argument) for argument in function['arguments']]
        self.names = [argument[0] for argument in function['arguments']]
        self.pointed = ', '.join(declared)
        if function.get('variadic'):
            more = further_words(function)
            self.pointed += ', ...'
            self.names += more
            declared += [f'std::uintptr_t {name}' for name in more]
        self.declared = ', '.join(declared) or 'void'
        self.has_error = False


class FortranSignature:
    def __init__(self, function, f08, adds_error):
        self.returns = 'double' if function['returns'] == 'double' else 'void'
        passed = [a for a in function['arguments'] if a[2] not in ('argc', 'argv')]
        parameters = [(fortran_parameter(argument), argument[0]) for argument in passed]
        self.has_error = function.get('fortran_ierror', True)
        is_subroutine = self.returns == 'void'
        if self.has_error and is_subroutine:
            parameters.append(('MPI_Fint* ierror', 'ierror'))
        if function.get('variadic') and not f08:  # mpif.h has no interface: a tool's routine may have more arguments
            parameters += [(f'void* {name}', name) for name in further_words(function)]
        parameters += [(f'std::size_t {a[0]}_length', f'{a[0]}_length') for a in passed if a[2] in STRINGS]
        if adds_error:
            parameters.append(('MPI_Fint* ierror', 'ierror'))
        self.names = [name for _, name in parameters]
        self.declared = self.pointed = ', '.join(text for text, _ in parameters)


class Wrapper:
    """One function in one binding: all that the text of its wrappers is made of."""

    def __init__(self, slot, family):
        function = slot.function
        self.slot = slot
        self.function = function
        self.binding = BINDINGS[slot.binding]
        self.is_local = function['role'] == LOCAL
        self.role = None if self.is_local else ROLES[function['role']]
        f08 = slot.binding in ('f08', 'f08ts')
        self.signature = (FortranSignature(function, f08, family.pcontrol_has_error and f08 and function['name'] == 'MPI_Pcontrol')
                          if slot.fortran else CSignature(function))
        self.arguments = Arguments(function, self.binding)

    @property
    def is_c(self):
        return self.binding.language == C

    @property
    def tells_outcome(self):
        return self.is_c or self.signature.has_error

    def given(self, own_status):
        """The arguments of the call: the program's own, but for the error and, with `own_status`, the status."""
        given = {'ierror': 'error'} if self.signature.has_error else {}
        if own_status:
            names = self.arguments.names
            given[names.get('status') or names['statuses']] = 'own_status'
        return ', '.join(given.get(name, name) for name in self.signature.names)

    @property
    def condition(self):
        """When a call's outcome is recorded."""
        if not self.tells_outcome:
            return ''
        outcome = self.binding.outcome
        also = f' || family::may_be_truncated({outcome})' if self.binding.language in self.role.truncated else ''
        return f'if ({outcome} == MPI_SUCCESS{also}) '

    @property
    def before(self):
        return [self.arguments.filled(line) for line in self.role.before]

    @property
    def record_call(self):
        """The call of the recorder after the function's; None: there is none."""
        after = self.role.after
        if self.role.chosen_by:
            after = after[self.function.get(self.role.chosen_by)]
        if after is None:
            return None
        name, words = after
        values = ['call'] + self.arguments.values(words)
        if self.role.request:
            values.append(self.arguments.made_request(self.role.request))
        return f'record::{name}({", ".join(values)});'
