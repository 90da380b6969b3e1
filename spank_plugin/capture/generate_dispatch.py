#!/usr/bin/env python3
"""Makes the entries of the preload (liblbf_capture.so) from event/mpi_functions.yml: every MPI function of every binding
as a jump through a table. See spank_plugin/capture/dispatch.h.

An entry knows of its arguments only that they are integers or pointers and how many there are: each is a word of its
own in the calling conventions of 64-bit Linux, whatever an MPI library's handle type is. It hands them on by a jump (the
compiler's sibling call): the frame and the return address stay the caller's.

usage: generate_dispatch.py mpi_functions.yml OUTPUT_DIRECTORY
writes dispatch_entries.c and dispatch_exports.map
"""
import os
import sys

from mpi_description import CALLED_FIRST, FORTRAN_ANSWERS, MPI_ERR_OTHER, layout, read_functions, slots

HEAD = '''\
// Made from event/mpi_functions.yml by spank_plugin/capture/generate_dispatch.py.
#include "spank_plugin/capture/dispatch.h"

// The entries go by the names of functions that the compiler must not know as anything else.
#define LBF_ENTRY __attribute__((visibility("default")))
#if defined(__x86_64__)
// Every load of the processor is an acquiring one, and only of a plain one makes the compiler a jump through memory.
#define TARGET(slot) lbf_dispatch_targets[slot]
#else
#define TARGET(slot) __atomic_load_n(&lbf_dispatch_targets[slot], __ATOMIC_ACQUIRE)
#endif
typedef uintptr_t word;

'''


def entry(slot):
    words = slot.words
    parameters = ', '.join(f'word a{i}' for i in range(words)) or 'void'
    types = ', '.join(['word'] * words) or 'void'
    arguments = ', '.join(f'a{i}' for i in range(words))
    returns = 'double' if slot.function['returns'] == 'double' else 'void' if slot.fortran else 'word'
    give = '' if returns == 'void' else 'return '
    cast = f'({returns} (*)({types}))'
    # A callee with '...' is told how many arguments are in other registers: none. The entry itself changes nothing there.
    unbound_cast = f'({returns} (*)(word, ...))' if slot.function.get('variadic') and not slot.fortran else cast
    bind = 'lbf_dispatch_bind_anew' if slot.function['name'] in CALLED_FIRST else 'lbf_dispatch_bind'
    lines = [f'static {returns} unbound_{slot.number}({parameters}) {{',
             f'  const lbf_function f = {bind}({slot.number}, __builtin_return_address(0));',
             f'  if (f == 0) {{ {missing(slot, returns)} }}',
             f'  {give}({unbound_cast}f)({arguments});',
             '}',
             f'LBF_ENTRY {returns} {slot.name}({parameters}) {{',
             f'  {give}({cast}TARGET({slot.number}))({arguments});',
             '}']
    for alias in slot.aliases:
        lines.append(f'LBF_ENTRY {returns} {alias}({parameters}) __attribute__((alias("{slot.name}")));')
    return lines


def missing(slot, returns):
    """The answer of a process without an MPI library."""
    answers = slot.function['name'] in FORTRAN_ANSWERS  # MPI_Initialized, MPI_Finalized: no
    no = '*(int*)a0 = 0; ' if answers else ''
    code = 0 if answers else MPI_ERR_OTHER
    if returns == 'word':
        return f'{no}return {code if slot.function["returns"] == "int" else 0};'
    if returns == 'double':
        return 'return 0;'
    if slot.error_word is None:
        return 'return;'
    return f'{no}if (a{slot.error_word} != 0) *(int*)a{slot.error_word} = {code}; return;'


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    table = list(slots(read_functions(sys.argv[1])))
    with open(os.path.join(sys.argv[2], 'dispatch_entries.c'), 'w', encoding='utf-8') as file:
        file.write(HEAD)
        for slot in table:
            file.write('\n'.join(entry(slot)) + '\n')
        file.write(f'\nconst size_t lbf_dispatch_slots = {len(table)};\n')
        file.write(f'const uint64_t lbf_dispatch_layout = {layout(table)};\n')
        file.write('lbf_function lbf_dispatch_targets[] = {\n')
        file.write(''.join(f'    (lbf_function)unbound_{slot.number},\n' for slot in table))
        file.write('};\n')
        file.write(f'unsigned char lbf_dispatch_recorded[{len(table)}];\n')
        for name, kind in ('targets', 'lbf_function'), ('recorded', 'unsigned char'):
            file.write(f'static {kind} caller_{name}[LBF_DISPATCH_CALLERS][{len(table)}];\n')
            file.write(f'{kind}* lbf_dispatch_caller_{name}(size_t place) {{ return caller_{name}[place]; }}\n')
        file.write(f'unsigned long long lbf_dispatch_missing[{len(table)}];\n')
        file.write('const char* const lbf_dispatch_names[] = {\n')
        file.write(''.join(f'    "{slot.name}",\n' for slot in table))
        file.write('};\n')
    with open(os.path.join(sys.argv[2], 'dispatch_exports.map'), 'w', encoding='utf-8') as file:
        # region_entries.cpp, device_entries.cpp, symbol_entry.cpp
        file.write('{\n  global:\n    __asan_default_options;\n    GOMP_*;\n    __kmpc_*;\n    cu[A-Z]*;\n    hip[A-Z]*;\n    dlsym;\n')
        for slot in table:
            file.write(''.join(f'    {name};\n' for name in [slot.name] + slot.aliases))
        file.write('  local:\n    *;\n};\n')


if __name__ == '__main__':
    main()
