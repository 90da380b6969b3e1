#!/usr/bin/python3
"""lbf-advise against a live lbfd and a real Slurm: a job's advice can be typed, and --when asks Slurm."""

import json
import os
import sys
import time
import uuid

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import BIN, MPI, OTHER_USER, ClusterCase  # noqa: E402

NETWORKS = os.path.join(cluster_case.HERE, "networks.d")


class AdviseCase(ClusterCase):
    """What the classes below share; it has no tests."""
    nodes_needed = 4

    def advise(self, *arguments, **options):
        env = {"XDG_CACHE_HOME": self.work, **options.pop("env", {})}
        return self.run_command(os.path.join(BIN, "lbf-advise"), *map(str, arguments), "--networks-dir", NETWORKS, env=env,
                                **options)

    def advice(self, *arguments, **options):
        done = self.advise(*arguments, "--json", **options)
        self.assertEqual(0, done.status, done)
        return json.loads(done.out)

    def assert_refused(self, said, *arguments, **options):
        done = self.advise(*arguments, **options)
        self.assertEqual((1, ""), (done.status, done.out), done)
        self.assertIn(said, done.err)
        self.assertEqual(1, len(done.err.splitlines()), done.err)

    def predicted(self, *arguments):
        done, job = self.predict(*arguments, self.program("steps"), "60")
        self.assertEqual(0, done.status, done)
        return job, self.step(job)


class AdviseOfAJob(AdviseCase):
    def test_its_flags_start_the_program(self):
        """The nodes come from Slurm, the run from lbfd; what --flags prints is what srun takes."""
        job, step = self.predicted("--nodes=4", "--ntasks=4")
        advice = self.advice("-j", f"{job}.0", "--network", "test-fast,test-slow")
        self.assertEqual(("Slurm", 4, True), (advice["cluster"], advice["ranks"], advice["now"]["is_what_ran"]))
        self.assertAlmostEqual(step["measured_s"], advice["now"]["measured_s"], 6)
        self.assertIn("self_error_percent", advice)
        self.assertLessEqual({"debug"}, {one["partition"] for one in advice["candidates"]})
        self.assertEqual({"test-fast", "test-slow"}, {one["network"] for one in advice["candidates"]})
        # Messages of 4 ranks on two nodes of two processors: whatever is advised, srun gives it.
        for placement in ("block", "cyclic", "map"):
            flags = self.advise("-j", f"{job}.0", "--placement", placement, "--nodes", "2", "--hostfile", f"{self.work}/hosts",
                                "--flags")
            self.assertEqual(0, flags.status, flags)
            name = f"lbf-{uuid.uuid4().hex[:12]}"
            run = self.srun(f"--job-name={name}", *flags.out.split(), self.program("steps"), "3")
            self.assertEqual(0, run.status, f"{flags.out}: {run}")

    def test_what_ran_is_predicted_as_lbfd_does(self):
        """Also where ranks share processors: how many there were lbfd knows."""
        for more in ((), ("--overcommit",)):
            job, step = self.predicted("--nodes=2", f"--ntasks={8 if more else 4}", *more)
            own = next(one for one in step["predictions"] if one["kind"] == "self")
            now = self.advice("-j", f"{job}.0", "--overcommit")["now"]
            self.assertAlmostEqual(1, now["lbf_s"] / own["predicted_s"], 6)
            self.assertEqual(bool(more), "--overcommit" in now["flags"], now["flags"])

    def test_a_job_that_runs_still_and_jobs_that_nobody_knows(self):
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        running = self.start("srun", MPI, "--lbf-predict", f"--job-name={name}", "--nodes=2", "--ntasks=4",
                             self.program("steps"), "400000", "1000")  # with pauses: a storm would be recorded in windows
        job = self.job_of(name)
        self.running_step(job, enough_events=2000)
        advice = self.advice("-j", f"{job}.0")
        self.assertTrue(advice["partial"], "it is not over")
        self.assertIn("partial", " ".join(advice["notes"]))
        self.run_command("scancel", str(job))
        self.finish(running)
        self.assert_refused("999999", "-j", "999999.0")

    def test_a_job_of_another_user(self):
        if not self.root:
            self.skipTest("needs root, to run commands as two ordinary users")
        job, _ = self.predicted("--nodes=2", "--ntasks=4")
        self.assert_refused(str(job), "-j", f"{job}.0", user=OTHER_USER)


