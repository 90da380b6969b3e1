# An mpi4py program that counts its own calls (mpi4py loads MPI with dlopen). Upper-case methods: one MPI call each.
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size
out, into = array('d', [rank] * 4), array('d', [0] * 4)
for i in range(5):
    world.Sendrecv(out, right, 3, into, left, 3)
assert into[0] == left
request = world.Isend(out, right, 4)
world.Recv(into, left, 4)
request.Wait()
total = array('d', [0] * 4)
world.Allreduce(out, total)
assert total[0] == sum(range(size))
half = world.Split(rank % 2, rank)
half.Barrier()
half.Free()
MPI.Pcontrol(0)  # what follows is counted only
world.Barrier()
world.Sendrecv(out, right, 3, into, left, 3)
MPI.Pcontrol(1)
everything = world.gather({'rank': rank}, root=0)  # lower case: pickled
if rank == 0:
    assert [e['rank'] for e in everything] == list(range(size))
large = '_c' if MPI.VERSION >= 4 else ''  # mpi4py takes MPI 4.0's functions where they are
for name, count in ((f'MPI_Sendrecv{large}', 6), (f'MPI_Isend{large}', 1), (f'MPI_Recv{large}', 1), ('MPI_Wait', 1),
                    (f'MPI_Allreduce{large}', 1),
                    ('MPI_Comm_split', 1), ('MPI_Barrier', 2), ('MPI_Comm_free', 1),
                    ('MPI_Pcontrol', 2)):
    print(f'expect calls {rank} {name} {count}', flush=True)
for kind, count in (('send', 5), ('isend', 1), ('recv', 1), ('startRecv', 5), ('endRecv', 5), ('phase', 2), ('windowOpen', 1), ('exit', 1)):
    print(f'expect events {rank} {kind} {count}', flush=True)
