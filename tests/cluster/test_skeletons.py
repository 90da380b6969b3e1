#!/usr/bin/python3
"""Performance skeletons on the cluster: from a stored step to a prediction for node sets, and the advisor's probes."""

import json
import os
import sys

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import BIN, MPI, ClusterCase  # noqa: E402

LAUNCHER = ("--launcher", f"srun {MPI} --overcommit")
NETWORKS = os.path.join(cluster_case.HERE, "networks.d")


class Skeletons(ClusterCase):
    nodes_needed = 4

    def tool(self, name, *arguments, timeout=180):
        return self.run_command(os.path.join(BIN, name), *arguments, timeout=timeout)

    def skeleton(self, *arguments):
        return self.tool("lbf-skeleton", *arguments)

    def recorded(self, *layout):
        """A captured step without lost windows, which no skeleton can be built from; on a machine busy with other work the
        capture of a short program may reach its limit."""
        for _ in range(5):
            done, job = self.predict("--kill-on-bad-exit=1", *layout, self.program("steps"), "60")
            self.assertEqual(0, done.status, done)
            step = self.step(job)
            if "lost windows" not in self.skeleton("show", "-j", f"{job}.0").err:
                return job, step
        cost = step["cost"]
        relay_percent = 100 * cost["relay_cpu_s"] / cost["program_cpu_s"]
        self.assertGreater(relay_percent, 0.5 * cost["limit_percent"], f"nothing else may close the capture of this program: {cost}")
        self.skipTest("this machine is too busy: every capture reached its limit")

    def assert_refused(self, says, done):
        self.assertEqual(1, done.status, done)
        self.assertEqual(1, len(done.err.strip().splitlines()), done)
        self.assertIn(says, done.err)

    def answer(self, *arguments):
        """JSON of a command that runs skeletons; Open MPI may crash in MPI_Init (docs/cluster-harness.md)."""
        for _ in range(3):
            done = self.skeleton(*arguments, *LAUNCHER, "--json")
            if "Segmentation fault" not in done.err:
                break
        self.assertEqual(0, done.status, done)
        return json.loads(done.out)

    def test_from_a_step_to_a_prediction(self):
        self.needs_pmix()  # skeletons are compiled with Open MPI's mpicc
        job, step = self.recorded("--nodes=2", "--ntasks=4")
        done = self.skeleton("build", "-j", f"{job}.0", "-K", "4", "-o", "skel.c")
        self.assertEqual(0, done.status, done)
        same = self.skeleton("build", "-j", str(job), "-K", "4")
        with open(os.path.join(self.work, "skel.c"), encoding="utf-8") as file:
            about = [line for line in file if "@(#)lbf-skeleton" in line]
        self.assertIn(about[0], same.out, "JOB and JOB.0 are one step")
        self.assertAlmostEqual(step["measured_s"], float(about[0].split("application_s=")[1].split()[0]), 5)

        reference = self.answer("run", "skel.c", "--reference", "--on", "node[1-2]", "--repeat", "2")
        self.assertEqual(2, len(reference["sets"][0]["times_s"]))
        self.assertEqual(4, reference["ranks"])
        predicted = self.answer("predict", "skel.c", "--on", "node[1-2]", "--on", "node3", "-N", "4", "--repeat", "2")
        self.assertEqual({"node[1-2]", "node3", "any 4 nodes"}, {one["nodes"] for one in predicted["predictions"]})
        times = [one["predicted_s"] for one in predicted["predictions"]]
        self.assertEqual(sorted(times), times, "the fastest first")
        for one in predicted["predictions"]:
            self.assertLessEqual(one["low_s"], one["predicted_s"])
            self.assertGreaterEqual(one["high_s"], one["predicted_s"])

        compared = self.answer("compare", f"{job}.0", "skel.c", "--on", "node[1-2]")
        self.assertEqual(["application", "skel.c"], compared["programs"])
        for program in (0, 1):
            self.assertAlmostEqual(100, sum(row["percent"][program] for row in compared["rows"]), 3)

    def test_what_cannot_be_is_said_in_one_line(self):
        self.assert_refused("999999999", self.skeleton("build", "-j", "999999999.0", "-K", "4"))
        job, _ = self.recorded("--nodes=2", "--ntasks=4")
        self.assertEqual(0, self.skeleton("build", "-j", f"{job}.0", "-K", "4", "-o", "skel.c").status)
        self.assert_refused("node99", self.skeleton("run", "skel.c", "--on", "node99", *LAUNCHER))
        self.assert_refused("no run on the machine where the trace was recorded", self.skeleton("predict", "skel.c", "--on", "node1"))
        self.assert_refused("did not end within 0.01 s", self.skeleton("run", "skel.c", "--on", "node1", "--limit", "0.01", *LAUNCHER))
        # A node on which it cannot run: the program is not there.
        os.remove(os.path.join(self.work, "skel"))
        missing = self.skeleton("run", "skel.c", "--on", "node1", "--mpicc", "/nowhere/mpicc", *LAUNCHER)
        self.assert_refused("cannot run /nowhere/mpicc: No such file", missing)

    def test_a_rank_that_crashes_is_named(self):
        self.needs_pmix()
        job, _ = self.recorded("--nodes=2", "--ntasks=4")
        self.assertEqual(0, self.skeleton("build", "-j", f"{job}.0", "-K", "4", "-o", "skel.c").status)
        # One rank fails behind MPI_Init: the others would wait for it until --limit, 600 s.
        with open(os.path.join(self.work, "skel.c"), encoding="utf-8") as file:
            source = file.read()
        init = "MPI_Init(&argc, &argv);"
        self.assertEqual(1, source.count(init))
        with open(os.path.join(self.work, "crashing.c"), "w", encoding="utf-8") as file:
            file.write(source.replace(init, init + ' if (getenv("SLURM_PROCID")[0] == \'0\') __builtin_trap();'))
        self.assert_refused("Illegal instruction", self.skeleton("run", "crashing.c", "--on", "node[1-2]", *LAUNCHER))

    def test_the_advisor_probes_within_its_budget(self):
        self.needs_pmix()
        job, _ = self.recorded("--nodes=4", "--ntasks=4")
        for _ in range(3):
            done = self.tool("lbf-advise", "-j", f"{job}.0", "--network", "test-fast", "--networks-dir", NETWORKS, "--refresh",
                             "--probe", "--probe-budget", "40", *LAUNCHER, "--json", timeout=280)
            self.assertEqual(0, done.status, done)
            probe = json.loads(done.out)["probe"]
            if all("error" not in row for row in probe["rows"]):
                break
        # Ending the run in which the budget ends takes srun a moment.
        self.assertLessEqual(probe["spent_node_s"], 40 + 4 * 2)
        self.assertGreaterEqual(len([row for row in probe["rows"] if row["times_s"]]), 2, done)
        self.assertNotEqual("", probe["decision"])
        # Nothing of it is left.
        self.assertEqual([], [name for name in os.listdir(self.work) if name.startswith(".lbf-probe")])


if __name__ == "__main__":
    cluster_case.main()
