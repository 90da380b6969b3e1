"""Turns case descriptions into Fortran, for mpif.h and for mpi_f08.

A description is Fortran with marks at the beginning of a line:
  @MPI_Send(out, 1, ...)     a call: counted, must succeed. The error argument is added; mpi_f08 leaves it out in
                             every other case
  ?MPI_Send(out, 1, ...)     a call that may fail: its error class is a result
  #coll 2                    so many events of that kind are to be recorded
  =a, b                      whole numbers that are results
  $text                      a character result
  [f08] ..., [mpifh] ...     in that binding alone
COMM, REQUEST, DATATYPE ... are the types of handles, STATUS :: s a status; SOURCE_OF(s), TAG_OF(s), ERROR_OF(s) its
fields, s or an array's element; ITEM(statuses, i) an element; OFFSET(x), ADDRESS(x), COUNT(x) integers of those kinds.
"""
import re

HANDLES = {'COMM': 'MPI_Comm', 'REQUEST': 'MPI_Request', 'DATATYPE': 'MPI_Datatype', 'GROUP': 'MPI_Group',
           'WIN': 'MPI_Win', 'FILE': 'MPI_File', 'INFO': 'MPI_Info', 'ERRHANDLER': 'MPI_Errhandler', 'OP': 'MPI_Op',
           'MESSAGE': 'MPI_Message'}
NO_ERROR_ARGUMENT = ('MPI_Pcontrol',)


class Renderer:
    def __init__(self, binding):
        self.f08 = binding == 'f08'
        self.binding = binding
        self.called = set()

    def words(self, line):
        """Types, fields of statuses, kinds."""
        for word, name in HANDLES.items():
            line = re.sub(rf'^(\s*){word}\b', rf'\1type({name})' if self.f08 else r'\1integer', line)
        if re.match(r'\s*STATUS ::', line):
            if self.f08:
                line = line.replace('STATUS', 'type(MPI_Status)', 1)
            else:
                head, names = line.split('::')
                names = re.sub(r'(\w+)\((\w+)\)', r'\1(MPI_STATUS_SIZE; \2)', names)
                names = ', '.join(n if '(' in n else n.rstrip() + '(MPI_STATUS_SIZE)' for n in names.split(','))
                line = head.replace('STATUS', 'integer', 1) + '::' + names.replace(';', ',')
        field = r'(SOURCE|TAG|ERROR)_OF\((\w+)(?:\((\w+)\))?\)'
        if self.f08:
            line = re.sub(field, lambda m: f'{m[2]}' + (f'({m[3]})' if m[3] else '') + f'%MPI_{m[1]}', line)
            line = re.sub(r'ITEM\((\w+), (\w+)\)', r'\1(\2)', line)
        else:
            line = re.sub(field, lambda m: f'{m[2]}(MPI_{m[1]}' + (f', {m[3]}' if m[3] else '') + ')', line)
            line = re.sub(r'ITEM\((\w+), (\w+)\)', r'\1(:, \2)', line)
        for kind in ('OFFSET', 'ADDRESS', 'COUNT'):
            line = re.sub(rf'\b{kind}\(([^()]*)\)', rf'int(\1, MPI_{kind}_KIND)', line)
        return line

    def call(self, function, arguments, with_error):
        if function in NO_ERROR_ARGUMENT:
            return f'call {function}({arguments})'
        if not with_error:
            return f'call {function}({arguments})'
        return f'call {function}({arguments + ", " if arguments else ""}ierr)'

    def case(self, name, text, number):
        """Lines of a subroutine. Odd ones leave out the error argument where that may be."""
        with_error = not self.f08 or number % 2 == 0
        declarations, body, after = [], [], []
        for line in text.strip('\n').split('\n'):
            mark = re.match(r'\s*\[(f08|mpifh)\] ?(.*)', line)
            if mark:
                if mark[1] != self.binding:
                    continue
                line = mark[2]
            line = self.words(line.strip())
            if line.startswith('contains'):
                after.append(line)
                continue
            target = after if after else body
            call = re.fullmatch(r'([@?])(MPI_\w+)\((.*)\)', line)
            if call:
                self.called.add(call[2])
                target.append(f"call count_call('{call[2]}')")
                if call[1] == '@':
                    target.append(self.call(call[2], call[3], with_error))
                    if with_error and call[2] not in NO_ERROR_ARGUMENT:
                        target.append(f"call must_succeed('{call[2]}')")
                else:
                    target.append(self.call(call[2], call[3], True))
                    target.append(f"call class_result('{call[2]}')")
            elif line.startswith('#'):
                kind, count = line[1:].split(None, 1)
                target.append(f"call count_events('{kind}', {count})")
            elif line.startswith('='):
                target.append(f"write (*, '(\"case \", A, 1X, I0, *(1X, I0))') case_name, rank, {line[1:]}")
            elif line.startswith('$'):
                target.append(f"write (*, '(\"case \", A, 1X, I0, 1X, A)') case_name, rank, trim({line[1:]})")
            elif '::' in line and not after:
                declarations.append(line)
            else:
                target.append(line)
        lines = [f'subroutine case_{number}()'] + [f'  {line}' for line in declarations]
        lines += [f"  call begin_case('{name}')"] + [f'  {line}' for line in body + after]
        return lines + ['end subroutine', '']


def literal(flag):
    return '.true.' if flag else '.false.'
