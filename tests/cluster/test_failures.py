#!/usr/bin/python3
"""Whatever fails in lbf or in the program, the program runs, ends and complains as without --lbf-predict."""

import os
import signal
import sys
import time

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import LAYOUT, MPI, ClusterCase, cluster  # noqa: E402


class Failures(ClusterCase):
    def steps_program(self, steps=60, pause_us=0, mode="ok"):
        return self.program("steps"), str(steps), str(pause_us), mode

    def start_prediction(self, name, *command):
        return self.start("srun", MPI, "--lbf-predict", f"--job-name={name}", *LAYOUT, *command)

    # -- lbfd
    def test_no_lbfd(self):
        bare = self.srun(*LAYOUT, *self.steps_program())
        self.lbfd("stop")
        captured, job = self.predict(*LAYOUT, *self.steps_program())
        self.assert_same_program(bare, captured)
        self.assertTrue(captured.lbf_lines(), "the user is told in a line on stderr")
        self.lbfd("start")
        # The spool waits on each node until a relay of the same user runs there again.
        self.predict(*LAYOUT, *self.steps_program(steps=300, pause_us=10000))
        step = self.step(job)
        self.assert_counts(self.printed_counts(captured), step)

    def test_lbfd_is_killed_and_restarted_in_the_middle(self):
        bare = self.srun(*LAYOUT, *self.steps_program(steps=400))
        name = f"kill9-{os.getpid()}"
        process = self.start_prediction(name, *self.steps_program(steps=400, pause_us=20000))
        job = self.job_of(name)
        before = self.running_step(job, enough_events=100)["events"]
        self.lbfd("kill9")
        time.sleep(2)
        self.assertIsNone(process.poll(), "the program runs on while lbfd is away")
        self.lbfd("start")
        captured = self.finish(process)
        self.assert_same_program(bare, captured)
        step = self.step(job)
        self.assertGreaterEqual(step["events"], before, "what was acknowledged is there after kill -9")
        self.assert_counts(self.printed_counts(captured), step)
        self.assert_predicts(step)

    # -- the program
    def assert_ends_alike(self, mode, how):
        bare = self.srun(*LAYOUT, *self.steps_program(mode=mode))
        self.assertNotEqual(0, bare.status, bare)
        captured, job = self.predict(*LAYOUT, *self.steps_program(mode=mode))
        self.assertEqual(bare.status, captured.status, f"with --lbf-predict: {captured}\nwithout: {bare}")
        step = self.step(job, state=None)
        self.assertEqual(how, step["state"], step)
        self.assertGreater(step["events"], 0, "the events until then are not lost")
        return bare, captured, step

    def test_the_program_gets_sigkill(self):
        self.assert_ends_alike("kill", "partial")

    def test_the_program_crashes(self):
        self.assert_ends_alike("segv", "partial")

    def test_a_rank_aborts(self):
        self.assert_ends_alike("abort", "partial")

    def test_the_exit_status_is_the_programs(self):
        bare, captured, step = self.assert_ends_alike("exit3", "complete")
        self.assert_same_program(bare, captured)
        self.assertEqual(3, captured.status)
        self.assert_counts(self.printed_counts(captured), step)

    def test_a_program_that_is_not_mpi(self):
        for command in (("sh", "-c", "echo out; echo err >&2; exit 5"), ("true",), ("nosuchprogram",)):
            # Who is killed because of another one's status, and what that says, is chance.
            alone = ("--kill-on-bad-exit=0", *LAYOUT)
            bare = self.srun(*alone, *command)
            captured, _ = self.predict(*alone, *command)
            self.assert_same_program(bare, captured)

    # -- the relay
    def test_the_relay_is_killed(self):
        bare = self.srun(*LAYOUT, *self.steps_program(steps=200))
        name = f"relay-{os.getpid()}"
        process = self.start_prediction(name, *self.steps_program(steps=200, pause_us=20000))
        job = self.job_of(name)
        self.running_step(job)
        victims = self.pids_of("lbf-relay")
        self.assertEqual(2, len(victims), "one relay on each node of the step")
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        captured = self.finish(process)
        self.assert_same_program(bare, captured)
        step = self.step(job, state=None)
        self.assertEqual("partial", step["state"], "lbfd ends the streams that fell silent")
        self.assert_no_relays_or_rings_left()

    def test_the_relays_end_with_the_step(self):
        done, job = self.predict(*LAYOUT, *self.steps_program())
        self.assertEqual(0, done.status, done)
        self.step(job)
        self.assert_no_relays_or_rings_left()

    def test_the_spool_is_full(self):
        """lbfd is away and every node's spool is on a file system without room for the events: the user is told, and so is lbfd, by
        the streams' ends, which have room (docs/relay.md, "Spool")."""
        if not self.facts["namespaces"]:
            self.skipTest("needs a mount namespace for the node")
        nodes = ("node1", "node2")
        bare = self.srun(*LAYOUT, *self.steps_program(steps=2000))
        spool = self.state("local", "spool-lbf")
        for node in nodes:
            # Two pages: for a file's header and the end of its stream, and for few of the step's events.
            cluster("exec", self.name, node, "mount", "-t", "tmpfs", "-o", "size=8k,mode=1777", "tmpfs", spool)
            self.addCleanup(cluster, "exec", self.name, node, "umount", "--lazy", spool)
        self.lbfd("stop")
        captured, job = self.predict(*LAYOUT, "--nodelist=node1,node2", *self.steps_program(steps=2000))
        self.assert_same_program(bare, captured)
        self.assertTrue([line for line in captured.lbf_lines() if "events were lost: cannot reach lbfd at " in line],
                        f"the user is told that events are lost, and why: {captured}")
        self.lbfd("start")
        for node in nodes:
            flushed = cluster("exec", self.name, node, os.path.join(cluster_case.BIN, "lbf-relay"), "--flush-spool", spool, check=False)
            self.assertEqual((0, ""), (flushed.returncode, flushed.stderr))
        why = self.step(job, state="partial")["why_partial"]
        for node in nodes:
            self.assertRegex(why, rf"node {node} lost [1-9]\d* batches: cannot reach lbfd at .*; spool ")

    # -- options
    def test_wrong_values_of_every_option(self):
        bare = self.srun(*LAYOUT, *self.steps_program())
        for option in ("--lbf-predict=maybe", "--lbf-networks=a,,b", "--lbf-networks=../etc", "--lbf-overhead=many",
                       "--lbf-overhead=-1", "--lbf-overhead=0", "--lbf-overhead=101", "--lbf-overhead=nan",
                       "--lbf-limits=relay_memory_limit_mb=3", "--lbf-limits=nosuch=1"):
            captured = self.srun("--lbf-predict", option, *LAYOUT, *self.steps_program())
            self.assert_same_program(bare, captured)
            complaints = [line for line in captured.lbf_lines() if option.partition("=")[0] in line]
            self.assertEqual(1, len(complaints), f"{option}: one clear line\n{captured}")

    def test_wrong_values_in_the_environment(self):
        bare = self.srun(*LAYOUT, *self.steps_program())
        for variable, value in (("LBF_PREDICT", "perhaps"), ("LBF_NETWORKS", "a b"), ("LBF_OVERHEAD", "1e9")):
            captured = self.srun("--lbf-predict" if variable != "LBF_PREDICT" else "--quiet", *LAYOUT,
                                 *self.steps_program(), env={variable: value})
            self.assert_same_program(bare, captured)
            self.assertEqual(1, len([line for line in captured.lbf_lines() if variable in line]), captured)

    def test_limits_of_ones_own(self):
        """Lower ones are taken without a word; of a higher one a line (the plugin's) or a note (lbfd's), and the job runs."""
        bare = self.srun(*LAYOUT, *self.steps_program())
        captured, job = self.predict("--lbf-limits=network_limit_kBps=2000,relay_cpu_limit=0.5,step_cpu_percent=5",
                                     *LAYOUT, *self.steps_program())
        self.assert_same_program(bare, captured)
        self.assertEqual([], [line for line in captured.lbf_lines() if "limit" in line], captured)
        self.assertEqual([], [note for note in self.step(job)["notes"] if "allows" in note])
        captured, job = self.predict("--lbf-limits=relay_memory_limit_mb=4096,step_cpu_percent=10000", *LAYOUT,
                                     *self.steps_program())
        self.assert_same_program(bare, captured)
        line, = [line for line in captured.lbf_lines() if "--lbf-limits" in line]
        self.assertRegex(line, r"--lbf-limits=relay_memory_limit_mb=4096: more than this site allows; \d+ MB is used$")
        self.assertEqual(["step_cpu_percent=10000: more than this lbfd allows; 10 % is used"],
                         [note for note in self.step(job)["notes"] if "allows" in note])

    def test_a_network_that_does_not_exist_is_named_in_the_report(self):
        captured, job = self.predict("--lbf-networks=test-fast,nosuchnetwork", *LAYOUT, *self.steps_program())
        self.assertEqual(0, captured.status, captured)
        step = self.step(job)
        self.assertTrue([note for note in step["notes"] if "nosuchnetwork" in note], step["notes"])
        self.assertEqual({"test-fast"}, {prediction["network"] for prediction in step["predictions"]
                                         if prediction["kind"] != "self"})


