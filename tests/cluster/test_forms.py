#!/usr/bin/python3
"""Forms of Slurm jobs: steps side by side, requeued and preempted jobs, several programs in a step, suspended jobs, lost
nodes, a site's task prologs. docs/compatibility.md names the test of each."""

import os
import re
import sys
import uuid

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import LAYOUT, MPI, ClusterCase, cluster  # noqa: E402


class Forms(ClusterCase):
    def script(self, text):
        path = os.path.join(self.work, f"{uuid.uuid4().hex[:12]}.sh")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path

    def submit(self, text, *options):
        """sbatch --lbf-predict; returns (job, file of its output)."""
        output = os.path.join(self.work, f"{uuid.uuid4().hex[:12]}.out")
        done = self.run_command("sbatch", "--parsable", "--lbf-predict", f"--output={output}", *options, self.script(text))
        self.assertEqual(0, done.status, done)
        return int(done.out.split(";")[0]), output

    def wait_for_job(self, job, state, timeout_s=60):
        self.wait_for(lambda: f"JobState={state}" in self.run_command("scontrol", "show", "job", str(job)).out, timeout_s,
                      f"job {job} does not become {state}")

    def sendrecvs(self, step):
        return self.calls_of(step)["MPI_Sendrecv"]

    def test_steps_at_once(self):
        program = self.program("steps")
        srun = f"srun {MPI} --exact --nodes=1 --ntasks=1"
        job, _ = self.submit("".join(f"{srun} {program} {steps} 5000 &\n" for steps in (100, 120, 140, 160)) + "wait\n", *LAYOUT,
                             "--ntasks-per-node=2")
        self.wait_for_job(job, "COMPLETED")
        seen = [self.step(job, number) for number in range(4)]
        self.assertEqual([100, 120, 140, 160], sorted(map(self.sendrecvs, seen)))
        begun, ended = max(step["start"] for step in seen), min(step["end"] for step in seen)
        self.assertLess(begun, ended, "they ran at the same time")

    def test_overlapping_steps(self):
        """--overlap: two steps on the same processors."""
        program = self.program("steps")
        srun = f"srun {MPI} --overlap --nodes=1 --ntasks=2"
        job, _ = self.submit(f"{srun} {program} 60 5000 &\n{srun} {program} 80 5000\nwait\n", "--nodes=1", "--ntasks=2")
        self.wait_for_job(job, "COMPLETED")
        self.assertEqual([2 * 60, 2 * 80], sorted(self.sendrecvs(self.step(job, number)) for number in range(2)))

    def test_several_programs_in_one_step(self):
        """--multi-prog: one MPI_COMM_WORLD of different programs."""
        program, other = self.program("steps"), os.path.join(self.work, "other-name")
        os.symlink(program, other)
        config = os.path.join(self.work, "multi.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"0-1 {program} 40\n2-3 {other} 40\n")
        done, job = self.predict("--multi-prog", *LAYOUT, config)
        self.assertEqual(0, done.status, done)
        step = self.step(job)
        self.assertEqual((4, 4 * 40), (step["ranks"], self.sendrecvs(step)))

    def test_a_requeued_job(self):
        """Each restart has rows of its own; what the first run had is a part."""
        job, _ = self.submit(f'if [ "${{SLURM_RESTART_COUNT:-0}}" = 0 ]; then srun {MPI} {self.program("steps")} 4000 20000\n'
                             f"else srun {MPI} {self.program('steps')} 30; fi\n", "--requeue", "--nodes=1", "--ntasks=2")
        self.running_step(job, enough_events=100)
        self.assertEqual(0, self.run_command("scontrol", "requeue", str(job)).status)
        found = self.both_restarts(job)
        self.assertEqual({0: "partial", 1: "complete"}, {restart: step["state"] for restart, step in found.items()})
        self.assertEqual(2 * 30, self.sendrecvs(found[1]))

    def test_a_suspended_job(self):
        """The time in which the job is stopped is no process time: no prediction has it."""
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        process = self.start("srun", MPI, "--lbf-predict", f"--job-name={name}", "--nodes=1", "--ntasks=2",
                             self.program("steps"), "400", "10000")
        job = self.job_of(name)
        self.running_step(job, enough_events=100)
        suspended = self.run_command("scontrol", "suspend", str(job), user=None)
        self.assertEqual(0, suspended.status, suspended)
        self.wait_for_job(job, "SUSPENDED")
        cluster_case.time.sleep(6)
        self.assertEqual(0, self.run_command("scontrol", "resume", str(job), user=None).status)
        self.assertEqual(0, self.finish(process).status)
        step = self.step(job)
        self.assertGreater(step["measured_s"], 10, "4 s of pauses and 6 s of suspension")
        for prediction in step["predictions"]:
            self.assertLess(prediction["predicted_s"], step["measured_s"] - 4, prediction)

    def test_a_program_that_records_nothing_for_long(self):
        """For longer than stream_timeout_s, which is 8 s here, between two calls and after MPI_Finalize: it is not given up."""
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        process = self.start("srun", MPI, "--lbf-predict", f"--job-name={name}", *LAYOUT, "sh", "-c",
                             f"{self.program('steps')} 1 13000000; sleep 13")
        job = self.job_of(name)
        self.running_step(job)
        self.assertNotIn("partial", self.states_while(process, job))
        self.assertEqual(0, self.finish(process).status)
        self.assertEqual(4, self.sendrecvs(self.step(job)))

    def test_a_node_dies_in_the_middle(self):
        process, job = None, None
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        try:
            process = self.start("srun", MPI, "--lbf-predict", f"--job-name={name}", "--nodelist=node3,node4", *LAYOUT,
                                 self.program("steps"), "4000", "20000")
            job = self.job_of(name)
            # Ranks of both nodes wait for each other: so much can be replayed only when lbfd has heard of both.
            self.running_step(job, enough_events=500, enough_s=0.5)
            cluster("kill-node", self.name, "node4")
            self.run_command("scancel", str(job))
            self.finish(process, timeout=150)
            step = self.step(job, state="partial")
            self.assertIn("node node4 fell silent", step["why_partial"])
            self.assertGreaterEqual(step["events"], 500)
            self.assertTrue(step["predictions"])
        finally:
            cluster("start-node", self.name, "node4")

    def test_task_prolog_and_epilog(self):
        """They inherit the preload, and what the prolog exports and prints is as without."""
        prolog = self.script("echo export FROM_PROLOG=yes\necho print prolog was here\n/bin/true | cat\n")
        epilog = self.script("/bin/true\n")
        options = (f"--task-prolog={prolog}", f"--task-epilog={epilog}", *LAYOUT)
        command = ("sh", "-c", f"echo $FROM_PROLOG; exec {self.program('steps')} 30")
        bare = self.srun(*options, *command)
        captured, job = self.predict(*options, *command)
        self.assert_same_program(bare, captured)
        self.assertIn("prolog was here", captured.out)
        self.assertEqual(4, captured.out.splitlines().count("yes"))
        self.assertEqual(4 * 30, self.sendrecvs(self.step(job)))

    def test_a_container_without_lbf(self):
        """As srun --container or pyxis start it: a root folder in which lbf's libraries are not mounted."""
        namespace = ("unshare", "--user", "--map-root-user", "--mount")
        if self.run_command(*namespace, "true").status != 0:
            self.skipTest("users may make no namespaces here")
        # The program keeps its uid: PMIx compares it.
        container = self.script(f'mount -t tmpfs none {os.path.join(cluster_case.BUILD_DIR, "lib")}\n'
                                'exec unshare --user --map-user="$1" --map-group="$2" "$3" "$4" "$5"\n')
        ids = self.run_command("sh", "-c", "id -u; id -g").out.split()
        done, job = self.predict("--nodes=1", "--ntasks=2", *namespace, "sh", container, *ids, self.program("steps"),
                                 "300", "10000", env={"OMPI_MCA_btl_vader_single_copy_mechanism": "none"})
        self.assertEqual(0, done.status, done)
        self.assertIn("cannot be preloaded", done.err)
        step = self.step(job, state="partial")
        self.assertIn("no MPI program was seen", step["why_partial"])
        self.assertRegex(" ".join(step["notes"]), "steps runs in a container that lacks .*/lib:")

    def test_mpi_through_a_shell_pipeline(self):
        done, job = self.predict(*LAYOUT, "sh", "-c", f"{self.program('steps')} 30 | cat")
        self.assertEqual((0, 4 * 6), (done.status, len(re.findall(r"^count ", done.out, re.M))), done)
        self.assertEqual(4 * 30, self.sendrecvs(self.step(job)))


if __name__ == "__main__":
    cluster_case.main()
