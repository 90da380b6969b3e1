"""An mpi4py script whose MPI calls are known; each rank prints "count RANK NAME NUMBER". usage: steps_mpi4py.py STEPS"""
import array
import collections
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size
counts = collections.Counter()
out, incoming = array.array("d", [rank] * 256), array.array("d", [0] * 256)
for step in range(int(sys.argv[1])):
    receive = world.Irecv([incoming, MPI.DOUBLE], source=left, tag=1)
    counts["MPI_Irecv"] += 1
    world.Send([out, MPI.DOUBLE], dest=right, tag=1)
    counts["MPI_Send"] += 1
    receive.Wait()
    counts["MPI_Wait"] += 1
    if step % 10 == 0:
        total = array.array("d", [0])
        world.Allreduce([incoming, 1, MPI.DOUBLE], [total, 1, MPI.DOUBLE])
        counts["MPI_Allreduce"] += 1
world.Barrier()
counts["MPI_Barrier"] += 1
print("\n".join(f"count {rank} {name} {number}" for name, number in counts.items()))
