#!/usr/bin/env python3
"""Makes the prototypes of MPI's standard ABI (spank_plugin/capture/abi/mpi.h) from event/mpi_functions.yml.

usage: generate_abi_prototypes.py mpi_functions.yml OUTPUT_FILE
"""
import sys

from mpi_description import is_of_abi, read_functions
from wrapper_bindings import CSignature


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    lines = ['/* Made from event/mpi_functions.yml by spank_plugin/capture/generate_abi_prototypes.py. */',
             '#ifdef __cplusplus', 'extern "C" {', '#endif']
    for function in filter(is_of_abi, read_functions(sys.argv[1])):
        signature = CSignature(function)
        for prefix in '', 'P':
            lines.append(f'{signature.returns} {prefix}{function["name"]}({signature.pointed or "void"});')
    lines += ['#ifdef __cplusplus', '}', '#endif']
    with open(sys.argv[2], 'w', encoding='utf-8') as file:
        file.write('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main()
