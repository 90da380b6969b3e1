#!/usr/bin/python3
"""The ways into Slurm: sbatch with several steps, salloc, job arrays, jobs side by side, and who may see what."""

import json
import os
import sys
import uuid

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import OTHER_USER, USER, ClusterCase  # noqa: E402


class Slurm(ClusterCase):
    def batch(self, script_text, *options):
        """sbatch; waits for the end; returns (job numbers, what the job printed)."""
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        script = os.path.join(self.work, f"{name}.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script_text)
        os.chmod(script, 0o755)
        output = os.path.join(self.work, f"{name}-%a.out")
        done = self.run_command("sbatch", "--wait", f"--job-name={name}", f"--output={output}", *options, script,
                                timeout=180)
        printed = ""
        for entry in sorted(os.listdir(self.work)):
            if entry.startswith(name) and entry.endswith(".out"):
                with open(os.path.join(self.work, entry), encoding="utf-8") as file:
                    printed += file.read()
        self.assertEqual(0, done.status, f"{done}\n{printed}")
        return sorted(self.jobs_named(name)), printed

    def expected(self, steps, ranks):
        return {"MPI_Sendrecv": steps * ranks, "MPI_Isend": steps * ranks, "MPI_Waitall": steps * ranks}

    def test_sbatch_with_two_steps(self):
        program = self.program("steps")
        jobs, printed = self.batch(f"srun --mpi=pmix -n4 {program} 30\nsrun --mpi=pmix -n2 {program} 50\n",
                                   "--lbf-predict", "--nodes=2", "--ntasks=4")
        self.assertEqual(1, len(jobs), printed)
        self.assert_counts(self.expected(30, 4), self.step(jobs[0], 0))
        self.assert_counts(self.expected(50, 2), self.step(jobs[0], 1))

    def test_sbatch_where_one_step_declines(self):
        program = self.program("steps")
        jobs, _ = self.batch(f"srun --mpi=pmix --lbf-predict=off -n2 {program} 30\nsrun --mpi=pmix -n2 {program} 40\n",
                             "--lbf-predict", "--nodes=1", "--ntasks=2")
        self.assert_counts(self.expected(40, 2), self.step(jobs[0], 1))
        self.assertNotIn(0, self.steps(jobs[0]))

    def test_the_batch_script_itself_is_left_alone(self):
        jobs, printed = self.batch("echo preload=${LD_PRELOAD:-none}\n/bin/true\n", "--lbf-predict", "--ntasks=1")
        self.assertIn("preload=none", printed)
        self.assertEqual({}, self.steps(jobs[0]))

    def test_salloc(self):
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        done = self.run_command("salloc", "--lbf-predict", f"--job-name={name}", "--nodes=2", "--ntasks=4", "srun",
                                "--mpi=pmix", self.program("steps"), "30")
        self.assertEqual(0, done.status, done)
        self.assert_counts(self.expected(30, 4), self.step(self.job_of(name)))

    def test_job_array(self):
        program = self.program("steps")
        jobs, printed = self.batch(f"srun --mpi=pmix {program} $((20 + SLURM_ARRAY_TASK_ID))\n", "--lbf-predict",
                                   "--array=1-3", "--ntasks=2", "--nodes=1")
        self.assertEqual(3, len(jobs), printed)
        seen = sorted(self.calls_of(self.step(job))["MPI_Sendrecv"] for job in jobs)
        self.assertEqual([2 * 21, 2 * 22, 2 * 23], seen)

    def test_two_jobs_at_once_on_the_same_node(self):
        names = [f"lbf-{uuid.uuid4().hex[:12]}" for _ in range(2)]
        processes = [self.start("srun", "--mpi=pmix", "--lbf-predict", "--nodelist=node1", "--nodes=1", "--ntasks=2",
                                f"--job-name={name}", self.program("steps"), str(steps), "20000")
                     for name, steps in zip(names, (150, 170))]
        self.wait_for(lambda: len(self.pids_of("lbf-relay", "node1")) == 2 or any(p.poll() is not None for p in processes),
                      30, "both steps have a relay on the node")
        self.assertEqual([None, None], [process.poll() for process in processes], "the jobs did not run side by side")
        for process, name, steps in zip(processes, names, (150, 170)):
            self.assertEqual(0, self.finish(process).status)
            self.assert_counts(self.expected(steps, 2), self.step(self.job_of(name)))

    def test_another_users_job_is_refused(self):
        if not self.root:
            self.skipTest("needs root, to run jobs as two ordinary users")
        done, job = self.predict("--ntasks=2", self.program("steps"), "20", user=USER)
        self.assertEqual(0, done.status, done)
        own = self.step(job)
        self.assertEqual(USER, own["user"])
        stranger = self.report("-j", str(job), user=OTHER_USER)
        self.assertNotIn("steps", stranger.out)
        self.assertNotEqual(0, stranger.status, stranger)
        self.assertEqual({}, self.steps(job, user=OTHER_USER))
        everybody = self.report("-a", "--json", user=OTHER_USER)
        listed = json.loads(everybody.out)["steps"] if everybody.status == 0 else []
        self.assertEqual([], [step for step in listed if step["user"] == USER])
        self.assertIn(0, self.steps(job, user=None), "root sees every job")


if __name__ == "__main__":
    cluster_case.main()
