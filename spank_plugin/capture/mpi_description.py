"""Reads event/mpi_functions.yml for the generators of the capture: which functions, under which names, with how many
arguments, and the slot that each has in the preload's table."""
import hashlib

import yaml

# What a function of a variable number of arguments (MPI_Pcontrol) is taken to have, in all: the integer argument registers
# of x86-64. A register more than the caller filled is read, and means nothing to anybody.
VARIADIC_WORDS = 6
BUFFERS = ('buf', 'send_buf', 'recv_buf')
STRINGS = ('string', 'string_out', 'strings')
MPI_ERR_OTHER = 16
# What a program, or a library, asks MPI before anything else.
CALLED_FIRST = ('MPI_Init', 'MPI_Init_thread', 'MPI_Initialized', 'MPI_Finalized', 'MPI_Session_init', 'MPI_Comm_rank',
                'MPI_Comm_size', 'MPI_Query_thread', 'MPI_Get_version', 'MPI_Get_library_version')
FORTRAN_ANSWERS = ('MPI_Initialized', 'MPI_Finalized')  # answer "no" where there is no MPI library


HOST_VERSION = 4  # of lbf_dispatch_host


class Slot:
    """An entry of the preload: one function of one binding."""

    def __init__(self, number, function, binding, name, aliases):
        self.number = number
        self.function = function
        self.binding = binding          # 'c', 'mpifh', 'f08', 'f08ts'
        self.fortran = binding != 'c'
        self.name = name
        self.aliases = aliases
        arguments = function['arguments']
        self.error_word = None
        if function['returns'] == 'double':
            self.words = 0
        elif self.fortran:
            passed = [a for a in arguments if a[2] not in ('argc', 'argv')]
            self.words = len(passed)
            if function.get('fortran_ierror', True):
                self.error_word = self.words
                self.words += 1
            self.words += sum(1 for a in passed if a[2] in STRINGS)
        else:
            self.words = len(arguments)
        if function.get('variadic'):
            self.words = VARIADIC_WORDS


def read_functions(path):
    with open(path, encoding='utf-8') as file:
        return yaml.safe_load(file)['functions']


def is_of_abi(function):
    """Whether MPI's standard ABI has it: no Fortran handle is any argument of a C function there."""
    return not function['name'].endswith(('_c2f', '_f2c'))


def slots(functions):
    """All slots in their order: C, mpif.h, mpi_f08, mpi_f08 with descriptors of buffers (Open MPI 6)."""
    number = 0
    for function in functions:
        yield Slot(number, function, 'c', function['name'], [])
        number += 1
    for function in functions:
        if 'mpifh' not in function.get('fortran', []):
            continue
        for base in [function['name'].lower()] + function.get('mpifh_alias', []):
            # Fortran compilers make four names of one.
            yield Slot(number, function, 'mpifh', f'{base}_', [base, f'{base}__', base.upper()])
            number += 1
    for function in functions:
        if 'f08' in function.get('fortran', []):
            yield Slot(number, function, 'f08', f'{function["name"].lower()}_f08_', [])
            number += 1
    for function in functions:
        if {'f08', 'f08ts'} & set(function.get('fortran', [])) and any(a[2] in (*BUFFERS, 'address') for a in function['arguments']):
            yield Slot(number, function, 'f08ts', f'{function["name"].lower()}_f08ts_', [])
            number += 1


def layout(table):
    """What tells whether two builds have the same slots, and say the same to each other."""
    names = [f'host {HOST_VERSION}'] + [slot.name for slot in table]
    return '0x' + hashlib.sha256('\n'.join(names).encode()).hexdigest()[:16]
