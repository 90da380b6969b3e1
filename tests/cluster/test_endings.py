#!/usr/bin/python3
"""Steps that Slurm ends: scancel, signals, the time limit, under both ways of keeping track of a step's processes."""

import os
import re
import signal
import sys
import time
import uuid

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import LAYOUT, MPI, ClusterCase, open_mpi_major  # noqa: E402

LONG = ("4000", "20000")   # iterations and their pause: ends in more than a minute if nobody ends it before
RELAY_END_S = 12           # relay_wait_s (10) and some time to look
TIME_LIMIT_S = 90          # slurmctld looks at time limits twice a minute; then KillWait


class StepsThatSlurmEnds(ClusterCase):
    """What the classes below share; it has no tests."""

    def start_step(self, *command, options=()):
        """A predicted step of 4 ranks on 2 nodes under a name of its own; returns (process, job)."""
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        process = self.start("srun", MPI, "--lbf-predict", f"--job-name={name}", *LAYOUT, *options, *command)
        return process, self.job_of(name)

    def scancel(self, *arguments):
        done = self.run_command("scancel", *map(str, arguments))
        self.assertEqual(0, done.status, done)

    def status_without_lbf(self, end, *command):
        """Exit status of the same program without --lbf-predict, ended by end(job)."""
        name = f"bare-{uuid.uuid4().hex[:12]}"
        process = self.start("srun", MPI, f"--job-name={name}", *LAYOUT, *command)
        job = self.job_of(name)
        self.wait_for(lambda: len(self.pids_of("steps")) == 4, 30, "the bare program does not start")
        end(job)
        return self.finish(process).status

    def assert_status_as_bare(self, captured, bare):
        # Ranks are killed one after the other; with Open MPI 5 one that sees that its peer is gone exits by itself (with
        # 6.0.0rc2 it may crash, seen bare), and srun's status is either's.
        peer_is_gone = 14
        either = {128 + signal.SIGTERM, 128 + signal.SIGKILL, peer_is_gone}
        self.assertIn(captured.status, either | {bare} if open_mpi_major() > 4 else {bare})

    def assert_is_kept(self, process, job, before, killer="scancel or Ctrl-C"):
        """The step has ended by force: what was known is there, marked as a part, and nothing is left on the nodes."""
        captured = self.finish(process)
        self.assertTrue([line for line in captured.lbf_lines() if "(partial)" in line], captured)
        self.assert_no_relays_or_rings_left(RELAY_END_S)
        step = self.step(job, state="partial")
        self.assertIn(f"killed by {killer} before MPI_Finalize: rank 0", step["why_partial"])
        self.assertGreaterEqual(step["events"], before["events"])
        self.assertEqual(0, step["lost_events"])
        self.assert_predicts(step)
        self.assertEqual({True}, {prediction["partial"] for prediction in step["predictions"]})
        return captured

    def assert_goes_on_after(self, number, process, job):
        """All ranks have caught the signal, and the program has gone on and come to its end."""
        captured = self.finish(process)
        self.assertEqual(0, captured.status, captured)
        self.assertEqual([str(int(number))] * 4, re.findall(r"^caught \d+ (\d+)$", captured.out, re.M), captured)
        step = self.step(job)
        self.assert_counts(self.printed_counts(captured), step)
        self.assertLess(self.calls_of(step)["MPI_Sendrecv"], 4 * int(LONG[0]))

    def assert_scancel_keeps_the_prediction(self, *command):
        process, job = self.start_step(*command)
        before = self.running_step(job, enough_events=500)
        self.scancel(job)
        captured = self.assert_is_kept(process, job, before)
        self.assert_status_as_bare(captured, self.status_without_lbf(self.scancel, *command))
        return job


