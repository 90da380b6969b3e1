#!/usr/bin/python3
"""Jobs that give way to others: two partitions of low priority, one of high (PreemptType=preempt/partition_prio). What the
preempted job had is kept as a part, what it does after a requeue has a row of its own, and the other job is none the wiser."""

import os
import sys
import uuid

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import CPUS_PER_NODE, HERE, LAYOUT, MPI, ClusterCase, cluster, cluster_name  # noqa: E402

SETTINGS = ("PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE",
            "PartitionName=requeued Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE State=UP",
            "PartitionName=cancelled Nodes=ALL PriorityTier=1 PreemptMode=CANCEL State=UP",
            "PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF State=UP")
RELAY_END_S = 12
HIGH, AFTER = 40, 30       # iterations: of the job of high priority, and of the preempted one when it runs again


class Preemption(ClusterCase):
    def setUp(self):
        super().setUp()
        name = cluster_name("p")
        users = ["--users"] if self.root else []
        settings = [word for line in SETTINGS for word in ("--slurm-setting", line)]
        up = cluster("up", name, "--nodes", "2", "--cpus-per-node", str(CPUS_PER_NODE), *settings,
                     "--lbf", cluster_case.BUILD_DIR, "--networks", os.path.join(HERE, "networks.d"),
                     "--lbfd-setting", "stream_timeout_s=8", "--lbfd-setting", 'network="test-fast"', *users, check=False)
        self.assertEqual(0, up.returncode, up.stderr)
        self.addCleanup(cluster, "down", name)
        self.use(name)

    def submit(self, partition):
        """A predicted job on all processors that would run for minutes, and for a moment after a restart."""
        script = os.path.join(self.work, f"{uuid.uuid4().hex[:12]}.sh")
        steps = f"srun {MPI} {self.program('steps')}"
        with open(script, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nif [ "${{SLURM_RESTART_COUNT:-0}}" = 0 ]; then {steps} 8000 20000\nelse {steps} {AFTER}; fi\n')
        done = self.run_command("sbatch", "--parsable", "--lbf-predict", f"--partition={partition}", "--requeue", *LAYOUT,
                                f"--output={script}.out", script)
        self.assertEqual(0, done.status, done)
        return int(done.out.split(";")[0])

    def job_says(self, job, words):
        return words in self.run_command("scontrol", "show", "job", str(job)).out

    def sendrecvs(self, step):
        return self.calls_of(step)["MPI_Sendrecv"]

    def preempt(self, partition):
        """Runs a job of high priority on a node that a captured job has. Returns that job's number."""
        low = self.submit(partition)
        before = self.running_step(low, enough_events=500)
        done, high = self.predict("--partition=high", *LAYOUT, self.program("steps"), str(HIGH))
        self.assertEqual(0, done.status, done)
        step = self.step(high)
        self.assertEqual((4, 4 * HIGH), (step["ranks"], self.sendrecvs(step)))
        self.assert_predicts(step)
        self.wait_for(lambda: 0 in self.steps_by_restart(low), cluster_case.STEP_TIMEOUT_S,
                      f"the preempted job {low} does not become partial: {self.steps(low)}")
        preempted = self.steps_by_restart(low)[0]
        self.assertEqual("partial", preempted["state"])
        self.assertIn("killed before MPI_Finalize: rank 0, 1, 2, 3", preempted["why_partial"])
        self.assertGreaterEqual(preempted["events"], before["events"])
        self.assertEqual(0, preempted["lost_events"])
        self.assert_predicts(preempted)
        return low

    def test_a_job_that_is_requeued(self):
        job = self.preempt("requeued")
        self.assertTrue(self.job_says(job, "Restarts=1"))
        found = self.both_restarts(job)
        self.assertEqual({0: "partial", 1: "complete"}, {restart: step["state"] for restart, step in found.items()})
        self.assertEqual(4 * AFTER, self.sendrecvs(found[1]))
        self.wait_for(lambda: self.job_says(job, "JobState=COMPLETED"), 60, f"job {job} does not end")
        self.assert_no_relays_or_rings_left(RELAY_END_S)

    def test_a_job_that_is_cancelled(self):
        job = self.preempt("cancelled")
        self.assertTrue(self.job_says(job, "JobState=PREEMPTED"))
        self.assert_no_relays_or_rings_left(RELAY_END_S)
        self.assertEqual({0}, set(self.steps_by_restart(job)))


if __name__ == "__main__":
    cluster_case.main()
