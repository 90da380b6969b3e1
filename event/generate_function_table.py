#!/usr/bin/env python3
"""Makes the data of event/mpi_function_table.cpp from event/mpi_functions.yml, and refuses a description that breaks
its own rules (at build time, so that a wrong edit cannot reach a trace).

usage: generate_function_table.py mpi_functions.yml OUTPUT.inc
"""
import sys

import yaml

MAX_ID = 639  # lbf::ring::kMaxFunctions - 1
ROLES = (
    'init init_thread finalize abort pcontrol send isend recv irecv sendrecv sendrecv_replace '
    'persistent_init_send persistent_init_recv start startall wait waitany waitall waitsome test testany testall '
    'testsome request_get_status request_free cancel probe iprobe mprobe improbe mrecv imrecv collective comm_create '
    'comm_free comm_disconnect local unmodelled win_create win_free win_fence win_post win_start win_complete win_wait '
    'win_test win_lock win_lock_all win_flush win_flush_all one_sided io spawn isendrecv isendrecv_replace psend_init precv_init pready pready_range '
    'pready_list session_init collective_init session_finalize comm_create_from_group').split()
OPS = (
    'barrier bcast reduce allreduce gather scatter allgather alltoall reduce_scatter_block scan exscan gatherv scatterv '
    'allgatherv alltoallv alltoallw reduce_scatter neighbor_allgather neighbor_allgatherv neighbor_alltoall '
    'neighbor_alltoallv neighbor_alltoallw').split()
ONE_SIDED_OPS = 'put get accumulate get_accumulate fetch_and_op compare_and_swap'.split()
DIRECTIONS = ('none', 'read', 'write')
HOWS = (
    'dup create create_group split split_type cart_create cart_sub graph_create dist_graph_create '
    'dist_graph_create_adjacent intercomm_create intercomm_merge').split()
MODES = ('standard', 'buffered', 'synchronous', 'ready')
SEND_ROLES = ('send', 'isend', 'persistent_init_send')


def camel(word):
    return 'k' + ''.join(part.capitalize() for part in word.split('_'))


def fail(path, message):
    sys.exit(f'{path}: {message}')


def check(path, functions):
    last_id = 0
    names = set()
    for function in functions:
        name = function['name']
        if function['id'] != last_id + 1 or function['id'] > MAX_ID:
            fail(path, f'{name}: id {function["id"]} must be {last_id + 1} (append only, at most {MAX_ID})')
        last_id = function['id']
        if name in names or not name.startswith('MPI_'):
            fail(path, f'{name}: a name must start with MPI_ and occur once')
        names.add(name)
        if function['role'] not in ROLES:
            fail(path, f'{name}: unknown role {function["role"]}')
        if function['role'] in SEND_ROLES and function.get('mode') not in MODES:
            fail(path, f'{name}: mode must be one of {", ".join(MODES)}')
        if function['role'] in ('collective', 'collective_init') and function.get('op') not in OPS:
            fail(path, f'{name}: unknown op {function.get("op")}')
        if function['role'] == 'one_sided' and function.get('op') not in ONE_SIDED_OPS:
            fail(path, f'{name}: unknown op {function.get("op")}')
        if function.get('direction', 'none') not in DIRECTIONS:
            fail(path, f'{name}: direction must be one of {", ".join(DIRECTIONS)}')
        if function['role'] in ('comm_create', 'comm_create_from_group') and function.get('how') not in HOWS:
            fail(path, f'{name}: unknown how {function.get("how")}')
        if function['role'] in ('collective', 'comm_create', 'one_sided') and not isinstance(function.get('blocking'), bool):
            fail(path, f'{name}: blocking must be true or false')
        kinds = [argument[2] for argument in function['arguments']]
        nonblocking = function['role'] in ('isend', 'irecv', 'imrecv', 'collective_init') or function.get('blocking') is False
        if nonblocking and 'request_out' not in kinds:
            fail(path, f'{name}: a non-blocking call needs a request_out argument')


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    path, output = sys.argv[1:]
    with open(path, encoding='utf-8') as file:
        functions = yaml.safe_load(file)['functions']
    check(path, functions)
    with open(output, 'w', encoding='utf-8') as file:
        file.write(f'// Made from {path.split("/")[-1]} by generate_function_table.py.\n')
        for function in functions:
            op = {'collective': camel(function.get('op', 'barrier')),
                  'comm_create': 'kCommCreate', 'comm_create_from_group': 'kCommCreate'}.get(function['role'], 'kBarrier')
            blocking = function.get('blocking', True)
            file.write(f'{{{function["id"]}, "{function["name"]}", MpiRole::{camel(function["role"])}, '
                       f'SendMode::{camel(function.get("mode", "standard"))}, CollectiveOp::{op}, '
                       f'{str(blocking).lower()}, CommCreation::{camel(function.get("how", "unknown"))}}},\n')


if __name__ == '__main__':
    main()