class Endings(StepsThatSlurmEnds):
    def test_scancel(self):
        self.assert_scancel_keeps_the_prediction(self.program("steps"), *LONG)

    def test_scancel_of_a_program_that_ignores_sigterm(self):
        """Slurm sends SIGKILL after KillWait: the relay, which is not the step's child, still delivers everything."""
        self.assert_scancel_keeps_the_prediction("sh", "-c", f"trap '' TERM; exec {self.program('steps')} {' '.join(LONG)}")

    def test_a_part_is_compared_with_the_measured_time_of_that_part(self):
        """docs/formats/http-v1.md, speedup and self_error_percent of a run that is not whole."""
        # The ranks are ended in their pauses of 2 s, when every message has arrived.
        process, job = self.start_step(self.program("steps"), "100", "2000000")
        self.running_step(job, enough_events=40)
        self.scancel(job)
        self.finish(process)
        own = [prediction for prediction in self.step(job, state="partial")["predictions"] if prediction["kind"] == "self"][0]
        self.assertAlmostEqual(100 * (own["predicted_s"] / own["measured_at_progress_s"] - 1), own["self_error_percent"], 3)

    def test_scancel_of_a_batch_job(self):
        script = os.path.join(self.work, "job.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nsrun {MPI} {self.program('steps')} {' '.join(LONG)}\n")
        os.chmod(script, 0o755)
        submitted = self.run_command("sbatch", "--parsable", "--lbf-predict", *LAYOUT, f"--output={self.work}/out", script)
        self.assertEqual(0, submitted.status, submitted)
        job = int(submitted.out)
        before = self.running_step(job, enough_events=500)
        self.scancel(job)
        self.assert_no_relays_or_rings_left(RELAY_END_S)
        step = self.step(job, state="partial")
        self.assertIn("killed by scancel or Ctrl-C before MPI_Finalize: rank 0", step["why_partial"])
        self.assertGreaterEqual(step["events"], before["events"])
        self.assert_predicts(step)

    def test_a_signal_that_the_program_does_not_mind(self):
        """scancel --signal reaches the program and nothing of lbf's: the step goes on and is complete."""
        command = ("sh", "-c", f"trap '' USR1; exec {self.program('steps')} 300 10000")
        bare = self.srun(*LAYOUT, *command)
        process, job = self.start_step(*command)
        self.running_step(job)
        relays = self.pids_of("lbf-relay")
        self.scancel("--signal=USR1", job)
        captured = self.finish(process)
        self.assertEqual(2, len(relays), "one relay on each node of the step")
        self.assert_same_program(bare, captured)
        self.assert_counts(self.printed_counts(captured), self.step(job))

    def test_a_signal_that_the_program_handles(self):
        process, job = self.start_step(self.program("steps"), *LONG, "catch")
        self.running_step(job)
        self.scancel("--signal=USR2", job)  # MPICH has a use for SIGUSR1
        self.assert_goes_on_after(signal.SIGUSR2, process, job)

    def test_a_signal_before_the_time_limit(self):
        """--signal=USR2@90: 90 s before it."""
        process, job = self.start_step(self.program("steps"), *LONG, "catch", options=("--time=10", "--signal=USR2@90"))
        self.running_step(job)
        # slurmctld looks twice a minute, and half a minute ahead: it sends the signal from now on, when the program catches it.
        update = self.run_command("scontrol", "update", f"JobId={job}", "TimeLimit=2", user=None)
        self.assertEqual(0, update.status, update)
        self.assert_goes_on_after(signal.SIGUSR2, process, job)

    def test_tasks_that_go_on_after_mpi_finalize(self):
        """srun ends them, because one has failed or has ended long before: every rank had come to its end."""
        for option, end in (("--kill-on-bad-exit=1", "exit 3"), ("--wait=2", "exit 0")):
            command = ("sh", "-c", f"{self.program('steps')} 30; [ $SLURM_PROCID = 1 ] && {end}; exec sleep 200")
            bare = self.srun(option, *LAYOUT, *command)
            captured, job = self.predict(option, *LAYOUT, *command)
            self.assertGreater(captured.status, 128, captured)
            self.assertEqual(bare.status, captured.status, f"with --lbf-predict: {captured}\nwithout: {bare}")
            self.assert_counts(self.printed_counts(captured), self.step(job))

    def test_a_rank_fails_and_slurm_kills_the_others(self):
        command = ("--kill-on-bad-exit=1", *LAYOUT, self.program("steps"), "100", "10000", "kill")
        captured, job = self.predict(*command)
        self.assertIn("Terminating StepId", captured.err)
        self.assert_status_as_bare(captured, self.srun(*command).status)
        step = self.step(job, state="partial")
        self.assertRegex(step["why_partial"], r"killed by signal 9 \(SIGKILL\) before MPI_Finalize: rank|"
                         "another task failed")
        self.assert_predicts(step)

    def test_a_rank_that_exits_without_mpi_finalize(self):
        """It is not killed: its exit status is said. Nor is a program complete that is none of MPI's, or is not there."""
        captured, job = self.predict(*LAYOUT, self.program("steps"), "100", "1000", "exit7")
        why = self.step(job, state="partial")["why_partial"]
        # Open MPI 5 ends a rank that still communicates when its peers are gone: 14.
        if captured.status == 14 and open_mpi_major() >= 5:
            self.assertRegex(why, r"ended without MPI_Finalize \(exit (7|14)\): rank")
        else:
            self.assertEqual(7, captured.status, captured)
            self.assertRegex(why, r"ended without MPI_Finalize \(exit 7\): rank 0, 1, 2, 3")
        for command in ("hostname", "no-such-program"):
            _, job = self.predict(*LAYOUT, command)
            self.assertIn("no MPI program was seen", self.step(job, state="partial")["why_partial"])

    def test_a_signal_that_ends_the_program(self):
        command = (self.program("steps"), *LONG)
        process, job = self.start_step(*command)
        before = self.running_step(job, enough_events=500)
        self.scancel("--signal=USR2", job)  # MPICH has a use for SIGUSR1
        captured = self.assert_is_kept(process, job, before, f"signal {int(signal.SIGUSR2)} (SIGUSR2)")
        self.assertEqual(self.status_without_lbf(lambda bare: self.scancel("--signal=USR2", bare), *command), captured.status)

    def test_the_time_limit(self):
        process, job = self.start_step(self.program("steps"), *LONG, options=("--time=1",))
        before = self.running_step(job, enough_events=500)
        # Slurm counts in minutes; the administrator can take the rest of one away.
        update = self.run_command("scontrol", "update", f"JobId={job}", "EndTime=now+2", user=None)
        self.assertEqual(0, update.status, update)
        self.wait_for(lambda: process.poll() is not None, TIME_LIMIT_S, "Slurm does not end the job")
        captured = self.assert_is_kept(process, job, before, "its job's time limit")
        self.assertIn("DUE TO TIME LIMIT", captured.err)


