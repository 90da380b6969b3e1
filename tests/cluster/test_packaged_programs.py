#!/usr/bin/python3
"""Programs of Debian that nobody here wrote, each under srun bare and captured: the same output and exit status.

Slow: ./check --all. Packages that are not among those of etc/debian-packages are needed for some; without them the test is skipped.
docs/compatibility.md, "Programs that we did not write".
"""

import glob
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import LAYOUT, MPI, PROGRAMS, ClusterCase  # noqa: E402

RUN_TIMEOUT_S = 240
# What is not modelled may take this share of a step's time in MPI.
UNMODELLED_SHARE = 0.02


class PackagedPrograms(ClusterCase):
    maxDiff = 4000

    def needs(self, path, package):
        if shutil.which(path) is None and not glob.glob(path):
            self.skipTest(f"{path} is not there (package {package})")

    def folder(self, name):
        """A new folder that an ordinary user may write, seen by all nodes."""
        path = os.path.join(self.work, name)
        os.mkdir(path)
        os.chmod(path, 0o1777)
        return path

    def assert_same_results(self, command, results, prepare=lambda folder: None, unmodelled_share=UNMODELLED_SHARE):
        """`results(done, folder)`: the lines of a run that no clock and no address is in. Two bare runs have the same,
        and so has the captured one, which is complete and has its predictions."""
        runs = []
        for run in ("bare", "again", "captured"):
            folder = self.folder(run)
            prepare(folder)
            if run == "captured":
                done, job = self.predict(*LAYOUT, *command, cwd=folder, timeout=RUN_TIMEOUT_S)
            else:
                done = self.srun(*LAYOUT, *command, cwd=folder, timeout=RUN_TIMEOUT_S)
            lines = results(done, folder)
            runs.append((done.status, lines))
            self.assertGreater(len(lines), 3, done)
        self.assertEqual(runs[0], runs[1], "two bare runs differ: this test looks at what is not steady")
        self.assertEqual(runs[0], runs[2])
        self.assertEqual(0, done.status, done)
        step = self.step(job, timeout_s=60)
        self.assertEqual(4, step["ranks"])
        self.assertEqual(0, step["lost_events"])
        self.assertGreater(step["events"], 100)
        self.assertLessEqual(step["unmodelled_s"], unmodelled_share * step["mpi_s"], step["unmodelled_calls"])
        self.assert_predicts(step)
        own = next(prediction["predicted_s"] for prediction in step["predictions"] if prediction["kind"] == "self")
        print(f"{step['events']} events, {step['measured_s']:.2f} s, predicted {own:.2f} s, in MPI {step['mpi_s']:.2f} s of all ranks, "
              f"unmodelled {step['unmodelled_s']:.4f} s: {[name for name, *_ in step['unmodelled_calls']]}")

    # -- LAMMPS
    @staticmethod
    def lammps_results(done, _):
        """The thermodynamic output and the counts of atoms, ghosts and neighbours."""
        clocks = re.compile(r"time|seconds|Performance|CPU|^(Pair|Bond|Kspace|Neigh|Comm|Output|Modify|Other) +\|", re.I)
        return [line for line in done.out.splitlines() if not clocks.search(line)]

    def lammps(self, name):
        self.needs("lmp", "lammps")
        command = ("lmp", "-in", os.path.join(PROGRAMS, "lammps", name), "-log", "none")
        self.assert_same_results(command, self.lammps_results)

    def test_lammps_metal(self):
        self.needs("/usr/share/lammps/potentials/Cu_u3.eam", "lammps-data")
        self.lammps("in.copper")

    def test_lammps_charges(self):
        self.lammps("in.salt")

    # -- HPC Challenge
    @staticmethod
    def hpcc_results(_, folder):
        """Of hpccoutf.txt: what passed, and the summary without times and rates."""
        clocks = re.compile(r"time|^(WALL|CPU) |GUPs|GBs|flops|Latency|Bandwidth|STREAM_(Copy|Scale|Add|Triad)|ExeUpdates",
                            re.I)
        with open(os.path.join(folder, "hpccoutf.txt"), encoding="utf-8") as file:
            return [line for line in file.read().splitlines()
                    if re.search(r"PASSED|FAILED|^\w+=", line) and not clocks.search(line)]

    def test_hpcc(self):
        self.needs("hpcc", "hpcc")
        self.assert_same_results(
            ("hpcc",), self.hpcc_results,
            prepare=lambda folder: shutil.copy(os.path.join(PROGRAMS, "hpcc", "hpccinf.txt"), folder))

    # -- mpi4py
    def test_mpi4py_futures(self):
        """A pool of workers: rank 0 hands out tasks to whoever is free, by pickled messages and threads."""
        self.needs("/usr/lib/python3/dist-packages/mpi4py/futures/__main__.py", "python3-mpi4py")
        command = ("/usr/bin/python3", "-m", "mpi4py.futures", os.path.join(PROGRAMS, "futures_mpi4py.py"))
        self.assert_same_results(command, lambda done, _: done.out.splitlines(), unmodelled_share=1)

    def test_mpi4py_bench(self):
        self.needs("/usr/lib/python3/dist-packages/mpi4py/bench.py", "python3-mpi4py")
        script = ("from mpi4py import MPI, bench; bench.helloworld(MPI.COMM_WORLD, []); "
                  "bench.ringtest(MPI.COMM_WORLD, ['--size', '65536', '--loop', '50', '--skip', '10'])")

        def results(done, _):
            return sorted(re.sub(r"= \S+ seconds|on node\d+", "#", line) for line in done.out.splitlines())

        self.assert_same_results(("/usr/bin/python3", "-c", script), results)

    # -- Quantum ESPRESSO
    def test_quantum_espresso(self):
        """Silicon, self-consistent, with a pseudopotential that ld1.x of the same package makes before."""
        self.needs("pw.x", "quantum-espresso")
        inputs = os.path.join(PROGRAMS, "quantum_espresso")
        made = self.folder("pseudopotential")
        done = self.run_command("srun", MPI, "--ntasks=1", "ld1.x", "-in", os.path.join(inputs, "silicon.atom"), cwd=made)
        self.assertTrue(os.path.exists(os.path.join(made, "silicon.UPF")), done)
        clocks = re.compile(r"CPU|WALL|cpu time|starts on|terminated on|Parallel version|MPI processes|RAM", re.I)

        def results(done, _):
            return [line for line in done.out.splitlines() if line.strip() and not clocks.search(line)]

        self.assert_same_results(("pw.x", "-in", os.path.join(inputs, "silicon.scf")), results,
                                 prepare=lambda folder: shutil.copy(os.path.join(made, "silicon.UPF"), folder))


if __name__ == "__main__":
    cluster_case.main()
