#!/usr/bin/env python3
"""Makes a stand-in for a library of MPI's standard ABI (stand_in.h) from event/mpi_functions.yml and the table of
spank_plugin/capture/abi/mpi.h: each function under its MPI_ and PMPI_ name, with its arguments by their kinds as those of
Open MPI's function. Functions with callbacks, files and arrays of unknown length are left out.

usage: generate_stand_in.py mpi_functions.yml abi/mpi.h OUTPUT_FILE
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', '..', '..', 'spank_plugin', 'capture'))
from mpi_description import BUFFERS, is_of_abi, read_functions  # noqa: E402

HANDLE_TYPES = ('Comm', 'Datatype', 'Op', 'Group', 'Info', 'Win', 'Request', 'Message', 'Errhandler')
LEFT_OUT = ('callback', 'strings', 'infos', 'attribute', 'attribute_out', 'send_datatypes', 'recv_datatypes', 'datatypes',
            'datatypes_out')
# By function and argument, where the kind does not tell.
INTO = {('MPI_Init_thread', 'required'): 'to_real_level', ('MPI_Win_lock', 'lock_type'): 'to_real_lock',
        ('MPI_Comm_split_type', 'split_type'): 'MPI_COMM_TYPE_SHARED + 0 *'}
OUT_OF = {('MPI_Init_thread', 'provided'): 'from_real_level', ('MPI_Query_thread', 'provided'): 'from_real_level',
          ('MPI_Comm_compare', 'result'): 'from_real_comparison', ('MPI_Group_compare', 'result'): 'from_real_comparison',
          ('MPI_Topo_test', 'status'): 'from_real_topology', ('MPI_Cart_shift', 'rank_source'): 'from_real_rank',
          ('MPI_Cart_shift', 'rank_dest'): 'from_real_rank'}
OWN = ('MPI_Get_version', 'MPI_Error_class', 'MPI_Get_library_version')
WITHOUT_PMPI = ('MPI_Type_commit',)  # as MPICH's has no PMPI_File_close

OWN_TEXT = r'''
static int own_MPI_Get_version(int* version, int* subversion) {
  return *version = 5, *subversion = 0;
}
static int own_MPI_Error_class(int code, int* error_class) {
  return *error_class = code & 0xff, MPI_SUCCESS;
}
static int own_MPI_Get_library_version(char* version, int* length) {
  const char* const says = getenv("STAND_IN_VERSION");
  if (says == 0) return REAL(MPI_Get_library_version)(version, length);
  strcpy(version, says);
  return *length = (int)strlen(says), MPI_SUCCESS;
}
static int own_MPI_Abi_get_version(int* major, int* minor) {
  const char* const says = getenv("STAND_IN_ABI");
  *major = says != 0 ? atoi(says) : 1;
  *minor = *major < 0 ? -1 : 0;
  return MPI_SUCCESS;
}
static int own_MPI_Get_count_c(const AbiStatus* status, void* type, int64_t* count) {
  static __typeof__(&MPI_Type_size_x) next;
  if (next == 0) next = REAL(MPI_Type_size_x);
  static _Atomic int asked;
  const char* const most = getenv("STAND_IN_MOST_ASKED");
  if (most != 0 && asked++ >= atoi(most)) fprintf(stderr, "stand-in: asked for a count too often\n"), abort();
  MPI_Status real;
  MPI_Count size = 0;
  to_real_status(&real, status);
  next(to_real(predefined_Datatype, type), &size);
  return *count = size > 0 ? (int64_t)real._ucount / size : 0, MPI_SUCCESS;
}
double own_time(void) __asm__("PMPI_Wtime");
double own_time(void) {
  return REAL(MPI_Wtime)();
}
double weak_time(void) __asm__("MPI_Wtime") __attribute__((weak));
double weak_time(void) {
  return own_time();
}
int own_pcontrol(const int level, ...) __asm__("PMPI_Pcontrol");
int own_pcontrol(const int level, ...) {
  return (void)level, MPI_SUCCESS;
}
int weak_pcontrol(const int level, ...) __asm__("MPI_Pcontrol") __attribute__((weak));
int weak_pcontrol(const int level, ...) {
  return own_pcontrol(level);
}
'''
OWN_SIGNATURES = {
    'MPI_Get_version': ('int* version, int* subversion', 'version, subversion'),
    'MPI_Error_class': ('int code, int* error_class', 'code, error_class'),
    'MPI_Get_library_version': ('char* version, int* length', 'version, length'),
    'MPI_Abi_get_version': ('int* major, int* minor', 'major, minor'),
    'MPI_Get_count_c': ('const AbiStatus* status, void* type, int64_t* count', 'status, type, count'),
}


def handle_of(c_type):
    match = re.fullmatch(r'(?:const )?MPI_(\w+?)(\*?)', c_type)
    return (match[1], bool(match[2])) if match and match[1] in HANDLE_TYPES else (None, False)


def is_made(function):
    kinds = [a[2] for a in function['arguments']]
    types = ' '.join(a[1] for a in function['arguments'])
    return (is_of_abi(function) and 'since' not in function and not function.get('removed') and not function.get('variadic')
            and function['returns'] == 'int' and not set(kinds) & set(LEFT_OUT)
            and 'MPI_File' not in types and 'MPI_Session' not in types and function['name'] not in OWN
            and not function['name'].startswith(('MPI_Attr_', 'MPI_Keyval_', 'MPI_Grequest')))


class Call:
    """One function: the lines around the call of Open MPI's."""

    def __init__(self, function):
        self.name = function['name']
        self.before, self.after, self.given, self.declared = [], [], [], []
        kinds = {a[2]: a[0] for a in function['arguments']}
        self.count = kinds.get('request_count')
        self.done = kinds.get('outcount', self.count)
        for argument in function['arguments']:
            self.add(*argument)

    def add(self, name, c_type, kind):
        handle, is_pointer = handle_of(c_type)
        convert = (self.name, name)
        declared = c_type
        if kind in ('status', 'statuses', 'status_in') and 'MPI_Status' in c_type:
            declared = f'{"const " if kind == "status_in" else ""}AbiStatus*'
            self.add_status(name, kind)
        elif handle and kind == 'requests':
            declared = 'void**'
            self.before += [f'MPI_Request* real_{name} = malloc(sizeof(MPI_Request) * ({self.count} > 0 ? {self.count} : 1));',
                            f'for (int i = 0; i < {self.count}; ++i) real_{name}[i] = to_real(predefined_Request, {name}[i]);']
            self.after += [f'for (int i = 0; i < {self.count}; ++i) {name}[i] = from_real(predefined_Request, real_{name}[i]);',
                           f'free(real_{name});']
            self.given.append(f'real_{name}')
        elif handle and is_pointer:
            declared = 'void**'
            start = f'to_real(predefined_{handle}, *{name})' if kind.endswith('_inout') else '0'
            self.before.append(f'MPI_{handle} real_{name} = {start};')
            always = "" if kind.endswith("_inout") else "if (code == MPI_SUCCESS) "
            self.after.append(f"{always}*{name} = from_real(predefined_{handle}, real_{name});")
            self.given.append(f'&real_{name}')
        elif handle:
            declared = 'void*'
            self.given.append(f'to_real(predefined_{handle}, {name})')
        elif convert in INTO:
            self.given.append(f'{INTO[convert]}({name})')
        elif convert in OUT_OF:
            self.after.append(f'*{name} = {OUT_OF[convert]}(*{name});')
            self.given.append(name)
        elif name == 'assert' or name == 'assertion':
            self.given.append(f'to_real_assert({name})')
        elif kind in BUFFERS:
            self.given.append(f'(void*)to_real_buffer({name})')
        elif kind in ('dest', 'source', 'root', 'rank') and c_type == 'int':
            self.given.append(f'to_real_rank({name})')
        elif kind in ('tag', 'send_tag', 'recv_tag'):
            self.given.append(f'to_real_tag({name})')
        elif kind == 'weights':
            self.given.append(f'to_real_weights({name})')
        else:
            self.given.append(name)
        self.declared.append(declared.replace('(*)', f'(*{name})') if '(*)' in declared else f'{declared} {name}')

    def add_status(self, name, kind):
        is_set = int(self.name.startswith('MPI_Status_set'))
        if kind == 'status_in':
            self.before += [f'MPI_Status real_{name};', f'to_real_status(&real_{name}, {name});']
            self.given.append(f'&real_{name}')
        elif kind == 'status':
            self.before += [f'MPI_Status real_{name} = {{0}};', f'if ({name} != 0) to_real_status(&real_{name}, {name});']
            self.after.append(f'if ({name} != 0) from_real_status({name}, &real_{name}, {is_set});')
            self.given.append(f'&real_{name}')
        else:
            length = f'*{self.done}' if self.done != self.count else self.count
            self.before.append(f'MPI_Status* real_{name} = calloc({self.count} > 0 ? {self.count} : 1, sizeof(MPI_Status));')
            self.after += [f'for (int i = 0; {name} != 0 && i < {length}; ++i) from_real_status(&{name}[i], &real_{name}[i], 0);',
                           f'free(real_{name});']
            self.given.append(f'real_{name}')

    def lines(self):
        return [f'static int own_{self.name}({", ".join(self.declared) or "void"}) {{',
                f'  static __typeof__(&{self.name}) next;', f'  if (next == 0) next = REAL({self.name});',
                *['  ' + line for line in self.before], f'  const int code = next({", ".join(self.given)});',
                *['  ' + line for line in self.after], '  return from_real_code(code);', '}']


