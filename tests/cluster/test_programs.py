#!/usr/bin/python3
"""Real programs under srun --lbf-predict: what lbf counted is what they did, counted independently."""

import glob
import os
import shutil
import sys

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import LAYOUT, PROGRAMS, ClusterCase  # noqa: E402

LAMMPS_INPUT = os.path.join(os.path.dirname(os.path.dirname(cluster_case.HERE)), "examples", "lammps", "in.liquid")


class Programs(ClusterCase):
    def assert_captures(self, *command, env=None):
        """A program that prints its own counts: they are lbf's, and the step is predicted elsewhere."""
        done, job = self.predict(*LAYOUT, *command, env=env)
        self.assertEqual(0, done.status, done)
        printed = self.printed_counts(done)
        self.assertGreater(len(printed), 3, done)
        step = self.step(job)
        self.assert_counts(printed, step)
        self.assertEqual(4, step["ranks"])
        self.assertEqual(0, step["lost_events"])
        self.assertEqual([0, 0, 1, 1], step["node_of_rank"])
        self.assert_predicts(step)
        return step

    def test_c(self):
        step = self.assert_captures(self.program("steps"), "200", "100")
        # 200 Sendrecv and 200 Isend on each of 4 ranks
        self.assertEqual(4 * 400, step["messages"])

    def test_fortran_mpif_h(self):
        self.assert_captures(self.program("steps_mpif"), "200")

    def test_fortran_mpi_f08(self):
        self.assert_captures(self.program("steps_f08"), "200")

    def test_mpi4py(self):
        self.needs_pmix()
        self.assert_captures("/usr/bin/python3", os.path.join(PROGRAMS, "steps_mpi4py.py"), "100")

    def test_mpich_on_one_node(self):
        """An ordinary user's program of MPICH under srun. On one node: over several, MPICH 4.0.2 hangs in MPI_Finalize in
        a third of the runs by itself (docs/compatibility.md)."""
        program = os.path.join(cluster_case.TEST_BIN, "steps_mpich")
        if not os.path.exists(program):
            self.skipTest("mpicc.mpich is not installed (package libmpich-dev)")
        done, job = self.predict("--mpi=pmi2", "--nodes=1", "--ntasks=2", program, "200", "100")
        self.assertEqual(0, done.status, done)
        printed = self.printed_counts(done)
        self.assertGreater(len(printed), 3, done)
        step = self.step(job)
        self.assert_counts(printed, step)
        self.assertEqual((2, 0, [0, 0]), (step["ranks"], step["lost_events"], step["node_of_rank"]))
        self.assert_predicts(step)

    # -- programs that print no counts: a bare run under the counter of tests/cluster/call_counter.c
    def counted(self, run, *command, cwd=None):
        """Calls of a bare run, by function, the sum of all ranks."""
        prefix = os.path.join(self.work, run)
        done = self.srun(*LAYOUT, *command, cwd=cwd, timeout=240,
                         env={"LD_PRELOAD": self.library("libmpi_call_counter.so"), "MPI_CALL_COUNTER_OUT": prefix})
        self.assertEqual(0, done.status, done)
        totals = {}
        files = glob.glob(prefix + ".*")
        self.assertEqual(4, len(files), "every rank writes its counts")
        for path in files:
            with open(path, encoding="ascii") as file:
                for line in file:
                    name, number = line.split()
                    totals[name] = totals.get(name, 0) + int(number)
        return totals

    def library(self, name):
        path = os.path.join(cluster_case.TEST_BIN, name)
        self.assertTrue(os.path.exists(path), f"{path} is not built")
        return path

    def assert_same_calls(self, steady, *command, cwd=None, between=lambda: None):
        """`steady` functions are called equally often in every run (no polling, no loop that looks at the clock);
        two bare runs prove that, and lbf counts as many in its run."""
        first = self.counted("first", *command, cwd=cwd)
        between()
        second = self.counted("second", *command, cwd=cwd)
        between()
        expected = {name: first.get(name, 0) for name in steady}
        self.assertNotIn(0, expected.values(), expected)
        self.assertEqual(expected, {name: second.get(name, 0) for name in steady}, "the program itself is not steady")
        done, job = self.predict(*LAYOUT, *command, cwd=cwd, timeout=240)
        self.assertEqual(0, done.status, done)
        step = self.step(job, timeout_s=60)
        self.assert_counts(expected, step)
        self.assertEqual(0, step["lost_events"])
        self.assert_predicts(step)

    def test_lammps(self):
        self.needs_pmix()
        self.assert_same_calls(("MPI_Send", "MPI_Irecv", "MPI_Wait", "MPI_Allreduce", "MPI_Bcast"),
                               "lmp", "-in", LAMMPS_INPUT, "-log", "none", "-var", "steps", "60", "-var", "cells", "8")

    def test_hpcc(self):
        self.needs_pmix()
        folder = os.path.join(self.work, "hpcc")
        os.mkdir(folder)
        os.chmod(folder, 0o1777)
        shutil.copy(os.path.join(PROGRAMS, "hpcc", "hpccinf.txt"), folder)

        def next_run():
            os.remove(os.path.join(folder, "hpccoutf.txt"))

        self.assert_same_calls(("MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Bcast", "MPI_Reduce", "MPI_Alltoall",
                                "MPI_Comm_split", "MPI_Comm_free"), "hpcc", cwd=folder,
                               between=next_run)


if __name__ == "__main__":
    cluster_case.main()
