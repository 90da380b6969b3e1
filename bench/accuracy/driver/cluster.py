"""The cluster of tests/cluster/harness for the measurement: a node is one pinned core."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
import uuid
import zlib

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
HARNESS = os.path.join(ROOT, "tests/cluster/cluster")
RUN_TIMEOUT_S = 1800
CRASH_IN_MPI_INIT = 139  # docs/cluster-harness.md, "Known"


class MeasureError(Exception):
    """What went wrong, in words for the user."""


def command(words, env=None, timeout=120):
    """Standard output of a command that must succeed."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, timeout=timeout,
                              check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MeasureError(f"{' '.join(words)}: {error}") from error
    if done.returncode != 0:
        raise MeasureError(f"{' '.join(words)}: exit status {done.returncode}\n{(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


class Cluster:
    """With `with`: up at the start, down at the end."""

    def __init__(self, build, program_dir, output, networks):
        self.build, self.program_dir, self.output, self.networks = build, program_dir, output, networks
        self.name = f"acc{zlib.crc32(output.encode()):08x}"
        self.nodes = len(os.sched_getaffinity(0))
        self.env, self.network = None, None
        self.up_options = []  # further ones of `cluster up`
        self.run_timeout_s = RUN_TIMEOUT_S

    def __enter__(self):
        # lbfd gets no networks: its own predictions are not used here, and it shares the nodes' cores. The capture is
        # open all the time: windows are another study's subject (docs/cost-system.md).
        command([HARNESS, "up", self.name, "--nodes", str(self.nodes), "--pin-nodes", "--lbf", self.build,
                 "--plugin-args", "overhead_limit=100", "--lbfd-setting", "replay_when_idle=true", "--keep", self.program_dir, "--keep", self.output, *self.up_options])
        self.env = dict(os.environ)
        for line in command([HARNESS, "env", self.name]).splitlines():
            key, _, value = line.removeprefix("export ").partition("=")
            if key != "PATH":
                self.env[key] = shlex.split(value)[0]
        self.env["PATH"] = f"{self.build}/bin:{os.environ['PATH']}"
        self.nodes = int(command(["sinfo", "--noheader", "--format=%D"], self.env).split()[0])
        return self

    def __exit__(self, *_):
        subprocess.run([HARNESS, "down", self.name], stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def use_network(self, network):
        if network == self.network:
            return
        if self.nodes > 1:
            command([HARNESS, "shape", self.name, "all", self.networks[network]])
            for node in range(1, self.nodes + 1):
                # The kernel remembers round trips and windows by address: those of another network are no use.
                command([HARNESS, "exec", self.name, f"node{node}", "ip", "tcp_metrics", "flush", "all"], self.env)
        self.network = network

    def calibrate(self, network, seconds, path):
        self.use_network(network)
        where = ["--nodes", "node1,node2"] if self.nodes > 1 else ["--only", "self-node", "--nodes", "node1"]
        command(["lbf-calibrate", "--name", network, "--seconds", str(seconds), *where, "--output", path], self.env, 900)

    def srun(self, options, words, name, folder=None, env=None):
        """Runs once more what crashed in MPI_Init: what it printed, its job name, a time before its start."""
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() - 2))
        for attempt in (1, 2):
            label = f"acc-{uuid.uuid4().hex[:12]}"  # one for each attempt: a crashed one has a step, too
            line = ["srun", f"--job-name={label}", *options, *words]
            try:
                done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", cwd=folder,
                                      env={**self.env, **(env or {})}, timeout=self.run_timeout_s, check=False)
            except subprocess.TimeoutExpired as error:
                raise MeasureError(f"{name}: {' '.join(line)} takes more than {self.run_timeout_s} s") from error
            if done.returncode == 0:
                return done.stdout, label, since
            if done.returncode != CRASH_IN_MPI_INIT or attempt == 2:
                break
            print(f"accuracy: {name}: crashed in MPI_Init, once more", file=sys.stderr)
        raise MeasureError(f"{' '.join(line)}: exit status {done.returncode}\n{done.stdout[-500:]}{done.stderr[-1500:]}")

    def run(self, run, words):
        """Runs a program; the values of its last line, and for a captured run measured_s and job of lbf-report."""
        case = run.case
        self.use_network(case.network if case.nodes > 1 else next(iter(self.networks)))
        where = ",".join(f"node{node}" for node in range(1, case.nodes + 1))
        options = [f"--nodes={case.nodes}", f"--ntasks={case.ranks}", f"--nodelist={where}", "--distribution=block", "--overcommit",
                   *(["--lbf-predict"] if run.captured else [])]
        out, label, since = self.srun(options, words, run.id)
        line = re.search(r" (verified)=(\S+) time_s=(\S+) job_s=(\S+)", out)
        if line is None:
            raise MeasureError(f"{run.id}: no verified= in what it printed: {out[-500:]}")
        result = {"time_s": line[3], "job_s": line[4]}
        if run.captured:
            step, info = self.step_and_trace(run, label, since)
            result |= {"measured_s": step["measured_s"], "process_s": info["process_s"], "messages": step["messages"],
                       "events": step["events"], "unmodelled_s": step["unmodelled_s"]}
        return result

    def step_and_trace(self, run, label, since):
        """Keeps the step's trace; what lbfd, and lbf-trace info, say of it."""
        step = self.finished_step(run.id, label, since)
        per_node = run.case.ranks // run.case.nodes
        if step["node_of_rank"] != [rank // per_node for rank in range(run.case.ranks)]:
            raise MeasureError(f"{run.id}: the ranks are not in blocks: {step['node_of_rank']}")
        trace = trace_of(self.output, run.id)
        command(["lbf-trace", "convert", f"{step['job']}.{step['step']}", "--to", "stored", "-o", trace], self.env)
        return step, json.loads(command(["lbf-trace", "info", trace, "--json"], self.env))

    def finished_step(self, name, label, since):
        """Waits until lbfd has the whole step."""
        for _ in range(300):
            for step in json.loads(command(["lbf-report", f"--starttime={since}", "--json"], self.env))["steps"]:
                if step["job_name"] != label or step["state"] == "running":
                    continue
                if step["state"] != "complete":
                    raise MeasureError(f"{name}: the trace is {step['state']}: {step['why_partial']}")
                return step
            time.sleep(0.1)
        raise MeasureError(f"{name}: lbfd does not know the job")


def network_file(output, network, repeat):
    """What lbf-calibrate measured in this round."""
    return os.path.join(output, "networks.d", str(repeat), f"{network}.toml")


def trace_of(output, run_id):
    return os.path.join(output, "traces", f"{run_id}.lbfw")
