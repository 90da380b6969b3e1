#!/usr/bin/python3
"""Jobs that give way to others: partitions of low priority, one of high (PreemptType=preempt/partition_prio). What a job that
ends had is kept as a part, or whole where it came to its end in the grace time; what it does after a requeue has a row of its
own; a suspended one is complete. The other job is none the wiser."""

import os
import re
import signal
import sys
import time
import uuid

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import LAYOUT, MPI, Done, ClusterCase  # noqa: E402

RELAY_END_S = 12
GRACE_S = 10
LONG = "8000 20000"        # iterations and their pause: minutes
HIGH, AFTER = 40, 30       # iterations: of the job of high priority, and of the preempted one when it runs again


class Partitions(ClusterCase):
    """What the classes below share; it has no tests. Each has a cluster of its own with these lines in slurm.conf."""

    purpose, settings = "", ()

    def setUp(self):
        super().setUp()
        settings = [word for line in ("PreemptType=preempt/partition_prio", *self.settings) for word in ("--slurm-setting", line)]
        self.use_own(self.purpose, *settings)

    def submit(self, partition, text):
        """A predicted batch job on all processors; its output is printed(job)."""
        script = os.path.join(self.work, f"{uuid.uuid4().hex[:12]}.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        done = self.run_command("sbatch", "--parsable", "--lbf-predict", f"--partition={partition}", "--requeue", *LAYOUT,
                                f"--output={self.work}/%j.out", script)
        self.assertEqual(0, done.status, done)
        return int(done.out.split(";")[0])

    def srun_steps(self, arguments):
        """A line of a script."""
        return f"srun {MPI} {self.program('steps')} {arguments}"

    def printed(self, job):
        with open(os.path.join(self.work, f"{job}.out"), encoding="utf-8") as file:
            return Done(0, file.read(), "")

    def start_high(self, *arguments):
        """A predicted job that every other one gives way to; returns (process, job)."""
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        process = self.start("srun", MPI, "--lbf-predict", "--partition=high", f"--job-name={name}", *LAYOUT,
                             self.program("steps"), *map(str, arguments))
        return process, self.job_of(name)

    def finish_high(self, process, job, steps):
        done = self.finish(process)
        self.assertEqual(0, done.status, done)
        step = self.step(job)
        self.assertEqual((4, 4 * steps), (step["ranks"], self.sendrecvs(step)))
        self.assert_predicts(step)
        return step

    def wait_for_job(self, job, timeout_s=60, **shown):
        self.wait_for(lambda: shown.items() <= self.shown_job(job).items(), timeout_s,
                      lambda: f"job {job} does not become {shown}: {self.shown_job(job)}")

    def sendrecvs(self, step):
        return self.calls_of(step)["MPI_Sendrecv"]


class Lists(Partitions):
    purpose = "l"
    settings = ("PreemptMode=REQUEUE", "PartitionName=p-a Nodes=ALL State=UP", "PartitionName=p-b Nodes=ALL State=UP")

    def test_a_step_is_of_the_partition_in_which_it_ran(self):
        for arguments in (("p-a,p-b",), ("p-b,p-a",)):
            done, job = self.predict(f"--partition={arguments[0]}", *LAYOUT, self.program("steps"), "30")
            self.assertEqual(0, done.status, done)
            ran = self.step(job)["partition"]
            self.assertEqual(self.shown_job(job)["Partition"], ran)
            found = self.report("-r", ran, "-n", "-P", "-o", "JobID")
            self.assertIn(f"{job}.0", found.out.split(), found)
        script = os.path.join(self.work, "job.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{self.srun_steps(30)}\n")
        done = self.run_command("sbatch", "--parsable", "--wait", "--lbf-predict", "--partition=p-a,p-b", *LAYOUT,
                                f"--output={self.work}/out", script)
        job = int(done.out.split(";")[0])
        self.assertEqual(self.shown_job(job)["Partition"], self.step(job)["partition"])


