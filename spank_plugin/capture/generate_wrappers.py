#!/usr/bin/env python3
"""Makes the MPI wrappers of the capture library (C, mpif.h, mpi_f08) from event/mpi_functions.yml.

A wrapper holds no logic: it begins a Call, forwards the program's own arguments to the next function of that name
(a PMPI tool behind us, or the library), says that it returned, tells the recorder (spank_plugin/capture/recorder.h) what came out with the
arguments as C kinds, and finishes the Call. Functions whose role is counted have two more wrappers, which only
count the call (spank_plugin/capture/counted_call.h: of a program with one thread in MPI at a time, and of others), and
go on in the first one where that does not do. What a kind of call means is written by hand in recorder_*.cpp; which
recorder function a role goes to, and with which arguments, is in wrapper_roles.py. How arguments become C values is in
wrapper_bindings.py. This file writes the text.

usage: generate_wrappers.py mpi_functions.yml FAMILY OUTPUT_DIRECTORY
writes wrappers_c.cpp, wrappers_mpifh.cpp, wrappers_f08.cpp, wrappers_f08ts.cpp and wrapper_table.cpp for FAMILY (openmpi, mpich,
abi)
"""
import os
import sys
from dataclasses import dataclass
from typing import Callable

from mpi_description import BUFFERS, is_of_abi, layout, read_functions, slots
from wrapper_bindings import Wrapper
from wrapper_roles import LOCAL_BEFORE

# MPICH's mpi.h has these as macros, its library not at all.
MPICH_MACROS = ('_c2f', '_f2c')


def is_wrapped_of_mpich(slot):
    name = slot.function['name']
    if slot.binding == 'c':
        return not name.endswith(MPICH_MACROS) or name.startswith('MPI_Status')
    # mpif.h's functions call the C ones, and so do those of mpi_f08 that take a buffer (mpi_family_mpich.h).
    return slot.binding == 'f08' and not any(a[2] in BUFFERS for a in slot.function['arguments'])


@dataclass(frozen=True)
class Family:
    # Whether a library of the family may have the function, and no wrapper of another binding sees its calls.
    is_wrapped: Callable
    pcontrol_has_error: bool  # in mpi_f08; MPI has none there
    declared: Callable        # name -> the preprocessor's condition for mpi.h to have the function; None: always


FAMILIES = {
    'openmpi': Family(lambda slot: True, False, lambda name: f'OMPI_MAJOR_VERSION >= {6 if name.endswith("_c") else 5}'),
    'mpich': Family(is_wrapped_of_mpich, True, lambda name: None),
    # C alone: no library has Fortran's part of the standard ABI.
    'abi': Family(lambda slot: slot.binding == 'c' and is_of_abi(slot.function), False, lambda name: None),
}

# OPTIONAL in mpi_f08: without the program's variable the outcome still has to be known.
OWN_ERROR = ('MPI_Fint own_error = MPI_SUCCESS;',
             'MPI_Fint* const error = ierror != nullptr ? ierror : &own_error;')

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
MADE_FROM = '// Made from event/mpi_functions.yml by spank_plugin/capture/generate_wrappers.py.\n'
WRAPPERS = MADE_FROM + '''#include <type_traits>

#include "spank_plugin/capture/recorder.h"

using namespace lbf;
using namespace lbf::capture;

extern "C" {{
{wrappers}
}}
'''
TABLE = MADE_FROM + '''#include "spank_plugin/capture/library.h"

extern "C" {{
{declarations}}}

namespace lbf::capture {{

const std::uint64_t wrapper_layout = {layout};
constinit lbf_function wrapper_next[{slots}] = {{}};
const std::size_t wrapper_slots = {slots};
constinit const CountingWrapper counting_wrappers[] = {{
{counting}}};
const std::size_t counting_wrapper_count = {counting_count};
constinit const std::uint32_t ending_slots[] = {{{ending}}};
const std::size_t ending_slot_count = {ending_count};
constinit const lbf_function wrappers[] = {{
{wrappers}}};

}}  // namespace lbf::capture
'''


def prototype_check(slot, family):
    """The description against mpi.h, for functions that were described last, where this mpi.h has them."""
    name = slot.function['name']
    check = f'static_assert(fits<decltype(wrap_{slot.number}), decltype({name})>, "{name}");\n'
    condition = family.declared(name)
    return f'#if {condition}\n{check}#endif\n' if condition else check


def next_function(wrapper):
    signature = wrapper.signature
    pointer = f'reinterpret_cast<{signature.returns} (*)({signature.pointed})>'
    return f'const auto next = {pointer}(next_function({wrapper.slot.number}));'


def text_of(declaration, lines):
    return [f'{declaration} {{'] + ['  ' + line for line in lines] + ['}']


def local_lines(wrapper):
    returns = '' if wrapper.signature.returns == 'void' else 'return '
    return [f'const LocalCall call({wrapper.function["id"]});', *LOCAL_BEFORE.get(wrapper.function['name'], ()),
            f'{returns}next({", ".join(wrapper.signature.names)});']


