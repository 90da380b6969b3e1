"""What the cluster tests share: the cluster that a fixture started, jobs on it, and what lbf says about them.

Run by ctest as `test_X.py Case.test_name` with LBF_BUILD_DIR set; exit status 77 is ctest's "skipped".
"""

import glob
import hashlib
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

from harness.slurm import mpi_type

HERE = os.path.dirname(os.path.abspath(__file__))
CLUSTER = os.path.join(HERE, "cluster")
PROGRAMS = os.path.join(HERE, "programs")
BUILD_DIR = os.path.abspath(os.environ.get("LBF_BUILD_DIR", "build/release"))
BIN = os.path.join(BUILD_DIR, "bin")
TEST_BIN = os.path.join(BUILD_DIR, "tests", "cluster")
MPI = f"--mpi={mpi_type()}"  # of srun
HAS_PMIX = MPI == "--mpi=pmix"
NODES = 4
CPUS_PER_NODE = 2
USER, OTHER_USER = "lbftest1", "lbftest2"
LAYOUT = ("--nodes=2", "--ntasks=4")
SKIPPED = 77
# What ends or hangs a run before it begins and is neither lbf's nor the test's (docs/cluster-harness.md), in its own words.
STARTING_FAULTS = re.compile(
    # Open MPI 4.1's jump to a handler that is not there yet: address 0, and no frame behind it. Other processes' lines may
    # come between.
    r"Signal: Segmentation fault.*\n(?:.*\n)*?(\[\S+\]) Failing at address: \(nil\)\n(?:(?!\1).*\n)*\1 \[ 0\] \S*libc\.so.*\n"
    r"(?:(?!\1).*\n)*\1 \*\*\* End of error message"
    # Open MPI 5.0, at a message that comes inside MPI_Init.
    r"|Caught signal 11 \(Segmentation fault(?:.*\n)+?.*\(mca_pml_ob1_recv_frag_callback_match\+(?:.*\n)+?.*\(ompi_mpi_init\+"
    # Slurm's PMIx plugin takes another node's credential for a stranger's.
    r"|mpi/pmix_v\d: _auth_cred_verify: .*Invalid authentication credential")
TRIES = 4  # of a run that ends so
STEP_TIMEOUT_S = 40.0
ENDED_BADLY = ("FAILED", "CANCELLED", "NODE_FAIL", "BOOT_FAIL", "TIMEOUT", "OUT_OF_MEMORY", "LAUNCH_FAILED")


def cluster_name(purpose=None):
    """A name of this build folder's own, so that two checkouts can be tested at once. `purpose`: a cluster that a test starts for
    itself; else one of the two that the fixtures start, t and u."""
    return (purpose or os.environ.get("LBF_TEST_CLUSTER", "t")) + hashlib.sha256(BUILD_DIR.encode()).hexdigest()[:8]


