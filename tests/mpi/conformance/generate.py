#!/usr/bin/env python3
"""Makes the conformance programs: several hundred small cases over the MPI surface, many to a process.

Each case prints what it found (RESULT), and counts its own calls (CALL) and the events that these are to leave
(EVENTS). tests/mpi/run_case runs each program bare and captured: the results and the exit status are the same, and the
counts equal those in the rings. A function of event/mpi_functions.yml that no case calls must be in NOT_HERE with the
reason, or nothing is made.

usage: generate.py mpi_functions.yml OUTPUT_DIRECTORY      writes conformance_NAME.c
"""
import os
import re
import sys

import yaml

import collectives
import local_calls
import point_to_point

PROGRAMS = {'collectives': collectives, 'point_to_point': point_to_point, 'local_calls': local_calls}

PROLOGUE = '''
int main(int argc, char** argv) {
  CALL(MPI_Init, &argc, &argv);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  CALL(MPI_Comm_size, MPI_COMM_WORLD, &size);
  REQUIRE(size == 4);
  folder = argc > 1 ? argv[1] : ".";
  CALL(MPI_Barrier, MPI_COMM_SELF); /* which defines it */
  CALL(MPI_Comm_split, MPI_COMM_WORLD, rank / 2, -rank, &halves);
  const int dims[2] = {2, 2}, periods[2] = {1, 0}, index[4] = {1, 3, 5, 6}, edges[6] = {1, 0, 2, 1, 3, 2};
  CALL(MPI_Cart_create, MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
  CALL(MPI_Graph_create, MPI_COMM_WORLD, 4, index, edges, 0, &graph);
  const int from = (rank + 3) % 4, to = (rank + 1) % 4;
  CALL(MPI_Dist_graph_create_adjacent, MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED, MPI_INFO_NULL,
       0, &adjacent);
  MPI_Comm parity;
  CALL(MPI_Comm_split, MPI_COMM_WORLD, rank % 2, rank, &parity);
  CALL(MPI_Intercomm_create, parity, 0, MPI_COMM_WORLD, 1 - rank % 2, 8, &inter);
  EVENTS("coll", 7);
  EVENTS("commCreate", 7);
  CALL(MPI_Type_vector, 3, 1, 2, MPI_INT, &vector);
  CALL(MPI_Type_commit, &vector);
  const int lengths[2] = {1, 2};
  const MPI_Aint places[2] = {0, 8};
  const MPI_Datatype parts[2] = {MPI_CHAR, MPI_INT};
  CALL(MPI_Type_create_struct, 2, lengths, places, parts, &structure);
  CALL(MPI_Type_commit, &structure);
'''
EPILOGUE = '''  CALL(MPI_Type_free, &vector);
  CALL(MPI_Type_free, &structure);
  CALL(MPI_Comm_free, &inter);
  CALL(MPI_Comm_free, &parity);
  CALL(MPI_Comm_free, &adjacent);
  CALL(MPI_Comm_free, &graph);
  CALL(MPI_Comm_free, &cart);
  CALL(MPI_Comm_free, &halves);
  EVENTS("commFree", 6);
  EVENTS("exit", 1);
  EVENTS("gap", 0);
  lbf_add(0, "MPI_Finalize", 1);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
'''

# Functions that no case calls, by what shows them instead, or why nothing does.
NOT_HERE = {
    'tests/mpi/one_sided.c': r'MPI_(Put|Get|Accumulate|Get_accumulate|Rput|Rget|Raccumulate|Fetch_and_op'
                             r'|Compare_and_swap|Rget_accumulate|Win_(create|create_dynamic|attach|detach|start'
                             r'|complete|post|wait|test|lock|lock_all|unlock|unlock_all|flush|flush_all|flush_local'
                             r'|flush_local_all|sync))',
    'tests/mpi/spawn.c': r'MPI_Comm_(spawn|get_parent)',
    'tests/mpi/behaviour.c': r'MPI_(Abort)',
    'tests/mpi/threads.c': r'MPI_Init_thread',
    'tests/mpi/connect.c': r'MPI_(Comm_(accept|connect|join)|(Open|Close)_port|(Publish|Unpublish|Lookup)_name)',
    'not tested': r'MPI_Comm_spawn_multiple',
    'not tested: removed or deprecated': r'MPI_(Address|Attr_\w+|Errhandler_(create|get|set)|Keyval_\w+'
                                         r'|Type_(extent|hindexed|hvector|lb|struct|ub))',
    'not tested: Fortran parameterised types': r'MPI_Type_create_f90_\w+',
    'not tested: shared file pointers, the other split and non-blocking collective I/O':
        r'MPI_File_(\w*(shared|ordered)\w*|(read|write)_all_(begin|end)|i(read|write)(_all|_at_all)?'
        r'|(create|call)_errhandler|set_errhandler)',
    'not tested: user-defined file representations': r'MPI_Register_datarep',
    'not tested: MPI 4.0, which Open MPI 4.1 does not have': r'SINCE',
}


def program(name, module):
    text = ['/* Made by tests/mpi/conformance/generate.py. */', '#include "conformance.h"', '',
            'static const char* folder;']
    if hasattr(module, 'HELPERS'):
        text.append(module.HELPERS)
    names = []
    for case, body in module.cases():
        case = re.sub(r'\W', '_', case)
        assert case not in names, case
        names.append(case)
        text.append(f'static void case_{case}(void) {{\n  case_name = "{case}";\n{body}}}\n')
    text.append(PROLOGUE)
    text += [f'  case_{case}();' for case in names]
    text.append(EPILOGUE)
    return '\n'.join(text), len(names)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding='utf-8') as file:
        functions = {f['name']: f for f in yaml.safe_load(file)['functions']}
    called = set()
    for name, module in PROGRAMS.items():
        text, _ = program(name, module)
        called |= set(re.findall(r'\b(?:CALL|CODE|CODE_IF_DONE)\((MPI_\w+)', text))
        called |= set(re.findall(r'lbf_add\(0, "(MPI_\w+)"', text))
        path = os.path.join(sys.argv[2], f'conformance_{name}.c')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
    excused = [re.compile(pattern) for pattern in NOT_HERE.values()]
    missing = [name for name, f in functions.items()
               if name not in called and 'since' not in f and not any(p.fullmatch(name) for p in excused)]
    if missing:
        sys.exit('no conformance case calls ' + ', '.join(missing))
    unknown = called - set(functions)
    if unknown:
        sys.exit('not in mpi_functions.yml: ' + ', '.join(sorted(unknown)))


if __name__ == '__main__':
    main()
