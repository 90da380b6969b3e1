#!/usr/bin/python3
"""lbf-run without Slurm: programs that hide from who looks from outside, small folders for rings, several lbf-runs of one folder.

Run by ctest as `test_lbf_run.py LbfRun.test_name` with LBF_BUILD_DIR and LBF_PROGRAMS set; 77: skipped.
"""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = os.path.abspath(os.environ.get("LBF_BUILD_DIR", "build/release"))
PROGRAMS = os.environ.get("LBF_PROGRAMS", f"{BUILD}/tests/mpi")
MPIRUN = os.environ.get("LBF_MPIRUN", "mpirun.openmpi")
MPICH_RUN = os.environ.get("LBF_MPICH_RUN", "") if os.path.exists(f"{PROGRAMS}/mpich/unusual") else ""
SKIPPED = 77
LBF_RUN = f"{BUILD}/bin/lbf-run"


def may_unshare(*what):
    return subprocess.run(["unshare", *what, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


class LbfRun(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="lbf-run-test-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("LBF_", "SLURM_"))}
        self.env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1",
                        OMPI_MCA_rmaps_base_oversubscribe="1", PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe",
                        OMPI_MCA_btl="vader,self",
                        OMPI_MCA_btl_vader_single_copy_mechanism="none", HOME=self.work)

    def words(self, *command, options=()):
        return [LBF_RUN, "--dir", f"{self.work}/data", *options, "--", *command]

    def lbf_run(self, *command, status=0, options=(), around=()):
        done = subprocess.run([*around, *self.words(*command, options=options)], env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=150, check=False)
        self.assertEqual(status, done.returncode, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return done

    def start(self, *command):
        """An lbf-run that has its lbfd."""
        process = subprocess.Popen(self.words(*command, options=["-q"]), env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        folder = self.wait_for(lambda: self.said_folder(), "no lbfd")
        return process, folder

    def said_folder(self):
        try:
            with open(f"{self.work}/data/lbf-run.lock", encoding="utf-8") as file:
                folder = file.read().strip()
        except FileNotFoundError:
            return ""
        return folder if os.path.exists(f"{folder}/lbfd.sock") else ""

    def wait_for(self, condition, complaint, timeout_s=20):
        until = time.monotonic() + timeout_s
        while not (found := condition()):
            self.assertLess(time.monotonic(), until, complaint)
            time.sleep(0.05)
        return found

    def steps(self):
        return json.loads(self.lbf_run("lbf-report", "-a", "--json", "-S", "now-1hours").stdout)["steps"]

    def assert_captured(self, done, ranks=2):
        for rank in range(ranks):
            self.assertIn(f"rank {rank} has {(rank - 1) % ranks}\n", done.stdout)
        step, = self.steps()
        self.assertEqual(("complete", "", ranks), (step["state"], step["why_partial"], step["ranks"]), step)
        self.assertEqual(2 * ranks, {name: calls for name, calls, *_ in step["calls"]}["MPI_Sendrecv"])
        return step

    def assert_says(self, done, words):
        self.assertEqual([], self.steps())
        line, = [line for line in done.stderr.splitlines() if line.startswith("lbf-run: ")]
        self.assertIn(words, line)

    def unusual(self, *ways, ranks=2, around=()):
        return self.lbf_run(MPIRUN, "-np", str(ranks), *around, f"{PROGRAMS}/unusual", *ways)

    def over_tcp(self):
        """By loopback: 5.0 finds no way from a network card to itself."""
        self.env.update(OMPI_MCA_btl="tcp,self", OMPI_MCA_btl_tcp_if_include="lo")

    def test_an_overwritten_environment_hides_nothing(self):
        self.assert_captured(self.unusual("environ", "wait"))

    def test_a_pid_namespace_hides_nothing(self):
        """The launcher's, with its own /proc: what a ring says is no number of the relay's."""
        unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
        if not may_unshare(*unshare[1:]):
            self.skipTest("no PID namespaces here")
        self.assert_captured(self.lbf_run(*unshare, MPIRUN, "-np", "2", f"{PROGRAMS}/unusual"))

    def test_first_processes_of_two_namespaces_have_a_ring_each(self):
        unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
        if not may_unshare(*unshare[1:]):
            self.skipTest("no PID namespaces here")
        self.over_tcp()  # vader has its files named by PID
        self.assert_captured(self.unusual("wait", around=unshare))

    def test_what_passes_the_preload_is_named(self):
        self.assert_says(self.unusual("handle", "wait"), "unusual has libmpi.so")

    def test_a_replaced_preload_is_named(self):
        self.assert_says(self.unusual("wait", around=["env", "LD_PRELOAD="]), "something replaced LD_PRELOAD")

    def test_a_rank_without_mpi_is_named(self):
        self.assert_says(self.lbf_run(MPIRUN, "-np", "2", "sleep", "2"), "sleep was started as a rank, but has no MPI library loaded")

    def test_a_program_without_a_launcher_is_named(self):
        self.assert_says(self.lbf_run(f"{PROGRAMS}/unusual"), "without mpirun or srun")

    def test_no_program(self):
        """And a library among the words is none that is linked statically."""
        library = glob.glob("/lib/*/libm.so.6")[:1] or ["/lib64/libm.so.6"]
        self.assert_says(self.lbf_run("true", *library), "no parallel MPI program was seen")

    def in_small_shm(self, size, *command, options=()):
        if not may_unshare("--mount", "sh", "-c", "mount -t tmpfs tmpfs /dev/shm"):
            self.skipTest("no mount namespaces here")
        mount = f'mount -t tmpfs -o size={size} tmpfs /dev/shm && exec "$@"'
        return self.lbf_run(*command, options=options, around=["unshare", "--mount", "sh", "-c", mount, "sh"])

    def test_rings_leave_room_in_a_small_shm(self):
        """A container's /dev/shm: eight rings of 8 MiB left nothing for MPICH, whose MPI_Init failed."""
        run, program = (MPICH_RUN, "mpich/unusual") if MPICH_RUN else (MPIRUN, "unusual")
        step = self.assert_captured(self.in_small_shm("64m", run, "-np", "8", f"{PROGRAMS}/{program}"), 8)
        self.assertRegex("\n".join(step["notes"]), r"an event ring has \d+ KiB instead of 8192 KiB")

    def test_without_room_the_program_runs_uncaptured(self):
        self.over_tcp()
        done = self.in_small_shm("700k", MPIRUN, "-np", "8", f"{PROGRAMS}/unusual", "wait")
        self.assertEqual(8, len(re.findall(r"^rank \d has \d$", done.stdout, re.M)))
        self.assertEqual(1, done.stderr.count("lbf: capture is off: no room for the event ring"), done.stderr)
        self.assert_says(done, "the capture of unusual is off")

    def test_rings_where_and_as_large_as_the_user_says(self):
        rings = f"{self.work}/rings"
        os.mkdir(rings)
        done = self.lbf_run(MPIRUN, "-np", "2", "sh", "-c", f'"$0" wait & sleep 1; stat -c %s "$LBF_CAPTURE_DIR"/*.ring; wait',
                            f"{PROGRAMS}/unusual", options=["--ring-dir", rings, "--ring-bytes", "65536"])
        sizes = [int(size) for size in re.findall(r"^\d+$", done.stdout, re.M)]
        self.assertTrue(sizes and all(65536 < size < 2 * 65536 for size in sizes), done.stdout)
        self.assertEqual([], os.listdir(rings))
        for wrong in (["--ring-bytes", "100000"], ["--ring-dir", "rings"]):
            self.lbf_run("true", status=2, options=wrong)
        self.lbf_run("true", status=1, options=["--ring-dir", f"{self.work}/nowhere"])

    def test_who_only_asks_joins_the_one_that_runs(self):
        self.lbf_run(MPIRUN, "-np", "2", f"{PROGRAMS}/unusual")
        running, folder = self.start("sleep", "12")
        self.assertEqual(1, len(self.steps()))
        self.assertTrue(os.path.exists(f"{folder}/lbfd.sock"), "it was joined, not ended")
        other = self.lbf_run("true", status=1)
        self.assertIn("is in use by another lbf-run", other.stderr)
        running.kill()

    def test_what_the_program_asks_for_is_what_is_predicted(self):
        """MPI_Pcontrol(0) and (1): a sleep of a second outside is in no measured and no predicted time."""
        programs = [(MPIRUN, "scope")] + ([(MPICH_RUN, "mpich/scope")] if MPICH_RUN else [])
        for run, program in programs:
            self.lbf_run(run, "-np", "2", f"{PROGRAMS}/{program}", "1")
            step = max(self.steps(), key=lambda step: step["start"])
            self.assertEqual(("complete", ""), (step["state"], step["why_partial"]), step)
            said = [re.fullmatch(r"predicted: the part that the program asked for with MPI_Pcontrol, (\S+) of (\S+) s", note)
                    for note in step["notes"]]
            (part_s, whole_s), = [found.groups() for found in said if found]
            self.assertAlmostEqual(float(part_s), step["measured_s"], delta=0.01 * step["measured_s"])
            self.assertGreaterEqual(float(whole_s), 1)
            self.assertLess(step["measured_s"], 0.5)
            self.assertEqual(1, step["cost"]["seen_share"])
            own = step["predictions"][0]
            self.assertLess(own["predicted_s"], 0.5)
            self.assertAlmostEqual(own["measured_at_progress_s"], step["measured_s"], delta=0.01)

    def test_what_a_killed_one_leaves_is_removed_by_the_next(self):
        running, folder = self.start("sleep", "12")
        running.send_signal(signal.SIGKILL)
        running.wait()
        self.assertTrue(os.path.exists(f"{folder}/token"))
        self.wait_for(lambda: not os.path.exists(f"{folder}/lbfd.sock"), "its lbfd goes on")
        self.env["HOME"] = f"{self.work}/other"  # another folder's lbf-run does it as well
        subprocess.run([LBF_RUN, "-q", "--", "true"], env=self.env, check=True)
        self.assertFalse(os.path.exists(folder))


if __name__ == "__main__":
    if shutil.which(MPIRUN) is None:
        print(f"skipped: {MPIRUN} is not installed")
        sys.exit(SKIPPED)
    result = unittest.main(exit=False, verbosity=2).result
    sys.exit(SKIPPED if result.skipped and result.wasSuccessful() else not result.wasSuccessful())