class Preemption(Partitions):
    purpose = "p"
    settings = ("PreemptMode=REQUEUE",
                "PartitionName=requeued Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE State=UP",
                "PartitionName=cancelled Nodes=ALL PriorityTier=1 PreemptMode=CANCEL State=UP",
                f"PartitionName=graced Nodes=ALL PriorityTier=1 PreemptMode=CANCEL GraceTime={GRACE_S} State=UP",
                "PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF State=UP")

    def assert_is_kept(self, job, before):
        """The preempted job's step is a part, with all that was known `before`; returns it."""
        self.wait_for(lambda: 0 in self.steps_by_restart(job), cluster_case.STEP_TIMEOUT_S,
                      lambda: f"the preempted job {job} does not become partial: {self.steps(job)}")
        preempted = self.steps_by_restart(job)[0]
        self.assertEqual("partial", preempted["state"])
        self.assertRegex(preempted["why_partial"], "killed by .* before MPI_Finalize: rank 0")
        self.assertGreaterEqual(preempted["events"], before["events"])
        self.assertEqual(0, preempted["lost_events"])
        self.assert_predicts(preempted)
        return preempted

    def preempt(self, partition):
        """Runs a job of high priority on nodes that a captured job has. Returns that job's number."""
        low = self.submit(partition, f'if [ "${{SLURM_RESTART_COUNT:-0}}" = 0 ]; then {self.srun_steps(LONG)}\n'
                                     f"else {self.srun_steps(AFTER)}; fi")
        before = self.running_step(low, enough_events=500)
        self.finish_high(*self.start_high(HIGH), HIGH)
        self.assert_is_kept(low, before)
        return low

    def preempt_in_grace(self, text):
        """A job of high priority wants the nodes; returns (the captured job, in its grace time; finish_high's arguments)."""
        low = self.submit("graced", text)
        self.running_step(low, enough_events=500)
        high = self.start_high(HIGH)
        self.wait_for(lambda: self.shown_job(low).get("PreemptTime", "None") != "None", 60, f"job {low} is not preempted")
        return low, (*high, HIGH)

    def test_a_job_that_is_requeued(self):
        job = self.preempt("requeued")
        self.assertEqual("1", self.shown_job(job)["Restarts"])
        found = self.both_restarts(job)
        self.assertEqual({0: "partial", 1: "complete"}, {restart: step["state"] for restart, step in found.items()})
        self.assertEqual(4 * AFTER, self.sendrecvs(found[1]))
        self.wait_for_job(job, JobState="COMPLETED")
        self.assert_no_relays_or_rings_left(RELAY_END_S)

    def test_a_job_that_is_cancelled(self):
        job = self.preempt("cancelled")
        self.assertEqual("PREEMPTED", self.shown_job(job)["JobState"])
        self.assert_no_relays_or_rings_left(RELAY_END_S)
        self.assertEqual({0}, set(self.steps_by_restart(job)))

    def test_a_job_that_is_killed_after_its_grace_time(self):
        """It minds no SIGTERM: all that it does in the grace time is kept, too."""
        low, high = self.preempt_in_grace(f"""srun {MPI} sh -c "trap '' TERM; exec {self.program('steps')} {LONG}\"""")
        time.sleep(GRACE_S / 3)
        self.assertEqual("RUNNING", self.shown_job(low)["JobState"])
        self.assertEqual(3, len(self.pids_of("lbf-relay")), "the script's and the step's two; the other job has none yet")
        after_sigterm = self.steps(low)[0]
        self.finish_high(*high)
        preempted = self.assert_is_kept(low, after_sigterm)
        self.assertGreater(self.sendrecvs(preempted), self.sendrecvs(after_sigterm))
        self.assert_no_relays_or_rings_left(RELAY_END_S)

    def test_a_job_that_ends_within_its_grace_time(self):
        low, high = self.preempt_in_grace(self.srun_steps(f"{LONG} catch"))
        self.finish_high(*high)
        step = self.step(low)
        self.wait_for(lambda: self.shown_job(low)["JobState"] in ("COMPLETED", "PREEMPTED"), 30, f"job {low} does not end")
        printed = self.printed(low)
        self.assertEqual([str(int(signal.SIGTERM))] * 4, re.findall(r"^caught \d+ (\d+)$", printed.out, re.M), printed)
        self.assert_counts(self.printed_counts(printed), step)
        self.assertLess(self.sendrecvs(step), 4 * 8000)
        self.assertEqual("", step["why_partial"])


