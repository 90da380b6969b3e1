#!/usr/bin/python3
"""An archive that EZTrace writes of a program of known messages, beside the capture's trace of the same program.

Run by ctest as `test_eztrace.py Eztrace.test_name` with LBF_BUILD_DIR, LBF_PROGRAMS and LBF_MPIRUN set; 77: skipped, EZTrace
(Debian package eztrace) is not installed.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.abspath(os.environ.get("LBF_BUILD_DIR", "build/release"))
PROGRAM = os.path.join(os.environ.get("LBF_PROGRAMS", f"{BUILD}/tests/mpi"), "known_messages")
MPIRUN = os.environ.get("LBF_MPIRUN", "mpirun.openmpi")
SKIPPED = 77
LBF_TRACE = f"{BUILD}/bin/lbf-trace"
LBF_RUN = f"{BUILD}/bin/lbf-run"
# Of known_messages.c: a ring of 100 bytes, five rings of 1000 to 1004.
MESSAGES = 4 * 6
MESSAGE_BYTES = 4 * (100 + sum(range(1000, 1005)))
COLLECTIVE_BYTES = {"MPI_Bcast": 64, "MPI_Allreduce": 64, "MPI_Reduce": 32, "MPI_Gather": 16, "MPI_Alltoall": 24}


class Eztrace(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="lbf-eztrace-test-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("LBF_", "SLURM_"))}
        self.env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1",
                        OMPI_MCA_rmaps_base_oversubscribe="1", PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe",
                        OMPI_MCA_btl="vader,self",
                        OMPI_MCA_btl_vader_single_copy_mechanism="none", HOME=self.work)

    def run_command(self, *command, status=0):
        done = subprocess.run(command, env=self.env, cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=150, check=False)
        self.assertEqual(status, done.returncode, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return done

    def traced(self, *arguments):
        """The anchor file of what EZTrace wrote."""
        self.run_command(MPIRUN, "-np", "4", "eztrace", "-t", "openmpi", "-o", self.work, PROGRAM, *arguments)
        anchor, = glob.glob(f"{self.work}/**/*.otf2", recursive=True)
        return anchor

    def info(self, trace):
        return json.loads(self.run_command(LBF_TRACE, "info", trace, "--json").stdout)

    def lbf_run_done(self, *command):
        return self.run_command(LBF_RUN, "-q", "--overhead", "100", "--dir", f"{self.work}/data", "--", *command)

    def lbf_run(self, *command):
        return self.lbf_run_done(*command).stdout

    @staticmethod
    def predicted_s(run, trace, target):
        return json.loads(run(f"{BUILD}/bin/lbf-whatif", trace, *target, "--json").stdout)["predictions"][0]["lbf_s"]

    def captured(self):
        """The job of the capture."""
        self.lbf_run(MPIRUN, "-np", "4", PROGRAM)
        return str(json.loads(self.lbf_run("lbf-report", "-a", "--json", "-S", "now-1hours"))["steps"][-1]["job"])

    def assert_same(self, ours, theirs):
        for key in ("ranks", "messages", "message_bytes", "receives"):
            self.assertEqual(ours[key], theirs[key], key)
        for call, per_rank in COLLECTIVE_BYTES.items():
            self.assertEqual(4 * per_rank, theirs["calls"][call]["bytes"], call)
            self.assertEqual(ours["calls"][call]["bytes"], theirs["calls"][call]["bytes"], call)

    def test_messages_are_those_of_the_capture(self):
        anchor = self.traced()
        imported = self.run_command(LBF_TRACE, "import", anchor, "-o", "t.lbfw")
        if "version 2.0" in self.run_command("eztrace", "--version").stdout:  # 2.1 has all records
            self.assertIn("requests have no record of their end", imported.stderr)
        theirs = self.info("t.lbfw")
        self.assertEqual((4, MESSAGES, MESSAGE_BYTES), (theirs["ranks"], theirs["messages"], theirs["message_bytes"]))
        job = self.captured()
        ours = json.loads(self.lbf_run(LBF_TRACE, "info", job, "--json"))
        self.assert_same(ours, theirs)
        # Our own export of the captured run.
        target = ("--nodes", "4", "--cores", "1", "--network", "zero")
        self.lbf_run(LBF_TRACE, "export", job, "--format", "otf2", "-o", f"{self.work}/exported", *target)
        self.run_command(LBF_TRACE, "import", "exported/traces.otf2", "-o", "e.lbfw")
        exported = self.info("e.lbfw")
        self.assert_same(ours, exported)
        self.assertEqual(ours["collectives"], exported["collectives"])
        # Ten times 3 ms of work, by the clock: what other programs took of it is in EZTrace's archive, and in no export.
        self.assertGreater(self.predicted_s(self.run_command, anchor, target), 0.03)
        self.assertAlmostEqual(self.predicted_s(self.lbf_run_done, job, target),
                               self.predicted_s(self.run_command, "exported/traces.otf2", target), delta=1e-5)

    def test_what_is_not_in_the_archive_is_named(self):
        done = self.run_command(LBF_TRACE, "import", self.traced("sendrecv"), "-o", "t.lbfw", status=1)
        self.assertIn("(MPI_Sendrecv): has no record of its messages", done.stderr)


if __name__ == "__main__":
    if shutil.which("eztrace") is None:
        print("skipped: EZTrace is not installed (Debian package eztrace)")
        sys.exit(SKIPPED)
    unittest.main()