def cluster(*arguments, check=True, env=None):
    done = subprocess.run([CLUSTER, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180,
                          env={**os.environ, **(env or {})}, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"cluster {' '.join(arguments)}: {done.stderr.strip()}")
    return done


def environment_of(name):
    """The variables that `cluster env NAME` exports, on top of an environment with nothing of Slurm or lbf in it."""
    shell = subprocess.run(["env", "-i", "PATH=" + os.environ["PATH"], "HOME=/tmp", "LANG=C.UTF-8", "bash", "-c",
                            f'eval "$({CLUSTER} env {name})" && env -0'], capture_output=True, text=True, check=True)
    pairs = (entry.split("=", 1) for entry in shell.stdout.split("\0") if "=" in entry)
    return {key: value for key, value in pairs if key not in ("_", "SHLVL", "PWD")}


def may_be_skipped():
    """Why no Slurm cluster can run here, or ''."""
    for command, package in (("slurmctld", "slurmctld"), ("slurmd", "slurmd"), ("srun", "slurm-client"),
                             ("munge", "munge")):
        if shutil.which(command, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
            return f"{command} is not installed (package {package})"
    return ""


def open_mpi_major():
    said = subprocess.run(["mpirun.openmpi", "--version"], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"\bv?(\d+)\.\d+\.\d+", said).group(1))


class Done:
    """A command that ended: status, stdout, stderr."""

    any_could_not_start = False  # any of this process's commands and scripts

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err
        Done.any_could_not_start |= self.could_not_start()

    LBF_LINE = re.compile(r"^(srun: |sbatch: |salloc: |slurmstepd-\S+: )?(error: )?lbf: ")

    def lbf_lines(self):
        return [line for line in self.err.splitlines() if self.LBF_LINE.match(line)]

    def other_err(self):
        """stderr as it would be without lbf; the times and ids in Slurm's own lines are neutral."""
        lines = [line for line in self.err.splitlines() if not self.LBF_LINE.match(line)]
        text = "\n".join(sorted(lines))
        text = re.sub(r"StepId=\d+\.\d+|JobId=\d+|STEP \d+\.\d+|job \d+|\d{4}-\d\d-\d\dT[\d:.]+", "#", text)
        return re.sub(r"(?i)pid \d+|\[\w+:\d+\]|0x[0-9a-f]+", "#", text)

    def could_not_start(self):
        return bool(STARTING_FAULTS.search(self.err))

    def __repr__(self):
        return f"exit status {self.status}\nstdout: {self.out[-3000:]}\nstderr: {self.err[-3000:]}"


class ClusterCase(unittest.TestCase):
    """A cluster that many tests use one after the other (tests/cluster/fixture); lbfd runs when a test begins."""

    nodes_needed = 2
    needs_lbf = True

    def setUp(self):
        reason = may_be_skipped()
        if reason:
            self.skipTest(reason)
        self.use(cluster_name())
        if self.nodes_needed > self.facts["nodes"]:
            self.skipTest(f"needs {self.nodes_needed} nodes, and this machine allows no namespaces: one node only")
        self.root = os.getuid() == 0
        # A folder that ordinary users may write and that every node sees (each node has a /tmp of its own).
        self.work = tempfile.mkdtemp(prefix="lbf-test-", dir="/var/tmp")
        os.chmod(self.work, 0o1777)
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.addCleanup(self.read_what_jobs_printed)
        self.end_all_jobs()  # of a test that was itself ended
        self.addCleanup(self.end_all_jobs, dict(self.env))  # also where the test goes on with a cluster of its own
        self.lbfd("start")

    def read_what_jobs_printed(self):
        """A script's srun may be the one that could not start; what is printed here is seen where the test failed."""
        for path in sorted(glob.glob(os.path.join(self.work, "*out"))):
            with open(path, encoding="utf-8", errors="replace") as file:
                done = Done(0, "", file.read())
            print(f"{os.path.basename(path)}, its end:\n{done.err[-2000:]}")

    # -- the cluster
    def end_all_jobs(self, env=None, timeout_s=30):
        """No test's job runs beside the next test: the tests have the cluster one after the other."""
        def jobs():
            return self.run_command("squeue", "--noheader", "--states=PENDING,RUNNING,SUSPENDED", "--format=%A", user=None,
                                    env=env).out.split()

        left = jobs()
        if left:
            self.run_command("scancel", *left, user=None, env=env)
            self.wait_for(lambda: not jobs(), timeout_s, lambda: f"jobs {jobs()} do not end")

    def use(self, name):
        """From now on jobs, nodes and lbfd are those of the cluster `name`, which is up."""
        self.name = name
        self.env = environment_of(name)
        with open(self.state("cluster.json"), encoding="utf-8") as file:
            self.facts = json.load(file)

    def use_own(self, purpose, *options, nodes=2, env=None):
        """The same, of a cluster that only this test uses; `options` of `cluster up`. Skips where an option says why not."""
        name = cluster_name(purpose)
        up = cluster("up", name, "--nodes", str(nodes), "--cpus-per-node", str(CPUS_PER_NODE), "--lbf", BUILD_DIR,
                     "--networks", os.path.join(HERE, "networks.d"), "--lbfd-setting", "stream_timeout_s=8",
                     "--lbfd-setting", 'network="test-fast"', *options, *(["--users"] if self.root else []), check=False, env=env)
        if any(f" {option}: " in up.stderr for option in options):
            self.skipTest(up.stderr.strip())
        self.assertEqual(0, up.returncode, up.stderr)
        self.addCleanup(cluster, "down", name)
        self.use(name)

    def state(self, *parts):
        return os.path.join(os.environ.get("LBF_CLUSTER_ROOT", "/var/tmp"), f"lbf-cluster-{self.name}", *parts)

    def lbfd(self, action):
        cluster("lbfd", self.name, action)

    def needs_pmix(self):
        if not HAS_PMIX:
            self.skipTest("this Slurm has no PMIx, and Debian has the program with Open MPI only")

    def program(self, name):
        """For srun: where Slurm has no PMIx, MPICH's build of it."""
        path = os.path.join(TEST_BIN, "" if HAS_PMIX else "mpich", name)
        self.assertTrue(os.access(path, os.X_OK), f"{path} is not built")
        return path

    def command_as(self, user, command):
        if user is None or not self.root:
            return list(command)
        pwd.getpwnam(user)
        return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *command]

    def run_command(self, *command, user=USER, timeout=120, env=None, cwd=None):
        """As an ordinary user, in a process group of its own, so that a time-out leaves nothing behind."""
        process = subprocess.Popen(self.command_as(user, command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env={**self.env, **(env or {})},
                                   cwd=cwd or self.work, start_new_session=True)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            done = Done(process.returncode, out, err)
            if done.could_not_start():  # the other ranks wait for one that is gone
                return done
            self.fail(f"{' '.join(command)}: no end in {timeout} s\nstdout: {out[-2000:]}\nstderr: {err[-2000:]}")
        return Done(process.returncode, out, err)

    def start(self, *command, user=USER, env=None):
        """Starts a command in the background; finish() waits for it."""
        process = subprocess.Popen(self.command_as(user, command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env={**self.env, **(env or {})}, cwd=self.work,
                                   start_new_session=True)

        def reap():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            if not process.stderr.closed:  # the test ended before finish(): was it a run that could not start?
                out, err = process.communicate()
                print(f"in the background: {' '.join(command)}: {Done(process.returncode, out, err)}")

        self.addCleanup(reap)
        return process

    def finish(self, process, timeout=120):
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            self.fail(f"no end in {timeout} s\nstdout: {out[-2000:]}\nstderr: {err[-2000:]}")
        return Done(process.returncode, out, err)

    def srun(self, *arguments, tries=TRIES, **options):
        """`tries`: of a run that could not start, captured or not."""
        for _ in range(tries):
            done = self.run_command("srun", MPI, *arguments, **options)
            if not done.could_not_start():
                break
            print(f"could not start (docs/cluster-harness.md): srun {' '.join(arguments)}")
        return done

    def predict(self, *arguments, **options):
        """srun --lbf-predict under a job name of its own; returns (Done, job number)."""
        name = f"lbf-{uuid.uuid4().hex[:12]}"
        done = self.srun("--lbf-predict", f"--job-name={name}", *arguments, **options)
        return done, self.job_of(name)

    def jobs_named(self, name):
        listing = subprocess.run(["scontrol", "--oneliner", "show", "jobs"], capture_output=True, text=True,
                                 env=self.env, check=False).stdout
        return [int(match[1]) for match in re.finditer(r"^JobId=(\d+) .*?\bJobName=(\S+)", listing, re.M)
                if match[2] == name]

    def job_of(self, name, timeout_s=10):
        """The newest one."""
        return max(self.wait_for(lambda: self.jobs_named(name), timeout_s, f"Slurm knows no job named {name}"))

    def wait_for(self, condition, timeout_s, complaint):
        """The first true value of condition(). `complaint`: text, or a function that says how it stands at the end."""
        deadline = time.monotonic() + timeout_s
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                self.fail(f"{complaint() if callable(complaint) else complaint} (waited {timeout_s:g} s)")
            time.sleep(0.2)

    def pids_of(self, program, node=None):
        """Processes of the cluster's nodes whose program file is named `program`."""
        found = []
        for name in [node] if node else [f"node{i}" for i in range(1, self.facts["nodes"] + 1)]:
            if self.facts["namespaces"]:
                listing = subprocess.run(["ip", "netns", "pids", f"lbf-{self.name}.{name}"], capture_output=True,
                                         text=True, check=False).stdout.split()
            else:
                listing = [entry for entry in os.listdir("/proc") if entry.isdigit()]
            for pid in listing:
                try:
                    if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == program:
                        found.append(int(pid))
                except OSError:
                    continue
        return found

    def assert_no_relays_or_rings_left(self, timeout_s=15):
        nodes = [f"node{i}" for i in range(1, self.facts["nodes"] + 1)]

        def rings():
            return [path for node in nodes
                    for path in cluster("exec", self.name, node, "find", "/dev/shm", "-name", "*lbf*").stdout.split()]

        self.wait_for(lambda: not self.pids_of("lbf-relay"), timeout_s, "relays are still running")
        self.wait_for(lambda: not rings(), timeout_s, f"rings are left: {rings()}")

    # -- what lbf says
    def report(self, *arguments, user=USER):
        return self.run_command(os.path.join(BIN, "lbf-report"), *arguments, user=user)

    def steps(self, job, user=USER):
        """The STEP objects (docs/formats/http-v1.md) of a job, by step number."""
        done = self.report("-j", str(job), "--json", user=user)
        if done.status != 0:
            return {}
        return {step["step"]: step for step in json.loads(done.out)["steps"]}

    def assert_unknown(self, job, user=USER, why=""):
        """lbfd answers, and has no step of the job: steps() is empty also where lbf-report fails."""
        done = self.report("-j", str(job), "--json", user=user)
        self.assertEqual(1, done.status, f"{why}: {done}")
        self.assertIn("lbfd knows no such step", done.err)

    def steps_by_restart(self, job):
        """The STEP objects of a job that has one step in each of its runs, by restart; those that are over."""
        done = self.report("-j", str(job), "--json")
        steps = json.loads(done.out)["steps"] if done.status == 0 else []
        return {step["restart"]: step for step in steps if step["state"] != "running"}

    def shown_job(self, job):
        """What scontrol says of a job, by key ("JobState"); its own complaint under "scontrol" where it does not know it."""
        done = self.run_command("scontrol", "--oneliner", "show", "job", str(job))
        return dict(re.findall(r"(\S+?)=(\S*)", done.out)) if done.status == 0 else {"scontrol": done.err.strip()}

    def start_again(self, job, timeout_s=60):
        """Lets a requeued job start now, not after the two minutes (AuthInfo's cred_expire) that slurmctld has it wait.

        Only when the first run is over, whose end sets the begin time, and in a later second than the one in which that
        run was told to end. Slurm waits for a reason (batch_requeue_fini in job_mgr.c): a node refuses a batch job whose
        credential is not newer, in whole seconds, than the order to end the job (slurm_cred_revoked), and slurmctld then
        ends the job for good ("Killing non-startable batch JobId")."""
        self.wait_for(lambda: self.shown_job(job).get("JobState") != "COMPLETING", timeout_s,
                      f"the first run of job {job} does not end")
        time.sleep(1)
        if self.shown_job(job).get("JobState") == "PENDING":
            started = self.run_command("scontrol", "update", f"JobId={job}", "StartTime=now")
            self.assertEqual(0, started.status, started)

    def both_restarts(self, job, timeout_s=150):
        """steps_by_restart() of a job that was requeued once, when its second run is over, too."""
        self.start_again(job)
        found, shown = {}, {}

        def both():
            shown.clear()
            shown.update(self.shown_job(job))  # before what lbf says: when the job is over, so is the step
            found.clear()
            found.update(self.steps_by_restart(job))
            return len(found) == 2 or shown.get("JobState") in ENDED_BADLY

        self.wait_for(both, timeout_s, lambda: f"job {job} has no two restarts; lbf-report knows {sorted(found)}; {shown}")
        self.assertEqual(2, len(found), f"job {job} ended; lbf-report knows {sorted(found)}; {shown}")
        return found

    def running_step(self, job, step=0, enough_events=1, enough_s=0.0):
        """Waits until lbfd has events of a step that is under way, and has replayed so many seconds of it."""
        def heard():
            seen = self.steps(job).get(step, {})
            replayed_s = max((one["predicted_s"] or 0 for one in seen.get("predictions", [])), default=0)
            return seen if seen.get("events", 0) >= enough_events and replayed_s >= enough_s else None

        def how_it_stands():
            done = self.report("-j", str(job), "--json")
            said = done.out if done.status == 0 else done.err
            return (f"lbfd has not {enough_events} events and {enough_s} s of the running step {job}.{step}; the job is "
                    f"{self.shown_job(job)}; relays: {self.pids_of('lbf-relay')}; lbf-report says {said[:2000]}")

        return self.wait_for(heard, 30, how_it_stands)

    def states_while(self, process, job, step=0):
        """All the states in which lbfd has the step until the process, which finish() then waits for, is over."""
        seen = set()
        while process.poll() is None:
            seen |= {one["state"] for number, one in self.steps(job).items() if number == step}
            time.sleep(0.5)
        return seen

    def step(self, job, step=0, state="complete", user=USER, timeout_s=STEP_TIMEOUT_S):
        """One step as soon as lbfd says that it is over; fails if it ends in another state than `state`."""
        seen = {}

        def over():
            seen.clear()
            seen.update(self.steps(job, user=user).get(step, {}))
            return seen.get("state") in ("complete", "partial")

        self.wait_for(over, timeout_s, lambda: f"step {job}.{step} does not become complete; lbf-report knows {seen}")
        if state:
            self.assertEqual(state, seen["state"], f"step {job}.{step}: {seen.get('why_partial')}")
        return dict(seen)

    @staticmethod
    def calls_of(step):
        return {name: number for name, number, *_ in step["calls"]}

    @staticmethod
    def printed_counts(done):
        """Sums of the "count RANK NAME NUMBER" lines that the test programs print."""
        totals = {}
        for match in re.finditer(r"^count \d+ (MPI_\w+) (\d+)$", done.out, re.M):
            totals[match[1]] = totals.get(match[1], 0) + int(match[2])
        return totals

    def assert_counts(self, expected, step):
        calls = self.calls_of(step)
        self.assertEqual(expected, {name: calls.get(name, 0) for name in expected})

    @staticmethod
    def complaints(done):
        """stderr's lines, whichever nodes the job got, whichever of them spoke first and whether it had to wait for them."""
        lines = re.sub(r"\bnode\d+", "NODE", done.other_err()).splitlines()
        return sorted(line for line in lines if not re.fullmatch(r"srun: # (queued and waiting for|has been allocated) resources", line))

    def assert_same_program(self, bare, captured):
        """The program's exit status, output and complaints are as they were without --lbf-predict."""
        self.assertEqual(bare.status, captured.status, f"with --lbf-predict: {captured}\nwithout: {bare}")
        self.assertEqual(sorted(bare.out.splitlines()), sorted(captured.out.splitlines()))
        self.assertEqual(self.complaints(bare), self.complaints(captured))

    def assert_predicts(self, step, nodes=(1, 2), networks=("test-fast", "test-slow")):
        seen = {(prediction["nodes"], prediction["network"]) for prediction in step["predictions"]}
        for count in nodes:
            for network in networks:
                self.assertIn((count, network), seen)
        for prediction in step["predictions"]:
            self.assertGreater(prediction["predicted_s"], 0, prediction)
        self.assertEqual(1, sum(prediction["kind"] == "self" for prediction in step["predictions"]))


def main():
    """Runs the named tests; a test that was skipped makes the exit status 77, which ctest shows as skipped. One that fails after a
    run that could not start begins anew: where jobs run in the background or in scripts nothing less helps."""
    for _ in range(TRIES):
        Done.any_could_not_start = False
        program = unittest.main(exit=False, verbosity=2)
        if program.result.wasSuccessful() or not Done.any_could_not_start:
            break
        print("a run could not start (docs/cluster-harness.md): the test begins anew", flush=True)
    if not program.result.wasSuccessful():
        sys.exit(1)
    if program.result.testsRun == len(program.result.skipped) and program.result.skipped:
        for _, reason in program.result.skipped:
            print(f"skipped: {reason}")
        sys.exit(SKIPPED)