class Gang(Partitions):
    purpose = "g"
    settings = ("PreemptMode=SUSPEND,GANG", "SchedulerTimeSlice=5",
                "PartitionName=low Nodes=ALL PriorityTier=1 PreemptMode=SUSPEND OverSubscribe=FORCE:1 State=UP",
                "PartitionName=sliced Nodes=ALL PriorityTier=1 OverSubscribe=FORCE:2 State=UP",
                "PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF OverSubscribe=FORCE:1 State=UP")

    def stopped_s(self, step):
        """By rank, as the notes say."""
        return {int(rank): float(seconds) for rank, seconds in re.findall(
            r"rank (\d+) was stopped \(a suspended job\?\) for about ([\d.]+) s: in the measured time, but in no prediction",
            "\n".join(step["notes"]))}

    def assert_suspended_and_complete(self, job, steps, least_s):
        """The job is over, and its step complete; it was stopped for `least_s` or more, which is in its measured time and in no
        prediction."""
        self.wait_for_job(job, timeout_s=120, JobState="COMPLETED")
        step = self.step(job)
        self.assertEqual(("", 4 * steps, 0), (step["why_partial"], self.sendrecvs(step), step["lost_events"]))
        self.assert_counts(self.printed_counts(self.printed(job)), step)
        stopped_s = self.stopped_s(step)
        self.assertEqual({0, 1, 2, 3}, set(stopped_s), step["notes"])
        self.assertGreater(min(stopped_s.values()), least_s)
        self.assertGreater(step["measured_s"], max(stopped_s.values()))
        self.assert_predicts(step)
        for prediction in step["predictions"]:
            self.assertLess(prediction["predicted_s"], step["measured_s"] - min(stopped_s.values()) / 2, prediction)
        return step

    def test_a_job_that_is_suspended_while_another_one_runs(self):
        """For longer than the 8 s after which lbfd gives up a stream from which nothing comes (stream_timeout_s)."""
        low = self.submit("low", self.srun_steps("300 10000"))
        self.running_step(low, enough_events=100)
        process, job = self.start_high(500, 20000)
        self.wait_for_job(low, JobState="SUSPENDED")
        self.assertEqual("RUNNING", self.shown_job(job)["JobState"])
        self.assertEqual({"running"}, self.states_while(process, low))
        high = self.finish_high(process, job, 500)
        self.assertEqual({}, self.stopped_s(high))
        self.assertGreater(high["measured_s"], 10, "500 pauses of 20 ms")
        step = self.assert_suspended_and_complete(low, 300, high["measured_s"] - 2)
        self.assertGreater(step["measured_s"], high["measured_s"])
        self.assertLess(step["start"], high["start"])
        self.assertGreater(step["end"], high["end"])
        self.assert_no_relays_or_rings_left()

    def test_jobs_that_take_turns(self):
        """Gang scheduling: two jobs in one partition have the same processors, five seconds each by turns."""
        # The second one is suspended before its script runs, which then runs all the same; an srun in it would wait for minutes.
        its_turn = "until scontrol show job $SLURM_JOB_ID | grep -q JobState=RUNNING; do sleep 0.2; done\n"
        jobs = [self.submit("sliced", its_turn + self.srun_steps(f"{steps} 20000")) for steps in (500, 520)]
        for job, steps in zip(jobs, (500, 520)):
            self.assert_suspended_and_complete(job, steps, 1)
        self.assert_no_relays_or_rings_left()


if __name__ == "__main__":
    cluster_case.main()