def exported(name, declared, names):
    lines = []
    for prefix in ('',) if name in WITHOUT_PMPI else ('', 'P'):
        called = f'{"weak" if prefix == "" else "strong"}_{name}'
        weak = ' __attribute__((weak))' if prefix == '' else ''
        lines += [f'int {called}({declared}) __asm__("{prefix}{name}"){weak};',
                  f'int {called}({declared}) {{ return own_{name}({names}); }}']
    return lines


def predefined_tables(header):
    """Filled in when Open MPI is open: its handles are addresses in there."""
    filling = ['static void fill_tables(void) {']
    for handle in HANDLE_TYPES:
        rows = re.findall(rf'#define (MPI_\w+) \(\(MPI_{handle}\)(0x[0-9a-f]+)\)', header)
        yield f'static Predefined predefined_{handle}[{len(rows) + 1}];'
        filling.append(f'  Predefined* {handle} = predefined_{handle};')
        for name, number in rows:
            filling += [f'#ifdef {name}', f'  *{handle}++ = (Predefined){{{number}, {name}}};', '#endif']
        filling.append(f'  (void){handle};')
    yield from filling + ['}']


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with open(sys.argv[2], encoding='utf-8') as file:
        header = file.read()
    lines = ['/* Made by generate_stand_in.py. */', '#include "stand_in.h"', *predefined_tables(header), OWN_TEXT]
    for function in filter(is_made, read_functions(sys.argv[1])):
        call = Call(function)
        lines += call.lines() + exported(call.name, ', '.join(call.declared) or 'void',
                                         ', '.join(a[0] for a in function['arguments']))
    for name, (declared, names) in OWN_SIGNATURES.items():
        lines += exported(name, declared, names)
    with open(sys.argv[3], 'w', encoding='utf-8') as file:
        file.write('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main()