class PlugstackArguments(ClusterCase):
    """Arguments in plugstack.conf. Where one is wrong, the job runs, and the one who asked for a prediction is told."""

    def test_wrong_values_of_every_argument(self):
        plugstack = self.state("plugstack.conf")
        with open(plugstack, encoding="utf-8") as file:
            good = file.read()
        self.addCleanup(lambda: self.write(plugstack, good))
        bare = self.srun("--ntasks=2", self.program("steps"), "20")
        for wrong in ("overhead_limit=lots", "overhead_limit=-3", "lbfd=ftp://nowhere", "lbfd=", "networks=a/b",
                      "spool_dir=relative/path", "spool_limit_mb=0", "spool_limit_mb=x", "default=perhaps",
                      "nosuchargument=1", "noequals"):
            self.write(plugstack, good.rstrip("\n") + " " + wrong + "\n")
            captured = self.srun("--lbf-predict", "--ntasks=2", self.program("steps"), "20")
            self.assert_same_program(bare, captured)
            name = wrong.partition("=")[0]
            self.assertEqual(1, len([line for line in captured.lbf_lines() if name in line]), f"{wrong}: {captured}")
            # Somebody who did not ask for lbf has nothing to do with its configuration.
            self.assertEqual([], self.srun("--ntasks=2", self.program("steps"), "20").lbf_lines())

    def test_rings_lie_where_the_administrator_says_and_are_as_large(self):
        plugstack = self.state("plugstack.conf")
        with open(plugstack, encoding="utf-8") as file:
            good = file.read()
        self.addCleanup(lambda: self.write(plugstack, good))
        # A node's /tmp is a tmpfs of its own, as ring_dir must be.
        self.write(plugstack, good.rstrip("\n") + " ring_dir=/tmp ring_bytes=65536 networks=test-fast\n")
        seen = self.srun("--lbf-predict", "--ntasks=1", "sh", "-c", "echo $LBF_CAPTURE_DIR $LBF_CAPTURE_RING_BYTES")
        self.assertRegex(seen.out, r"^/tmp/lbf-\S+ 65536\n$")
        captured, job = self.predict(*LAYOUT, self.program("steps"), "60", "1000")
        self.assertEqual(0, captured.status, captured)
        step = self.step(job)
        self.assert_counts(self.printed_counts(captured), step)
        self.assertEqual({"test-fast"}, {prediction["network"] for prediction in step["predictions"]})

    def test_default_on_and_off(self):
        plugstack = self.state("plugstack.conf")
        with open(plugstack, encoding="utf-8") as file:
            good = file.read()
        self.addCleanup(lambda: self.write(plugstack, good))
        self.write(plugstack, good.rstrip("\n") + " default=on\n")
        name = f"default-{os.getpid()}"
        self.srun(f"--job-name={name}", "--ntasks=2", self.program("steps"), "20")
        self.assertGreater(self.step(self.job_of(name))["events"], 0)
        off = f"off-{os.getpid()}"
        self.srun("--lbf-predict=off", f"--job-name={off}", "--ntasks=2", self.program("steps"), "20")
        self.assert_unknown(self.job_of(off))

    def test_the_jobs_comment(self):
        plugstack = self.state("plugstack.conf")
        with open(plugstack, encoding="utf-8") as file:
            good = file.read()
        self.addCleanup(lambda: self.write(plugstack, good))
        self.write(plugstack, good.rstrip("\n") + " job_comment=on\n")
        srun = ("srun", MPI, "--lbf-predict", "--ntasks=2", self.program("steps"), "60", "1000")

        def comment(job):
            shown = self.run_command("scontrol", "show", "job", str(job)).out
            return next((line.strip() for line in shown.splitlines() if line.strip().startswith("Comment=")), "")

        for own, expected in (("", r"Comment=lbf: .*lbf-report -j \d+\.0"), ("mine", "Comment=mine")):
            script = os.path.join(self.work, "comment.sh")
            self.write(script, "#!/bin/sh\n" + " ".join(srun) + "\n")
            done = self.run_command("sbatch", "--parsable", "--wait", "--ntasks=2", f"--output={self.work}/comment.out",
                                    *((f"--comment={own}",) if own else ()), script)
            self.assertEqual(0, done.status, done)
            self.assertRegex(comment(done.out.split(";")[0].strip()), expected)
        # A job of srun's own is over before its prediction: no comment, and no complaint.
        captured, job = self.predict("--ntasks=2", self.program("steps"), "60", "1000")
        self.assertEqual(("", 1), (comment(job), len(captured.lbf_lines())), captured)

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    cluster_case.main()
