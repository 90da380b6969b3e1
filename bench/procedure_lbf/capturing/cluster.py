"""The cluster of bench/accuracy, with the programs of examples/procedures, bare and with their procedures captured."""

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


def trace_of(output, run_id):
    return os.path.join(output, "traces", f"{run_id}.lbfw")


def network_file(output):
    return os.path.join(output, "networks.d", f"{plan.NETWORK}.toml")


class ProcedureCluster(Cluster):
    def __init__(self, build, program_dir, output, unit_steps):
        super().__init__(build, program_dir, output, plan.LINKS)
        self.name = f"plb{zlib.crc32(output.encode()):08x}"
        self.unit_steps = unit_steps

    def __enter__(self):
        super().__enter__()
        self.env |= {"PROGRAM_BUSY": "compute", "UNIT_STEPS": str(self.unit_steps)}
        self.env.pop("PROGRAM_TRACE", None)
        return self

    def run(self, run):
        """A plan.Run: time_s, job_s and result of the program. A captured run's trace is kept."""
        captured = run.version == plan.CAPTURED
        procedures = ",".join(one.procedure for one in plan.PROGRAMS[run.program])
        words = [os.path.join(self.program_dir, f"{run.program}_unmarked"), plan.ORIGINAL if captured else run.version]
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() - 2))
        for attempt in (1, 2):
            label = f"plb-{uuid.uuid4().hex[:12]}"  # one for each attempt: a crashed one has a step, too
            srun = ["srun", f"--job-name={label}", f"--nodes={plan.NODES}", f"--ntasks={run.ranks}",
                    "--nodelist=" + ",".join(f"node{node + 1}" for node in range(plan.NODES)), "--distribution=cyclic",
                    "--overcommit", *(["--lbf-predict", f"--lbf-procedures={procedures}"] if captured else []), *words]
            done = subprocess.run(srun, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.env,
                                  timeout=RUN_TIMEOUT_S, check=False)
            if done.returncode != CRASH_IN_MPI_INIT or attempt == 2:
                break
            print(f"captured: {run.id}: crashed in MPI_Init, once more", file=sys.stderr)
        line = re.search(r"^time_s (\S+) job_s (\S+) result (\S+) ok$", done.stdout, re.M)
        if done.returncode != 0 or line is None:
            raise MeasureError(f"{' '.join(srun)}: exit status {done.returncode}\n{done.stdout[-500:]}{done.stderr[-1500:]}")
        if captured:
            self.keep_trace(run, label, since)
        return {"time_s": line[1], "job_s": line[2], "result": line[3]}

    def keep_trace(self, run, label, since):
        """Waits until lbfd has the whole step, and that its procedures were measured to the end."""
        step = self.finished_step(run.id, label, since)
        if step["node_of_rank"] != plan.node_of_rank(run.ranks):
            raise MeasureError(f"{run.id}: the ranks are not laid out as they were to be: {step['node_of_rank']}")
        found = {one["name"]: one for one in (step["procedures"] or {"procedures": []})["procedures"]}
        for modification in plan.PROGRAMS[run.program]:
            one = found.get(modification.procedure, {"state": "not known", "note": step["notes"]})
            if one["state"] != "measured":
                raise MeasureError(f"{run.id}: {modification.procedure}: {one['state']}: {one['note']}")
        command(["lbf-trace", "convert", f"{step['job']}.{step['step']}", "--to", "stored", "-o",
                 trace_of(self.output, run.id)], self.env)


def predict(options, run_id, ranks, modification):
    """Seconds as it ran, moved, not needed any more: from the stored trace, on the nodes and the network that ran."""
    words = [f"{options.build}/bin/lbf-whatif", trace_of(options.output, run_id), "--placement",
             "map=" + ",".join(map(str, plan.node_of_rank(ranks))), "--cores", "1", "--network",
             network_file(options.output), "--procedures", modification.procedure, "--move", modification.procedure,
             "--to", modification.to, "--json"]
    answer = json.loads(command(words))
    by_kind = {scenario["kind"]: scenario["lbf_s"] for scenario in answer["scenarios"]}
    return answer["predictions"][0]["lbf_s"], by_kind["asked"], by_kind["critical_path_zeroing"]
