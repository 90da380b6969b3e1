"""The cluster of tests/cluster/harness for this experiment: four nodes, scenarios switched on and off."""

import json
import os
import re
import subprocess
import sys
import time
import uuid

from driver.cluster import CRASH_IN_MPI_INIT, HARNESS, ROOT, Cluster, MeasureError, command

from . import plan

RUN_TIMEOUT_S = 3600
NODES = ",".join(f"node{number}" for number in plan.ALL)
BUSY = "while :; do :; done"


class SkeletonCluster(Cluster):
    """bench/accuracy's, with as many nodes as there are ranks; nodes share the machine's cores where it has fewer."""

    def __init__(self, build, output, dedicated_rate):
        super().__init__(build, os.path.join(build, "bench"), output, {})
        self.name = self.name.replace("acc", "skel", 1)
        self.nodes = plan.RANKS
        self.cores = sorted(os.sched_getaffinity(0))
        self.dedicated_rate, self.scenario, self.competitors = dedicated_rate, None, []
        # --lbf-overhead only lowers the limit of plugstack.conf.
        self.up_options = ["--plugin-args", "overhead_limit=100"]
        self.job_time = os.path.join(build, "bench/skeletons/libjob_time.so")

    def __exit__(self, *arguments):
        self.end_competitors()
        super().__exit__(*arguments)

    def end_competitors(self):
        for process in self.competitors:
            process.terminate()
        for process in self.competitors:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.competitors = []

    def use(self, scenario):
        """Links and competing processes of `scenario`, and no others."""
        if scenario == self.scenario:
            return
        self.end_competitors()
        for node in plan.ALL:
            rate = plan.LIMITED_RATE if node in scenario.limited else self.dedicated_rate
            command([HARNESS, "shape", self.name, f"node{node}", rate])
            # The kernel remembers round trips and windows by address: those of another rate are no use.
            command([HARNESS, "exec", self.name, f"node{node}", "ip", "tcp_metrics", "flush", "all"], self.env)
        for node in scenario.busy:
            core = self.cores[(node - 1) % len(self.cores)]
            # A session each: processes of one share a processor like a single one where the kernel groups them (autogroup).
            self.competitors.append(subprocess.Popen(
                [HARNESS, "exec", self.name, f"node{node}", "taskset", "-c", str(core), "timeout", str(RUN_TIMEOUT_S),
                 "sh", "-c", BUSY], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.env,
                start_new_session=True))
        if scenario.busy:
            time.sleep(0.5)
        if any(process.poll() is not None for process in self.competitors):
            raise MeasureError(f"{scenario.name}: a competing process did not start")
        self.scenario = scenario

    def srun(self, words, *options, folder):
        done = None
        line = ["srun", f"--nodes={plan.RANKS}", f"--ntasks={plan.RANKS}", f"--nodelist={NODES}", "--distribution=block",
                "--overcommit", *options, *words]
        for attempt in (1, 2):
            done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.env, cwd=folder,
                                  timeout=RUN_TIMEOUT_S, check=False)
            if done.returncode != CRASH_IN_MPI_INIT or attempt == 2:
                break
            print("skeletons: crashed in MPI_Init, once more", file=sys.stderr)
        if done.returncode != 0:
            raise MeasureError(f"{' '.join(line)}: exit status {done.returncode}\n{done.stdout[-500:]}{done.stderr[-1500:]}")
        return done.stdout

    def folder_of(self, program):
        """A working folder: hpcc reads its input there."""
        folder = os.path.join(self.output, "work", program.name)
        os.makedirs(folder, exist_ok=True)
        if program.hpcc_sizes:
            hpl, ptrans = program.hpcc_sizes
            with open(os.path.join(ROOT, "tests/cluster/programs/hpcc/hpccinf.txt"), encoding="utf-8") as file:
                text = file.read()
            text = re.sub(r"^160(\s+Ns)$", rf"{hpl}\1", text, flags=re.M)
            text = re.sub(r"^80(\s+values of N)$", rf"{ptrans}\1", text, flags=re.M)
            with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="utf-8") as file:
                file.write(text)
            if os.path.exists(os.path.join(folder, "hpccoutf.txt")):
                os.remove(os.path.join(folder, "hpccoutf.txt"))
        return folder

    def run_program(self, program, small):
        """Seconds from MPI_Init to MPI_Finalize, bare."""
        words = program.small if small else program.large
        out = self.srun(["env", f"LD_PRELOAD={self.job_time}", *words], folder=self.folder_of(program))
        line = re.search(r"^job_s=(\S+)$", out, re.M)
        if line is None:
            raise MeasureError(f"{program.name}: no job_s in what it printed: {out[-500:]}")
        return float(line[1])

    def capture(self, program, path):
        """A captured run, whose stored trace goes to `path`. No windows: what is left out, no skeleton does."""
        label = f"skel-{uuid.uuid4().hex[:12]}"
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() - 2))
        self.srun(program.large, "--lbf-predict", "--lbf-overhead=100", f"--job-name={label}", folder=self.folder_of(program))
        for _ in range(600):
            for step in json.loads(command(["lbf-report", f"--starttime={since}", "--json"], self.env))["steps"]:
                if step["job_name"] != label or step["state"] == "running":
                    continue
                if step["state"] != "complete":
                    raise MeasureError(f"{program.name}: the trace is {step['state']}: {step['why_partial']}")
                command(["lbf-trace", "convert", f"{step['job']}.{step['step']}", "--to", "stored", "-o", path], self.env)
                return
            time.sleep(0.1)
        raise MeasureError(f"{program.name}: lbfd does not know the job")

    def skeleton(self, *words):
        """lbf-skeleton, JSON; a crash in MPI_Init gets a second try."""
        line = ["lbf-skeleton", *words, "--launcher", "srun --overcommit", "--on", NODES, "--limit", str(RUN_TIMEOUT_S), "--json"]
        for attempt in (1, 2):
            done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.env,
                                  timeout=10 * RUN_TIMEOUT_S, check=False)
            if done.returncode == 0:
                return json.loads(done.stdout)
            if attempt == 1:
                print(f"skeletons: once more: {done.stderr.strip()[-300:]}", file=sys.stderr)
        raise MeasureError(f"{' '.join(line)}: {done.stderr.strip()[-1000:]}")
