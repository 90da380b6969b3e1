"""The cluster of bench/accuracy, with one captured run of each program, its advice, and runs in any placement."""

import json
import os
import re
import subprocess
import sys
import time
import uuid
import zlib

from driver.cluster import CRASH_IN_MPI_INIT, RUN_TIMEOUT_S, Cluster, MeasureError, command

from . import plan


class PlacementCluster(Cluster):
    def __init__(self, build, program_dir, output, size):
        super().__init__(build, program_dir, output, plan.LINKS)
        self.name = f"adv{zlib.crc32(output.encode()):08x}"
        self.size = size

    def network_file(self, link):
        return os.path.join(self.output, "networks.d", f"{link}.toml")

    def srun(self, flags, words, attempts=2):
        """Standard output. A run that crashes in MPI_Init (docs/cluster-harness.md) is done again."""
        for attempt in range(attempts):
            done = subprocess.run(["srun", *flags, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  env=self.env, timeout=RUN_TIMEOUT_S, check=False)
            if done.returncode != CRASH_IN_MPI_INIT:
                break
            print(f"placements: {' '.join(words)}: crashed in MPI_Init (attempt {attempt + 1})", file=sys.stderr)
        if done.returncode != 0:
            raise MeasureError(f"srun {' '.join([*flags, *words])}: exit status {done.returncode}\n"
                               f"{done.stdout[-500:]}{done.stderr[-1500:]}")
        return done.stdout

    def flags(self, nodes):
        """Of srun, for any mapping: a host file says it, whatever the distributions of srun can."""
        path = os.path.join(self.output, "hosts")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"node{node + 1}\n" for node in nodes)
        return [f"--nodes={max(nodes) + 1}", f"--ntasks={len(nodes)}", "--overcommit", "--distribution=arbitrary",
                f"--nodelist={path}"]

    def check_placement(self, nodes):
        """That every rank is where it is meant to be."""
        lines = self.srun([*self.flags(nodes), "--label"], ["hostname"]).splitlines()
        where = dict(line.split(": ") for line in lines)
        real = plan.in_order([where[str(rank)] for rank in range(len(nodes))])
        if real != plan.in_order(nodes):
            raise MeasureError(f"srun did not place the ranks as it was told: {real} instead of {nodes}")

    def program_words(self, program):
        return [os.path.join(self.program_dir, program), self.size]

    def run(self, program, nodes):
        """Seconds from the return of MPI_Init to the end of the slowest rank."""
        self.use_network(plan.PROGRAMS[program][0])
        out = self.srun(self.flags(nodes), self.program_words(program))
        line = re.search(r" (verified)=(\S+) time_s=(\S+) job_s=(\S+)", out)
        if line is None:
            raise MeasureError(f"{program}: not verified:\n{out[-500:]}")
        return float(line[4])

    def capture_and_advise(self, program):
        """One captured run in blocks on all nodes; its trace's path, and what `lbf-advise -j --json` says of it, on the nodes
        that Slurm names. lbfd, and with it where the ranks ran, is there until the cluster ends: both, or neither."""
        trace = os.path.join(self.output, "traces", f"{program}.lbfw")
        advice = os.path.join(self.output, f"advice-{program}.json")
        if not os.path.exists(trace) or not os.path.exists(advice):
            os.makedirs(os.path.dirname(trace), exist_ok=True)
            self.use_network(plan.PROGRAMS[program][0])
            since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() - 2))
            flags = [f"--nodes={self.nodes}", f"--ntasks={plan.RANKS}", "--distribution=block", "--overcommit", "--lbf-predict"]
            for last in (False, True):
                # A name for each attempt: a run that crashed in MPI_Init may have left a step of its own.
                label = f"adv-{uuid.uuid4().hex[:12]}"
                try:
                    self.srun([f"--job-name={label}", *flags], self.program_words(program), attempts=1)
                    break
                except MeasureError:
                    if last:
                        raise
            step = self.step_in_blocks(program, label, since)
            name = f"{step['job']}.{step['step']}"
            network = self.network_file(plan.PROGRAMS[program][0])
            text = command(["lbf-advise", "-j", name, "--refresh", "--overcommit", "--ran-cores", "1", "--ran-network", network,
                            "--network", network, "--json"], {**self.env, "XDG_CACHE_HOME": self.output}, 600)
            command(["lbf-trace", "convert", name, "--to", "stored", "-o", trace], self.env)
            with open(advice, "w", encoding="utf-8") as file:
                file.write(text)
        with open(advice, encoding="utf-8") as file:
            return trace, json.load(file)

    def step_in_blocks(self, program, label, since):
        step = self.finished_step(program, label, since)
        if plan.in_order(step["node_of_rank"]) != plan.ran(self.nodes).nodes:
            raise MeasureError(f"the captured ranks are not in blocks: {step['node_of_rank']}")
        return step

    def predict(self, program, trace, placements):
        """{name: seconds} of the replay, for each placement."""
        network = self.network_file(plan.PROGRAMS[program][0])
        predicted = {}
        for placement in placements:
            document = json.loads(command(
                ["lbf-whatif", trace, "--placement", "map=" + ",".join(map(str, placement.nodes)), "--cores", "1", "--network",
                 network, "--json"], self.env, 600))
            predicted[placement.name] = document["predictions"][0]["lbf_s"]
        return predicted
