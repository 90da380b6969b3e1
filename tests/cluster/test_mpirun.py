#!/usr/bin/python3
"""Programs that mpirun starts inside a job (docs/plugin.md, "mpirun inside a job"), and lbf-run (docs/lbf-run.md)."""

import os
import re
import shutil
import sys
import uuid

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import BIN, LAYOUT, MPI, TEST_BIN, TRIES, ClusterCase  # noqa: E402

NOMINAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../etc/networks.d/nominal")
MPIRUN = "mpirun --npernode 2 -n 4"
FIRST_RUN = 0xE0000000


class Launched(ClusterCase):
    """What the classes below share; it has no tests."""

    def program(self, name):
        """For mpirun, which is Open MPI's; for srun: srun_program."""
        path = os.path.join(TEST_BIN, name)
        self.assertTrue(os.access(path, os.X_OK), f"{path} is not built")
        return path

    def srun_program(self, name):
        return super().program(name)

    @staticmethod
    def expected(steps, ranks):
        """What the program "steps" calls (tests/cluster/programs/steps.c)."""
        return {"MPI_Sendrecv": steps * ranks, "MPI_Isend": steps * ranks, "MPI_Irecv": steps * ranks,
                "MPI_Waitall": steps * ranks, "MPI_Allreduce": (steps + 9) // 10 * ranks, "MPI_Barrier": ranks}

    def script(self, text):
        path = os.path.join(self.work, f"{uuid.uuid4().hex[:12]}.sh")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path

    def batch(self, text, *options, env=None, status=0, timeout_s=180):
        """sbatch --wait; returns (job, what it printed)."""
        self.batch_name = f"lbf-{uuid.uuid4().hex[:12]}"
        done = self.run_command("sbatch", "--wait", f"--job-name={self.batch_name}", f"--output={self.batch_output()}", *options,
                                self.script(text), env=env, timeout=timeout_s)
        self.assertEqual(status, done.status, f"{done}\n{self.printed()}")
        return self.job_of(self.batch_name), self.printed()

    def batch_output(self):
        return os.path.join(self.work, self.batch_name + ".out")

    def printed(self):
        with open(self.batch_output(), encoding="utf-8") as file:
            return file.read()

    def runs(self, job, number):
        """The job's `number` programs that mpirun started, all over."""
        def over():
            found = [step for step in self.steps(job).values() if step["step"] >= FIRST_RUN]
            return found if len(found) == number and all(s["state"] != "running" for s in found) else None

        return self.wait_for(over, 40, f"job {job} has no {number} finished runs: {self.steps(job)}")

    def assert_whole(self, step, steps, ranks, nodes, node_of_rank, program="steps"):
        self.assertEqual(("complete", ""), (step["state"], step["why_partial"]), step)
        self.assertEqual((ranks, nodes, node_of_rank), (step["ranks"], len(step["nodes"]), step["node_of_rank"]))
        self.assert_counts(self.expected(steps, ranks), step)
        self.assertEqual(1, sum(prediction["kind"] == "self" for prediction in step["predictions"]))
        self.assertEqual(self.program(program), step["command"][0])


class Mpirun(Launched):
    def test_limits_of_the_batch_job(self):
        """sbatch --lbf-limits: of the programs that mpirun starts, and of the script's sruns; what is lbfd's too."""
        program = self.program("steps")
        job, printed = self.batch(f"{MPIRUN} {program} 10\nsrun {MPI} {self.srun_program('steps')} 10\n", "--lbf-predict",
                                  "--lbf-limits=step_cpu_percent=10000,network_limit_kBps=2000", *LAYOUT)
        self.runs(job, 1)
        self.step(job, 1)  # 0 is mpirun's daemon
        for step in self.steps(job).values():
            self.assertIn("step_cpu_percent=10000: more than this lbfd allows; 10 % is used", step["notes"], printed)

    def test_two_nodes(self):
        """Ranks 0 and 1 are children of mpirun in the batch step, 2 and 3 of Open MPI's daemon in a step of its own."""
        job, printed = self.batch(f"{MPIRUN} {self.program('steps')} 50\n", "--lbf-predict", *LAYOUT)
        self.assertEqual(4 * 6, len(re.findall(r"^count ", printed, re.M)), printed)
        step, = self.runs(job, 1)
        self.assert_whole(step, 50, 4, 2, [0, 0, 1, 1])
        self.assertEqual([step["step"]], list(self.steps(job)), "the daemon's step is no step of its own")
        self.assertEqual([f"programs of mpirun: lbf-report -j {job}"], re.findall("lbf: (.*)", printed))
        named = f"{job}.mpirun-{step['step'] - FIRST_RUN:07x}"
        listed = self.report("-n", "-P", "-o", "JobID", "-j", named)
        self.assertEqual([named], listed.out.split(), listed)
        self.assert_no_relays_or_rings_left()

    def test_ranks_in_another_order_than_tasks_would_have(self):
        job, _ = self.batch(f"mpirun --map-by node -n 4 {self.program('steps')} 50\n", "--lbf-predict", *LAYOUT)
        self.assert_whole(self.runs(job, 1)[0], 50, 4, 2, [0, 1, 0, 1])

    def test_asked_for_by_the_environment(self):
        job, _ = self.batch(f"{MPIRUN} {self.program('steps')} 30\n", *LAYOUT, env={"LBF_PREDICT": "1"})
        self.assert_whole(self.runs(job, 1)[0], 30, 4, 2, [0, 0, 1, 1])

    def test_one_node_needs_no_step(self):
        job, _ = self.batch(f"mpirun -n 2 {self.program('steps')} 50\n", "--lbf-predict", "--nodes=1", "--ntasks=2")
        self.assert_whole(self.runs(job, 1)[0], 50, 2, 1, [0, 0])

    def test_fewer_nodes_than_the_job_has(self):
        job, _ = self.batch(f"mpirun --host node2:2 -n 2 {self.program('steps')} 50\n", "--lbf-predict",
                            "--nodelist=node1,node2", *LAYOUT)
        step, = self.runs(job, 1)
        self.assert_whole(step, 50, 2, 1, [0, 0])
        self.assertEqual(["node2"], step["nodes"])

    def test_one_after_the_other_and_side_by_side(self):
        program = self.program("steps")
        job, _ = self.batch(f"{MPIRUN} {program} 20\n{MPIRUN} {program} 30\n"
                            f"mpirun --oversubscribe -n 2 {program} 40 1000 & mpirun --oversubscribe -n 2 {program} 60 1000\n"
                            f"wait\nsrun {MPI} {self.srun_program('steps')} 10\n", "--lbf-predict", *LAYOUT)
        runs = self.runs(job, 4)
        self.assertEqual(["complete"] * 4, [run["state"] for run in runs], [run["why_partial"] for run in runs])
        self.assertEqual([4 * 20, 4 * 30, 2 * 40, 2 * 60],
                         [self.calls_of(run)["MPI_Sendrecv"] for run in sorted(
                             runs, key=lambda run: (run["ranks"] != 4, self.calls_of(run)["MPI_Sendrecv"]))])
        others = [step for step in self.steps(job).values() if step["step"] < FIRST_RUN]
        self.assertEqual([4 * 10], [self.calls_of(step)["MPI_Sendrecv"] for step in others], "and srun's own step")

    def test_salloc(self):
        """mpirun on the submit host: all ranks are on the nodes, behind daemons."""
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        done = self.run_command("salloc", "--lbf-predict", f"--job-name={name}", *LAYOUT, "sh", "-c",
                                f"{MPIRUN} {self.program('steps')} 30")
        self.assertEqual(0, done.status, done)
        self.assertEqual(4 * 6, len(re.findall(r"^count ", done.out, re.M)), done)
        self.assert_whole(self.runs(self.job_of(name), 1)[0], 30, 4, 2, [0, 0, 1, 1])
        line, = done.lbf_lines()
        self.assertRegex(line, rf"lbf-report -j {self.job_of(name)}\.mpirun-[0-9a-f]{{7}}$")

    def test_a_rank_is_killed(self):
        job, _ = self.batch(f"{MPIRUN} {self.program('steps')} 50 0 kill; exit 0\n", "--lbf-predict", *LAYOUT)
        step, = self.runs(job, 1)
        self.assertEqual("partial", step["state"])
        self.assertIn("ended without MPI_Finalize", step["why_partial"])
        self.assert_no_relays_or_rings_left()

    def test_a_script_without_mpi_leaves_nothing(self):
        job, _ = self.batch("hostname | cat >/dev/null\n", "--lbf-predict", "--ntasks=1")
        self.assert_no_relays_or_rings_left()
        self.assert_unknown(job)


class Hydra(Launched):
    """MPICH's mpiexec: its proxies are the tasks of a step, on all nodes. One rank a node: with more MPICH 4.0.2 hangs in
    MPI_Finalize in half of the runs by itself (docs/compatibility.md)."""

    def setUp(self):
        super().setUp()
        self.mpiexec = shutil.which("mpiexec.mpich") or shutil.which("mpiexec.hydra")
        if self.mpiexec is None or not os.path.exists(os.path.join(TEST_BIN, "steps_mpich")):
            self.skipTest("MPICH is not installed (packages mpich, libmpich-dev)")

    def batch(self, text, *options, env=None, status=0):
        """Begins anew where MPICH hangs: both ranks have printed what they print before MPI_Finalize, and nothing follows."""
        for _ in range(TRIES):
            try:
                return super().batch(text, *options, env=env, status=status, timeout_s=60)
            except self.failureException:
                sums = len(re.findall(r"^sum ", self.printed(), re.M))
                if not self.jobs_named(self.batch_name) or sums == 0 or sums % 2 == 1:
                    raise
            print("MPICH hung in MPI_Finalize (docs/compatibility.md)")
            self.end_all_jobs()
        return self.fail(f"MPICH hung in MPI_Finalize {TRIES} times")

    def test_two_nodes(self):
        program = self.program("steps_mpich")
        job, printed = self.batch(f"{self.mpiexec} -ppn 1 -n 2 {program} 50\n", "--lbf-predict", *LAYOUT)
        self.assertEqual(2 * 6, len(re.findall(r"^count ", printed, re.M)), printed)
        step, = self.runs(job, 1)
        self.assert_whole(step, 50, 2, 2, [0, 1], "steps_mpich")
        self.assertEqual([step["step"]], list(self.steps(job)), "the proxies' step is no step of its own")
        self.assertEqual([f"programs of mpirun: lbf-report -j {job}"], re.findall("lbf: (.*)", printed))
        self.assert_no_relays_or_rings_left()

    def test_behind_a_script_and_one_after_the_other(self):
        """Ranks are the proxy's grandchildren; each mpiexec is a run of its own."""
        program = self.program("steps_mpich")
        inside = self.script(f"{program} $1\ntrue\n")
        job, _ = self.batch(f"{self.mpiexec} -ppn 1 -n 2 {inside} 20\n{self.mpiexec} -ppn 1 -n 2 {inside} 30\n", "--lbf-predict",
                            *LAYOUT)
        runs = self.runs(job, 2)
        self.assertEqual([("complete", "", 2, [0, 1])] * 2,
                         [(run["state"], run["why_partial"], run["ranks"], run["node_of_rank"]) for run in runs])
        self.assertEqual([2 * 20, 2 * 30], sorted(self.calls_of(run)["MPI_Sendrecv"] for run in runs))

    def test_one_node(self):
        program = self.program("steps_mpich")
        job, _ = self.batch(f"{self.mpiexec} -n 2 {program} 50\n", "--lbf-predict", "--nodes=1", "--ntasks=2")
        self.assert_whole(self.runs(job, 1)[0], 50, 2, 1, [0, 0], "steps_mpich")


class LbfRun(Launched):
    """Without the plugin: the option is not given, and what lbf-run keeps is in a folder of the user's."""

    def lbf_run(self, *command):
        return f"{BIN}/lbf-run --dir {self.work}/data -- " + " ".join(command)

    def kept(self):
        """The steps in the folder."""
        done = self.run_command(f"{BIN}/lbf-run", "--dir", f"{self.work}/data", "--", "lbf-report", "-a", "--json", "-S",
                                "now-1hours")
        self.assertEqual(0, done.status, done)
        return cluster_case.json.loads(done.out)["steps"]

    def test_without_slurm(self):
        slurm = ("SLURM_CONF", "LBF_SERVER", "SLURM_MPI_TYPE", "LBF_CLUSTER")
        where = os.path.join(self.work, "rings")
        script = self.script(f"echo $LBF_CAPTURE_DIR >{where}\nexec mpirun --oversubscribe -n 4 {self.program('steps')} 30\n")
        done = self.run_command("env", *(f"--unset={name}" for name in slurm), "sh", "-c", self.lbf_run(script))
        self.assertEqual(0, done.status, done)
        self.assertEqual(4 * 6, len(re.findall(r"^count ", done.out, re.M)), done)
        self.assertEqual([], [line for line in done.out.splitlines() if "lbf" in line], "stdout is the command's")
        self.assertRegex(done.err, r"lbf: .*lbf-report -j 1\.mpirun-[0-9a-f]{7}")
        self.assertIn(f"lbf-run: the data are in {self.work}/data", done.err)
        step, = self.kept()
        self.assert_whole(step, 30, 4, 1, [0, 0, 0, 0])
        with open(where, encoding="utf-8") as file:
            rings = file.read().strip()
        self.assertRegex(rings, r"^/dev/shm/lbf-run-\d+-\w+$")
        self.assertFalse(os.path.exists(rings), rings)

    def test_an_lbfd_that_is_behind_completes_what_it_has(self):
        """lbfd stands still until the program has ended: what lbf-run prints at its end is whole all the same."""
        script = self.script("pkill -STOP -P $PPID -x lbfd\n"
                             f"mpirun --oversubscribe -n 4 {self.program('steps')} 10000\n"
                             "(sleep 1; pkill -CONT -P $PPID -x lbfd) &\n")
        done = self.run_command(f"{BIN}/lbf-run", "--dir", f"{self.work}/data", "--networks-dir", NOMINAL, "--overhead", "100", "--",
                                script)
        self.assertEqual(0, done.status, done)
        self.assertRegex(done.err, r"lbf: .*lbf-report -j 1\.mpirun-[0-9a-f]{7}")
        self.assertNotIn("so far", done.err)
        step, = self.kept()
        self.assertEqual("complete", step["state"], step)

    def test_what_a_killed_lbfd_left_is_ended_when_it_is_asked_for(self):
        # As soon as lbfd has heard of the step: mpirun may take long to start.
        script = self.script(f"lbf_run=$PPID\n(for i in $(seq 300); do\n[ -z \"$({BIN}/lbf-report -a -n -S now-1hours)\" ] || break\n"
                             "sleep 0.1\ndone\npkill -KILL -P $lbf_run -x lbfd) >/dev/null 2>&1 &\n"
                             f"mpirun --oversubscribe -n 2 {self.program('steps')} 300 10000\n")
        self.run_command("sh", "-c", self.lbf_run(script))
        step, = self.kept()
        self.assertEqual("partial", step["state"], step)

    def test_srun_outside_of_a_job(self):
        done = self.run_command("sh", "-c", self.lbf_run(f"srun {MPI} --nodes=2 --ntasks=4", self.srun_program("steps"), "30"))
        self.assertEqual(0, done.status, done)
        self.assertEqual(4 * 6, len(re.findall(r"^count ", done.out, re.M)), done)
        step, = self.kept()
        self.assertEqual(("complete", ""), (step["state"], step["why_partial"]), step)
        self.assertEqual([0, 0, 1, 1], step["node_of_rank"])
        self.assert_counts(self.expected(30, 4), step)
        self.assert_unknown(step["job"], why="the site's lbfd hears nothing")
        self.assert_no_relays_or_rings_left()

    def test_inside_a_batch_job(self):
        program = self.program("steps")
        job, printed = self.batch(self.lbf_run(f"{MPIRUN} {program} 30") + "\n"
                                  + self.lbf_run(f"srun {MPI} -n 4 {self.srun_program('steps')} 20") + "\n", *LAYOUT)
        steps = sorted(self.kept(), key=lambda step: step["step"])
        self.assertEqual(["complete"] * 2, [step["state"] for step in steps], f"{steps}\n{printed}")
        self.assertEqual([4 * 20, 4 * 30], [self.calls_of(step)["MPI_Sendrecv"] for step in steps])
        self.assertEqual({job}, {step["job"] for step in steps})
        self.assertEqual([[0, 0, 1, 1]] * 2, [step["node_of_rank"] for step in steps])

    def test_the_exit_status_and_clear_errors(self):
        for command, status, words in (
                (self.lbf_run("mpirun --oversubscribe -n 2", self.program("steps"), "5 0 exit3"), 3, "lbf-run: the data"),
                (self.lbf_run("./is-not-there"), 127, "cannot run ./is-not-there"),
                (self.lbf_run("sbatch", "x.sh"), 2, "put lbf-run into the job"),
                (self.lbf_run("true"), 0, "no parallel MPI program was seen"),
                (f"{BIN}/lbf-run", 2, "lbf-run --help")):
            done = self.run_command("sh", "-c", command)
            self.assertEqual(status, done.status, f"{command}: {done}")
            self.assertIn(words, done.err)

    def test_the_command_is_what_it_would_be_alone(self):
        """Its words, the signals that it ignores, and the rights of a folder that was there."""
        done = self.run_command("sh", "-c", self.lbf_run("echo", "'[4,4]'", "'[]'", "--dir", "'a  b'"))
        self.assertEqual((0, "[4,4] [] --dir a  b\n"), (done.status, done.out), done)
        done = self.run_command("sh", "-c", "trap '' HUP; " + self.lbf_run("sh", "-c", "'kill -HUP $$; kill -HUP $PPID; sleep 1; echo goes on'"))
        self.assertEqual((0, "goes on\n"), (done.status, done.out), done)
        folder = f"{self.work}/shared"
        done = self.run_command("sh", "-c", f"mkdir -m 2750 {folder} && {BIN}/lbf-run --dir {folder} -- true && stat -c %a {folder}")
        self.assertEqual((0, "2750\n"), (done.status, done.out), done)

    def test_who_has_not_the_token_is_refused(self):
        ask = f"{BIN}/lbf-report -a >/dev/null 2>&1; echo status=$?"
        done = self.run_command("sh", "-c", self.lbf_run(
            "sh", "-c", f"'{ask}; LBF_TOKEN={'0' * 64} {BIN}/lbf-report -j 1; LBF_TOKEN=0 {BIN}/lbf-report -j 1'"))
        self.assertIn("status=0", done.out)
        self.assertEqual(2, done.err.count("the token is not this lbfd's"), done)

    def test_a_users_own_task_prolog_still_runs(self):
        prolog = self.script("echo export MINE=1\necho print hello from mine\n")
        done = self.run_command("sh", "-c", self.lbf_run(f"srun {MPI} --ntasks=1", "sh", "-c",
                                                         f"'echo mine=$MINE; {self.program('steps')} 5'"),
                                env={"SLURM_TASK_PROLOG": prolog})
        self.assertEqual(0, done.status, done)
        self.assertIn("mine=1", done.out)
        self.assertIn("hello from mine", done.out)
        self.assertEqual(["complete"], [step["state"] for step in self.kept()])


class JobContainer(Launched):
    """job_container/tmpfs: a job's /tmp and /dev/shm are not those in which slurmstepd makes the rings."""

    def setUp(self):
        super().setUp()
        self.use_own("j", "--job-container", "--pin-nodes")
        # PMIx 5's shared memory lies where slurmstepd is: a program ends in MPI_Init, with or without lbf.
        self.env["PMIX_MCA_gds"] = "hash"

    def test_a_step(self):
        program = self.srun_program("steps")
        bare = self.srun(*LAYOUT, program, "60")
        captured, job = self.predict(*LAYOUT, program, "60")
        self.assert_same_program(bare, captured)
        step = self.step(job)
        self.assert_counts(self.printed_counts(captured), step)
        self.assert_predicts(step)
        self.assert_no_relays_or_rings_left()
        seen = self.srun("--lbf-predict", "--ntasks=1", "sh", "-c", "echo $LBF_CAPTURE_DIR; ls /dev/shm")
        self.assertRegex(seen.out, r"^/proc/\d+/root/dev/shm/lbf-\S+\n$", "the job's own is empty")

    def test_mpirun(self):
        job, _ = self.batch(f"{MPIRUN} {self.program('steps')} 50\n", "--lbf-predict", *LAYOUT)
        self.assert_whole(self.runs(job, 1)[0], 50, 4, 2, [0, 0, 1, 1])
        self.assert_no_relays_or_rings_left()


if __name__ == "__main__":
    cluster_case.main()