def uncaptured_lines(wrapper):
    """Where no Call begins: the bare call, and what is told beside it."""
    bare = f'next({", ".join(wrapper.signature.names)})'
    role = wrapper.role
    if not role.uncaptured:
        told = f'{{ {wrapper.arguments.filled(role.while_off)} return {bare}; }}' if role.while_off else f'return {bare};'
        return [f'if (!call.begin()) {told}']
    if wrapper.is_c:
        lines = [f'const int bare = {bare};', f'if (bare == MPI_SUCCESS) {role.uncaptured}', 'return bare;']
    else:
        lines = [f'{bare};', role.uncaptured, 'return;']
    return ['if (!call.begin()) {'] + ['  ' + line for line in lines] + ['}']


def forwarding_lines(wrapper, own_status):
    """The call itself. Its time is not the capture's."""
    keep = 'const int result = ' if wrapper.is_c else ''
    return ['call.forward();', f'{keep}next({wrapper.given(own_status)});', 'call.returned();']


def own_error_lines(wrapper):
    return OWN_ERROR if wrapper.signature.has_error else ()


def last_lines(wrapper):
    return ['return result;'] if wrapper.is_c else []


def recording_lines(wrapper):
    role = wrapper.role
    lines = [f'Call call({wrapper.function["id"]});  // {wrapper.function["name"]}', *uncaptured_lines(wrapper),
             *own_error_lines(wrapper), *wrapper.before, *forwarding_lines(wrapper, role.has_own_status)]
    if wrapper.record_call:
        lines.append(wrapper.condition + wrapper.record_call)
    lines.append('call.finish();')
    if role.uncaptured:
        lines.append('process_leave();')
    return lines + last_lines(wrapper)


def recording_wrapper(wrapper):
    signature = wrapper.signature
    lines = local_lines(wrapper) if wrapper.is_local else recording_lines(wrapper)
    return text_of(f'{signature.returns} wrap_{wrapper.slot.number}({signature.declared})', [next_function(wrapper)] + lines)


# Prefix of a counting wrapper's name, its class, and what stands before its declaration. Those of programs with several threads
# in MPI stand apart from the others, which stay as close together as they can.
COUNTING_WRAPPERS = (('count', 'CountedCall', ''), ('share', 'SharedCountedCall', '[[gnu::section(".text.shared")]] '))


def counting_wrapper(wrapper, prefix, call_class, attribute):
    signature, number, counting = wrapper.signature, wrapper.slot.number, wrapper.role.counting
    begins = f'call.{counting.begin}({", ".join(wrapper.arguments.values(counting.arguments))})'
    lines = [f'{call_class} call({wrapper.function["id"]});  // {wrapper.function["name"]}',
             f'if (!{begins}) [[unlikely]]',
             f'  return wrap_{number}({", ".join(signature.names)});',
             next_function(wrapper), *own_error_lines(wrapper), *forwarding_lines(wrapper, own_status=False)]
    if counting.count and wrapper.tells_outcome:
        lines += [f'{wrapper.condition}[[likely]]', f'  call.{counting.count}();']
    elif counting.count:
        lines.append(f'call.{counting.count}();')
    return text_of(f'{attribute}{signature.returns} {prefix}_{number}({signature.declared})',
                   lines + ['call.finish();'] + last_lines(wrapper))


def is_counted(wrapper):
    return not wrapper.is_local and wrapper.role.counting is not None


def wrappers_of(wrapper):
    text = recording_wrapper(wrapper)
    if is_counted(wrapper):
        for kind in COUNTING_WRAPPERS:
            text += counting_wrapper(wrapper, *kind)
    return text


def wrapper_file(wrappers, binding, family):
    own = [wrapper for wrapper in wrappers if wrapper.slot.binding == binding]
    text = WRAPPERS.format(wrappers='\n'.join(line for wrapper in own for line in wrappers_of(wrapper)))
    if binding == 'c':
        text += WITHOUT_CONST
        text += ''.join(prototype_check(wrapper.slot, family) for wrapper in own if 'since' in wrapper.function)
    return text


def table_file(wrappers, table):
    numbers = {wrapper.slot.number for wrapper in wrappers}
    counting = sorted(wrapper.slot.number for wrapper in wrappers if is_counted(wrapper))
    ending = [wrapper.slot.number for wrapper in wrappers if not wrapper.is_local and wrapper.role.keeps_wrapper]
    declarations = [f'void wrap_{number}();\n' for number in sorted(numbers)]
    declarations += [f'void count_{number}();\nvoid share_{number}();\n' for number in counting]
    return TABLE.format(
        declarations=''.join(declarations), layout=layout(table), slots=len(table),
        counting=''.join(f'    {{{number}, count_{number}, share_{number}}},\n' for number in counting),
        counting_count=len(counting), ending=', '.join(map(str, ending)), ending_count=len(ending),
        wrappers=''.join(f'    wrap_{slot.number},  // {slot.name}\n' if slot.number in numbers else '    nullptr,\n'
                         for slot in table))


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in FAMILIES:
        sys.exit(__doc__)
    _, description, family_name, directory = sys.argv
    family = FAMILIES[family_name]
    table = list(slots(read_functions(description)))
    wrappers = [Wrapper(slot, family) for slot in table if family.is_wrapped(slot)]
    files = {f'wrappers_{binding}.cpp': wrapper_file(wrappers, binding, family) for binding in ('c', 'mpifh', 'f08', 'f08ts')}
    files['wrapper_table.cpp'] = table_file(wrappers, table)
    for name, text in files.items():
        with open(os.path.join(directory, name), 'w', encoding='utf-8') as file:
            file.write(text)


if __name__ == '__main__':
    main()
