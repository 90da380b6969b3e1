#!/usr/bin/python3
"""The ways into Slurm: sbatch with several steps, salloc, job arrays, jobs side by side, and who may see what."""

import json
import os
import re
import sys
import uuid

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import LAYOUT, MPI, OTHER_USER, USER, ClusterCase  # noqa: E402


class Slurm(ClusterCase):
    def batch(self, script_text, *options, env=None):
        """sbatch; waits for the end; returns (job numbers, what the job printed)."""
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        script = os.path.join(self.work, f"{name}.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script_text)
        os.chmod(script, 0o755)
        output = os.path.join(self.work, f"{name}-%a.out")
        done = self.run_command("sbatch", "--wait", f"--job-name={name}", f"--output={output}", *options, script,
                                timeout=180, env=env)
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
        jobs, printed = self.batch(f"srun {MPI} -n4 {program} 30\nsrun {MPI} -n2 {program} 50\n",
                                   "--lbf-predict", "--nodes=2", "--ntasks=4")
        self.assertEqual(1, len(jobs), printed)
        self.assert_counts(self.expected(30, 4), self.step(jobs[0], 0))
        self.assert_counts(self.expected(50, 2), self.step(jobs[0], 1))

    def test_sbatch_where_one_step_declines(self):
        program = self.program("steps")
        jobs, _ = self.batch(f"srun {MPI} --lbf-predict=off -n2 {program} 30\nsrun {MPI} -n2 {program} 40\n",
                             "--lbf-predict", "--nodes=1", "--ntasks=2")
        self.assert_counts(self.expected(40, 2), self.step(jobs[0], 1))
        self.assertNotIn(0, self.steps(jobs[0]))

    def test_the_batch_script_itself_makes_no_step(self):
        """It has the preload, for the programs that mpirun may start (test_mpirun.py), and notices nothing of it."""
        jobs, printed = self.batch("echo hello\n/bin/true\nls -d /\n", "--lbf-predict", "--ntasks=1")
        self.assertEqual("hello\n/\n", printed)
        self.assert_unknown(jobs[0])

    def test_salloc(self):
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        done = self.run_command("salloc", "--lbf-predict", f"--job-name={name}", "--nodes=2", "--ntasks=4", "srun",
                                MPI, self.program("steps"), "30")
        self.assertEqual(0, done.status, done)
        self.assert_counts(self.expected(30, 4), self.step(self.job_of(name)))

    def test_salloc_passes_its_options_on_and_a_step_may_decline(self):
        """Two steps of one allocation: the first inherits salloc's choice of networks, the second says no."""
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        program = self.program("steps")
        done = self.run_command("salloc", "--lbf-predict", "--lbf-networks=test-fast", f"--job-name={name}", *LAYOUT, "sh", "-c",
                                f"srun {MPI} {program} 30 && srun {MPI} --lbf-predict=off {program} 40")
        self.assertEqual(0, done.status, done)
        self.assertEqual(2 * 4 * 6, len(re.findall(r"^count ", done.out, re.M)), done)
        job = self.job_of(name)
        step = self.step(job, 0)
        self.assert_counts(self.expected(30, 4), step)
        self.assertEqual({"test-fast"}, {prediction["network"] for prediction in step["predictions"]
                                         if prediction["kind"] != "self"})
        self.assertNotIn(1, self.steps(job))

    def test_the_variables_instead_of_the_options(self):
        """README: export LBF_PREDICT=1."""
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        done = self.srun(f"--job-name={name}", *LAYOUT, self.program("steps"), "30",
                         env={"LBF_PREDICT": "1", "LBF_NETWORKS": "test-fast"})
        self.assertEqual(0, done.status, done)
        step = self.step(self.job_of(name))
        self.assert_counts(self.expected(30, 4), step)
        self.assertEqual({"test-fast"}, {prediction["network"] for prediction in step["predictions"]})
        declined = f"lbf-{uuid.uuid4().hex[:12]}"
        self.srun(f"--job-name={declined}", "--lbf-predict=off", *LAYOUT, self.program("steps"), "30", env={"LBF_PREDICT": "1"})
        self.assert_unknown(self.job_of(declined))

    def test_a_quiet_srun(self):
        """srun -Q: no line at the end; a wrong value is said."""
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        done = self.srun("-Q", "--lbf-predict", f"--job-name={name}", *LAYOUT, self.program("steps"), "30")
        self.assertEqual((0, []), (done.status, done.lbf_lines()), done)
        self.assert_counts(self.expected(30, 4), self.step(self.job_of(name)))
        done = self.srun("-Q", "--lbf-predict", "--lbf-networks=nonet", *LAYOUT, self.program("steps"), "30")
        line, = done.lbf_lines()
        self.assertEqual(0, done.status, done)
        self.assertRegex(line, "--lbf-networks=nonet: lbfd has no network nonet, but .*test-fast.*; the job runs without prediction")

    def test_export_none_hides_the_variables_but_not_the_options(self):
        """docs/plugin.md, Options: with --export=NONE the variables do not reach the step; an option does."""
        # MPI's own variables do not reach the step either: one rank, which needs none. Open MPI 5 does not start without HOME.
        program = f"/usr/bin/env HOME=/tmp {self.program('steps')} 30"
        command = ("--export=NONE", "--ntasks=1", *program.split())
        hidden, seen = (f"lbf-{uuid.uuid4().hex[:12]}" for _ in range(2))
        for name, option in ((hidden, ()), (seen, ("--lbf-predict",))):
            done = self.srun(f"--job-name={name}", *option, *command, env={"LBF_PREDICT": "1"})
            self.assertEqual((0, 6), (done.status, len(re.findall(r"^count ", done.out, re.M))), done)
        self.assert_counts(self.expected(30, 1), self.step(self.job_of(seen)))
        self.assert_unknown(self.job_of(hidden))
        jobs, _ = self.batch(f"srun {MPI} --export=NONE -n1 {program}\n", "--lbf-predict", "--ntasks=1")
        self.assert_counts(self.expected(30, 1), self.step(jobs[0]))

    def test_a_job_without_the_environment_of_who_submits_it(self):
        """sbatch --export=NONE: the option reaches the sruns inside, the variable does not, whatever these export themselves."""
        program = f"/usr/bin/env HOME=/tmp {self.program('steps')} 30"
        run = f"/bin/sh -c 'echo mine=$MINE; {program}'"
        script = f"export MINE=yes\nsrun {MPI} --export=ALL -n1 {run}\nsrun {MPI} -n1 {run}\n"
        options = ("--export=NONE", "--ntasks=1")
        jobs, printed = self.batch(script, "--lbf-predict", *options)
        self.assertEqual(["yes", ""], re.findall(r"^mine=(.*)$", printed, re.M), "an srun inside exports nothing by itself")
        for number in (0, 1):
            self.assert_counts(self.expected(30, 1), self.step(jobs[0], number))
        jobs, printed = self.batch(script, *options, env={"LBF_PREDICT": "1"})
        self.assertEqual(2 * 6, len(re.findall(r"^count ", printed, re.M)), printed)
        self.assert_unknown(jobs[0])

    def test_job_array(self):
        program = self.program("steps")
        jobs, printed = self.batch(f"srun {MPI} {program} $((20 + SLURM_ARRAY_TASK_ID))\n", "--lbf-predict",
                                   "--array=1-3", "--ntasks=2", "--nodes=1")
        self.assertEqual(3, len(jobs), printed)
        seen = sorted(self.calls_of(self.step(job))["MPI_Sendrecv"] for job in jobs)
        self.assertEqual([2 * 21, 2 * 22, 2 * 23], seen)
        # As sacct: the array's number is all of its tasks, and each has its own name.
        array = {self.step(job)["array_job"] for job in jobs}
        self.assertEqual(1, len(array), array)
        array = array.pop()
        self.assertIn(array, jobs, "one of the tasks has the array's number")
        listed = self.report("-n", "-P", "-o", "JobID", "-j", str(array))
        self.assertEqual([f"{array}_{task}.0" for task in (1, 2, 3)], listed.out.split(), listed)
        for job in jobs:
            task = self.step(job)["array_task"]
            self.assertEqual(2 * (20 + task), self.calls_of(self.step(job))["MPI_Sendrecv"])
            one = self.report("-n", "-P", "-o", "JobIDRaw", "-j", f"{array}_{task}")
            self.assertEqual([f"{job}.0"], one.out.split(), one)
        # The line at srun's end names that task alone, also where its job has the array's number.
        for task in (1, 2, 3):
            self.assertRegex(printed, rf"lbf-report -j {array}_{task}\.0\b")

    def test_a_job_submitted_from_an_array_s_task_is_no_task(self):
        """sbatch hands SLURM_ARRAY_* on, and slurmstepd takes SPANK's items from there."""
        inner = os.path.join(self.work, "inner.sh")
        with open(inner, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nsrun {MPI} {self.program('steps')} 20\n")
        os.chmod(inner, 0o755)
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        jobs, printed = self.batch(f"sbatch --lbf-predict --job-name={name} --nodes=1 --ntasks=2 "
                                   f"--output={self.work}/inner.out {inner}\n", "--array=5", "--ntasks=1", "--nodes=1")
        step = self.step(self.job_of(name))
        self.assertIsNone(step["array_job"], printed)
        self.assertIsNone(step["array_task"])
        self.assert_unknown(jobs[0], why="it is none of the array's")

    def test_heterogeneous_job(self):
        program = self.program("steps")
        jobs, printed = self.batch(f"srun {MPI} --het-group=1 {program} 20\nsrun {MPI} {program} 30\n",
                                   "--lbf-predict", "--nodes=1", "--ntasks=1", ":", "--nodes=1", "--ntasks=2")
        leader = min(jobs)
        listed = self.report("-n", "-P", "-o", "JobID,State,NTasks", "-j", str(leader))
        self.assertEqual([f"{leader}+0.1|complete|1", f"{leader}+1.0|complete|2"], listed.out.split(), f"{listed}\n{printed}")
        component = self.report("-n", "-P", "-o", "JobIDRaw", "-j", f"{leader}+1")
        self.assertEqual([f"{leader + 1}.0"], component.out.split(), component)

    def test_one_program_over_several_components(self):
        program = self.program("steps")
        jobs, printed = self.batch(f"srun {MPI} --het-group=0,1 {program} 20\n", "--lbf-predict", "--nodes=1", "--ntasks=1", ":",
                                   "--nodes=2", "--ntasks=3")
        leader = min(jobs)
        listed = self.report("-n", "-P", "-o", "JobID,State,NTasks", "-j", str(leader))
        self.assertEqual([f"{leader}+0.0|complete|4"], listed.out.split(), f"{listed}\n{printed}")
        step = self.step(leader)
        self.assertEqual([0, 1, 1, 2], step["node_of_rank"])
        self.assert_counts(self.expected(20, 4), step)
        self.assertIn(f"{leader}+0.0", printed, "srun's last line")

    def test_components_within_an_ordinary_job(self):
        program = self.program("steps")
        command = f"srun {MPI} --nodes=1 --ntasks=1 {program} 20 : --nodes=1 --ntasks=2 {program} 20"
        size = ("--nodes=2", "--ntasks=4")
        _, printed = self.batch(f"timeout --kill-after=5 20 {command}; echo status $?\n", *size)
        if any(words in printed for words in ("status 124", "status 137", "error: mpi/pmi2:")):
            self.skipTest("an MPI program over components of an ordinary job hangs or fails bare here")
        self.assertIn("status 0", printed, "bare")
        jobs, printed = self.batch(f"{command}\n", "--lbf-predict", *size)
        step = self.step(jobs[0])
        self.assertEqual((3, [0, 1, 1]), (step["ranks"], step["node_of_rank"]), printed)
        self.assert_counts(self.expected(20, 3), step)

    def test_two_jobs_at_once_on_the_same_node(self):
        names = [f"lbf-{uuid.uuid4().hex[:12]}" for _ in range(2)]
        processes = [self.start("srun", MPI, "--lbf-predict", "--nodelist=node1", "--nodes=1", "--ntasks=2",
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