class ProctrackCgroup(StepsThatSlurmEnds):
    """The same with ProctrackType=proctrack/cgroup, where Slurm finds a step's processes by their cgroup."""

    def setUp(self):
        super().setUp()
        self.use_own("c", "--cgroups")
        shown = self.run_command("scontrol", "show", "config")
        self.assertRegex(shown.out, r"ProctrackType\s*= proctrack/cgroup")

    def cgroup_of(self, pid):
        with open(f"/proc/{pid}/cgroup", encoding="ascii") as file:
            return [line.rstrip("\n").split(":")[2] for line in file if ":freezer:" in line][0]

    def test_a_run_to_its_end(self):
        bare = self.srun(*LAYOUT, self.program("steps"), "60")
        captured, job = self.predict(*LAYOUT, self.program("steps"), "60")
        self.assert_same_program(bare, captured)
        self.assert_counts(self.printed_counts(captured), self.step(job))
        self.assert_no_relays_or_rings_left()

    def test_the_relay_is_inside_the_job(self):
        process, job = self.start_step(self.program("steps"), *LONG)
        self.running_step(job)
        self.assertEqual(2, len(self.pids_of("lbf-relay")))
        for pid in self.pids_of("lbf-relay"):
            self.assertIn(f"/job_{job}", self.cgroup_of(pid), "what the relay uses counts as the job's")
        self.scancel(job)
        self.finish(process)

    def test_suspend_and_resume(self):
        """The step's cgroup is stopped, the relay is not in it: lbfd hears of it, for longer than stream_timeout_s."""
        process, job = self.start_step(self.program("steps"), "300", "10000")
        self.running_step(job, enough_events=100)
        self.assertEqual(0, self.run_command("scontrol", "suspend", str(job), user=None).status)
        self.wait_for(lambda: self.shown_job(job)["JobState"] == "SUSPENDED", 30, f"job {job} is not suspended")
        time.sleep(11)
        self.assertEqual("running", self.steps(job)[0]["state"])
        self.assertEqual(0, self.run_command("scontrol", "resume", str(job), user=None).status)
        self.assertEqual(0, self.finish(process).status)
        step = self.step(job)
        self.assertGreater(step["measured_s"], 11 + 3, "and the pauses")
        for prediction in step["predictions"]:
            self.assertLess(prediction["predicted_s"], step["measured_s"] - 8, prediction)

    def test_suspend_of_ranks_that_are_children_of_the_tasks(self):
        """Slurm stops the task, which is a shell, and two seconds later its cgroup, which alone holds the rank."""
        process, job = self.start_step("sh", "-c", f"{self.program('steps')} 800 10000; true")
        self.running_step(job, enough_events=100)
        self.assertEqual(0, self.run_command("scontrol", "suspend", str(job), user=None).status)
        self.wait_for(lambda: self.shown_job(job)["JobState"] == "SUSPENDED", 30, f"job {job} is not suspended")
        time.sleep(14)
        self.assertEqual(0, self.run_command("scontrol", "resume", str(job), user=None).status)
        self.assertEqual(0, self.finish(process).status)
        step = self.step(job)
        self.assertGreater(step["measured_s"], 11 + 8, "and the pauses")
        self.assertRegex(str(step["notes"]), r"was stopped \(a suspended job\?\)")
        for prediction in step["predictions"]:
            self.assertLess(prediction["predicted_s"], step["measured_s"] - 8, prediction)

    def test_scancel(self):
        self.assert_scancel_keeps_the_prediction(self.program("steps"), *LONG)

    def test_scancel_of_a_program_that_ignores_sigterm(self):
        """SIGKILL goes to every process in the step's cgroup."""
        self.assert_scancel_keeps_the_prediction("sh", "-c", f"trap '' TERM; exec {self.program('steps')} {' '.join(LONG)}")


if __name__ == "__main__":
    cluster_case.main()