class When(AdviseCase):
    """Nodes are whole in the partition `alone`: what is held is held."""

    def setUp(self):
        super().setUp()
        if not self.root:
            self.skipTest("needs root, to make a partition")
        self.partition = f"alone{uuid.uuid4().hex[:6]}"
        self.scontrol("create", f"PartitionName={self.partition}", "Nodes=ALL", "OverSubscribe=EXCLUSIVE", "State=UP")
        self.addCleanup(self.scontrol, "delete", f"PartitionName={self.partition}", check=False)
        # 4 ranks that compute for 60 s each: 60 s on 4 or 2 nodes of 2 processors, 120 s on one.
        self.trace = os.path.join(self.work, "independent.lbf")
        with open(self.trace, "w", encoding="utf-8") as out:
            out.write("lbf-trace 1\nranks 4\n" + "".join(f"{rank} compute 60\n{rank} exit 0\n" for rank in range(4)))
        self.usual = (self.trace, "--partition", self.partition, "--nodes", "1,2", "--overcommit", "--network", "test-fast",
                      "--ran-nodes", "2")

    def scontrol(self, *words, check=True):
        done = self.run_command("scontrol", *words, user=None)
        if check:
            self.assertEqual(0, done.status, done)

    def hold(self, nodes, minutes):
        """A job of somebody else's that has `nodes` whole nodes for so long."""
        name = f"hold{uuid.uuid4().hex[:8]}"
        holder = self.start("srun", f"--partition={self.partition}", f"--nodes={nodes}", f"--time={minutes}",
                            f"--job-name={name}", "sleep", "600", user=OTHER_USER)
        job = self.job_of(name)

        def held():
            return self.run_command("squeue", "--noheader", f"--jobs={job}", "--format=%T").out.strip() == "RUNNING"

        self.wait_for(held, 20, f"job {job} does not start")

        def let_go():
            self.run_command("scancel", str(job), user=None)
            self.finish(holder)

        self.addCleanup(let_go)

    def chosen(self, advice):
        self.assertIsNotNone(advice["advice"], advice.get("why_no_advice"))
        return advice["candidates"][advice["advice"]["candidate"]]

    def test_fewer_nodes_now_before_more_nodes_later(self):
        asked = self.run_command("srun", f"--partition={self.partition}", "-N1", "-n4", "--overcommit", "--test-only", "true")
        if asked.status != 0:  # 24.11 starts no such job either
            self.skipTest(f"this Slurm has no 4 tasks on a node of 2 processors: {asked.err}")
        idle = self.advice(*self.usual, "--when")
        self.assertIsNone(idle["advice"], "on idle nodes two nodes end first: what ran")
        self.assertAlmostEqual(60, idle["candidates"][0]["lbf_s"], 3)
        self.assertLess(idle["candidates"][0]["start"] - time.time(), 10)
        self.hold(3, 10)
        self.assertIsNone(self.advice(*self.usual)["advice"], "by its time alone two nodes are as good as it gets")
        advice = self.advice(*self.usual, "--when")
        chosen = self.chosen(advice)
        self.assertEqual(1, chosen["nodes"])
        self.assertAlmostEqual(120, chosen["lbf_s"], 3)
        now = time.time()
        self.assertLess(chosen["start"] - now, 10, "the free node")
        self.assertGreater(advice["now"]["start"] - now, 400, "when the holder's ten minutes are over")
        self.assertLess(advice["now"]["start"] - now, 700)
        self.assertAlmostEqual(chosen["end"], chosen["start"] + 120, 1)
        # 120 s * 1.08 * 1.25 + 60 s
        self.assertIn("--time=4", advice["advice"]["flags"])
        # And so it is typed.
        flags = self.advise(*self.usual, "--when", "--flags").out.split()
        run = self.run_command("srun", *flags, "hostname", timeout=30)
        self.assertEqual((0, 4), (run.status, len(run.out.splitlines())), run)
        text = " ".join(self.advise(*self.usual, "--when").out.split())
        self.assertIn("it can start now; 2 nodes, block would run 50 % shorter, but starts at", text)

    def test_slurm_refuses_in_its_own_words(self):
        listed = self.advice(*self.usual)  # the inventory is kept from here on
        self.assertEqual("Slurm", listed["cluster"])
        self.scontrol("delete", f"PartitionName={self.partition}")
        advice = self.advice(*self.usual, "--when")
        self.assertEqual(0, advice["when"]["starts_known"])
        self.assertRegex(" ".join(one.get("why_no_start", "") for one in advice["candidates"]), "(?i)invalid partition")
        # Asked anew, Slurm does not name it any more.
        self.assert_refused(f"no partition '{self.partition}'", *self.usual, "--refresh")

    def test_a_partition_that_is_not_for_everybody(self):
        self.scontrol("update", f"PartitionName={self.partition}", "AllowGroups=root")
        asked = self.run_command("srun", f"--partition={self.partition}", "-N2", "-n4", "--test-only", "true")
        if asked.status == 0:  # 24.11 refuses when the job is submitted, not when it is asked
            self.skipTest(f"this Slurm names a start all the same: {asked.err}")
        advice = self.advice(*self.usual, "--when")
        words = " ".join(one.get("why_no_start", "") for one in advice["candidates"])
        self.assertRegex(words, "(?i)group.*not permitted")

    def test_longer_than_the_partition_allows(self):
        # Slurm itself would name a start: it does not enforce the limit when a job is submitted.
        self.scontrol("update", f"PartitionName={self.partition}", "MaxTime=10")
        done = self.advise(*self.usual, "--when", "--time", "1-00:00:00")
        self.assertEqual(0, done.status, done)
        said = " ".join(done.out.split())
        self.assertIn("its time limit (1440 minutes) is above the partition's (10 minutes)", said)
        self.assertIn("No start is known", said)


if __name__ == "__main__":
    cluster_case.main()
