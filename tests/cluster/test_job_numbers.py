#!/usr/bin/python3
"""A job number that comes again: slurmctld starts with an empty state, and its first job is number 1 once more. Each run has its own
row (docs/plugin.md, "A job number that comes again")."""

import json
import os
import signal
import sys
import uuid

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import LAYOUT, MPI, OTHER_USER, USER, ClusterCase, cluster  # noqa: E402


class JobNumbers(ClusterCase):
    """On a cluster of its own: what the other tests know of their jobs would be lost."""

    def setUp(self):
        super().setUp()
        self.use_own("n")

    def runs(self, job, user=USER):
        """Every run of that number that the user may see, in the order of their submission."""
        done = self.report("-j", str(job), "--duplicates", "--json", user=user)
        return json.loads(done.out)["steps"] if done.status == 0 else []

    def sendrecvs(self, step):
        return self.calls_of(step)["MPI_Sendrecv"]

    def assert_reported(self, done):
        """srun's last line is the result of this very run."""
        self.assertEqual(0, done.status, done)
        self.assertNotRegex(done.err, "not reached|were lost|see lbf-report")
        self.assertRegex(done.err, r"(?m)^lbf: .*(self-prediction error|to get a number).*: lbf-report -j ")

    def test_each_run_has_its_own_row(self):
        first, job = self.predict("--nodes=2", "--ntasks=2", self.program("steps"), "60")
        self.assert_reported(first)
        self.step(job)
        cluster("lose-state", self.name)
        second, again = self.predict(*LAYOUT, self.program("steps"), "40")
        self.assertEqual(job, again, "the number has come again")
        self.assert_reported(second)
        latest = self.step(job)
        self.assertEqual((4, 4 * 40), (latest["ranks"], self.sendrecvs(latest)))
        cluster("lose-state", self.name)
        if self.root:
            third, again = self.predict(*LAYOUT, self.program("steps"), "50", user=OTHER_USER)
            self.assertEqual(job, again)
            self.assert_reported(third)
            self.assertEqual(4 * 50, self.sendrecvs(self.step(job, user=OTHER_USER)))
            self.assertEqual(1, len(self.runs(job, user=OTHER_USER)))
        runs = self.runs(job)
        self.assertEqual([2 * 60, 4 * 40], [self.sendrecvs(run) for run in runs])
        self.assertEqual(["complete", "complete"], [run["state"] for run in runs])
        self.assertLess(runs[0]["submit"], runs[1]["submit"])
        self.assertLessEqual(runs[1]["submit"], runs[1]["start"])
        table = self.report("-j", str(job), "-D", "-n", "-P", "-o", "JobID,NTasks,Submit,Start")
        rows = [line.split("|") for line in dict.fromkeys(table.out.splitlines())]
        self.assertEqual([[f"{job}.0", "2"], [f"{job}.0", "4"]], [row[:2] for row in rows], table)
        self.assertNotEqual(rows[0][2:], rows[1][2:])
        # The steps and the mpirun runs of a batch job are one job's, by the batch step's word.
        output = os.path.join(self.work, "batch.out")
        script = os.path.join(self.work, "batch.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nsrun {MPI} {self.program('steps')} 30\n"
                       f"srun {MPI} --export=HOME {self.program('steps')} 30\n")
        done = self.run_command("sbatch", "--parsable", "--wait", "--lbf-predict", *LAYOUT, f"--output={output}", script)
        self.assertEqual(0, done.status, done)
        batch = int(done.out.split(";")[0])
        steps = [self.step(batch, number) for number in (0, 1)]
        self.assertEqual(1, len({step["submit"] for step in steps}), steps)
        self.assertGreater(steps[0]["submit"], runs[1]["submit"])

    def test_a_run_whose_nodes_died_stays_itself(self):
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        process = self.start("srun", MPI, "--lbf-predict", f"--job-name={name}", *LAYOUT, self.program("steps"), "4000", "20000")
        job = self.job_of(name)
        self.running_step(job, enough_events=100)
        # As if the nodes had lost their power; their slurmds are back at once.
        for program in ("slurmstepd", "lbf-relay", "steps"):
            for pid in self.pids_of(program):
                os.kill(pid, signal.SIGKILL)
        process.kill()
        process.communicate()
        cluster("lose-state", self.name)
        done, again = self.predict(*LAYOUT, self.program("steps"), "40")
        self.assertEqual(job, again)
        self.assert_reported(done)
        self.assertEqual(4 * 40, self.sendrecvs(self.step(job)))
        self.wait_for(lambda: {run["state"] for run in self.runs(job)} == {"partial", "complete"}, 30,
                      lambda: f"the first run is not partial: {self.runs(job)}")


if __name__ == "__main__":
    cluster_case.main()
