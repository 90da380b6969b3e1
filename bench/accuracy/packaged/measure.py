"""The cluster and all rounds, with progress; each run is a row of runs.csv as soon as it is done."""

import csv
import os
import re
import shutil
import statistics
import sys
import time
from typing import NamedTuple

from driver.cluster import HARNESS, Cluster, MeasureError, command, network_file
from driver.measure import clock, write_row

from . import plan, programs

COLUMNS = ("id", "program", "ranks", "nodes", "processors", "network", "round", "part", "seconds", "process_s", "mpi_percent",
           "calls", "messages", "bytes", "unseen_percent", "started", "load_before")
NUMBERS = ("seconds", "process_s", "mpi_percent", "messages", "bytes", "unseen_percent", "load_before")
WHOLE_NUMBERS = ("ranks", "nodes", "processors", "round")
BOTH_PROCESSORS = "node3"  # the others have one each
PIN_BY_RANK = ("sh", "-c", 'exec taskset --cpu-list "$SLURM_LOCALID" "$@"', "sh")
FAILURES_AT_FIRST = 3


class Run(NamedTuple):
    case: plan.Case
    round: int
    part: str

    @property
    def id(self):
        return f"{self.case.id}-{self.round}-{self.part}"

    @property
    def captured(self):
        return self.part == plan.CAPTURED


class PackagedCluster(Cluster):
    """bench/accuracy's with a third node that has both processors; the plugin has its own overhead limit, as a user gets it."""

    def __init__(self, build, output):
        super().__init__(build, output, output, plan.NETWORKS)
        self.name = self.name.replace("acc", "pub", 1)
        self.nodes = 3
        self.up_options = ["--plugin-args", ""]
        self.run_timeout_s = 300
        self.job_time = os.path.join(build, "bench/skeletons/libjob_time.so")

    def __enter__(self):
        super().__enter__()
        pid = re.search(rf"{BOTH_PROCESSORS} .*slurmd process (\d+)", command([HARNESS, "status", self.name]))
        command(["taskset", "--all-tasks", "--cpu-list", "--pid", "0,1", pid[1]])
        return self

    def calibrate_round(self, number, networks, seconds):
        """Networks of its own for each round: a host may move a virtual machine's processors. What a message inside a node takes
        depends on whether both ranks have a processor."""
        inside = os.path.join(self.output, "networks.d", str(number), "inside.toml")
        os.makedirs(os.path.dirname(inside), exist_ok=True)
        if not os.path.exists(inside):
            command(["lbf-calibrate", "--name", "inside", "--seconds", str(seconds), "--only", "self-node", "--nodes", BOTH_PROCESSORS,
                     "--output", inside], self.env, 900)
        for network in networks:
            path = network_file(self.output, network, round_folder(number, "oversubscribed"))
            if not os.path.exists(path):
                print(f"  measuring the network {network}", flush=True)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                self.calibrate(network, seconds, path)
            write_dedicated(path, inside, network_file(self.output, network, round_folder(number, "dedicated")))

    def run_part(self, run, program, folder):
        case = run.case
        self.use_network(case.network if case.nodes > 1 else next(iter(plan.NETWORKS)))
        where = BOTH_PROCESSORS if case.processors == 2 else ",".join(f"node{node}" for node in range(1, case.nodes + 1))
        options = [f"--nodes={case.nodes}", f"--ntasks={case.ranks}", f"--nodelist={where}", "--distribution=block", "--overcommit"]
        words = [*(PIN_BY_RANK if case.processors == 2 else ()), *program.words]
        env = {"OMP_NUM_THREADS": "1", **program.env}
        if not run.captured:
            words = [*words[:-len(program.words)], "env", f"LD_PRELOAD={self.job_time}", *program.words]
            out = self.srun(options, words, run.id, folder, env)[0]
            line = re.search(r"^job_s=(\S+)$", out, re.M)
            if line is None:
                raise MeasureError(f"{run.id}: no job_s in what it printed: {out[-500:]}")
            return {"seconds": line[1]}
        _, label, since = self.srun([*options, "--lbf-predict"], words, run.id, folder, env)
        step, info = self.step_and_trace(run, label, since)
        whole_s = step["measured_s"] * case.ranks
        calls = sorted(info["calls"].items(), key=lambda item: -item[1]["call_s"])
        return {"seconds": step["measured_s"], "process_s": info["process_s"], "mpi_percent": f"{100 * step['mpi_s'] / whole_s:.2f}",
                "calls": ", ".join(f"{name.removeprefix('MPI_')} {100 * call['call_s'] / whole_s:.0f}" for name, call in calls[:2]),
                "messages": info["messages"], "bytes": info["message_bytes"], "unseen_percent": f"{100 * info['unseen_s'] / whole_s:.2f}"}


def round_folder(number, kind):
    return os.path.join(str(number), kind)


def write_dedicated(path, inside, to):
    """The network of `path`, but inside a node as in `inside`."""
    def sections(name):
        with open(name, encoding="utf-8") as file:
            return re.split(r"^(?=\[)", file.read(), flags=re.M)

    def is_inside(section):
        return section.startswith("[[path]]") and 'locality = "self-node"' in section

    head, *others = [section for section in sections(path) if not is_inside(section)]
    os.makedirs(os.path.dirname(to), exist_ok=True)
    with open(to, "w", encoding="utf-8") as file:
        file.write("".join([head, *filter(is_inside, sections(inside)), *others]))


def read_runs(output):
    """{id: row}; numbers as numbers, `case` made of them."""
    path, rows = os.path.join(output, "runs.csv"), {}
    if not os.path.exists(path):
        return rows
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["load_before"] is None:
                continue  # cut by an interruption
            row |= {key: float(row[key]) if row[key] else None for key in NUMBERS}
            row |= {key: int(row[key]) for key in WHOLE_NUMBERS}
            row["case"] = plan.Case(row["program"], row["ranks"], row["nodes"], row["processors"], row["network"])
            rows[row["id"]] = row
    return rows


class Round(NamedTuple):
    """A captured run between two bare ones."""
    case: plan.Case
    number: int
    bare_s: float        # mean of the two
    apart_percent: float
    captured: dict       # its row

    @property
    def is_calm(self):
        return self.apart_percent <= plan.CALM_PERCENT


def rounds_of(rows):
    """Whole rounds by case."""
    found = {}
    for case, number in dict.fromkeys((row["case"], row["round"]) for row in rows.values()):
        parts = [rows.get(Run(case, number, part).id) for part in plan.PARTS]
        if all(parts):
            bare = [parts[0]["seconds"], parts[2]["seconds"]]
            mean = statistics.mean(bare)
            found.setdefault(case, []).append(Round(case, number, mean, 100 * abs(bare[1] - bare[0]) / mean, parts[1]))
    return found


def make_inputs(output, cases):
    """OUTPUT/inputs/PROGRAM-RANKS; a whole folder is not made again."""
    for program, ranks in dict.fromkeys((case.program, case.ranks) for case in cases):
        folder = input_folder(output, program, ranks)
        if os.path.exists(folder):
            continue
        part = folder + ".part"
        shutil.rmtree(part, ignore_errors=True)
        os.makedirs(part)
        programs.ALL[program].make(part, ranks)
        os.rename(part, folder)


def input_folder(output, program, ranks):
    return os.path.join(output, "inputs", f"{program}-{ranks}")


class Series:
    """Rounds of all cases, until `options.rounds` of each are calm or `options.tries` were made."""

    def __init__(self, cluster, cases, options):
        self.cluster, self.cases, self.options = cluster, cases, options
        self.path = os.path.join(options.output, "runs.csv")
        self.rows, self.began, self.failures = read_runs(options.output), time.monotonic(), []

    def is_done(self, case):
        return sum(one.is_calm for one in rounds_of(self.rows).get(case, [])) >= self.options.rounds

    def run(self):
        """Lines of what did not run."""
        os.makedirs(os.path.join(self.options.output, "traces"), exist_ok=True)
        for number in range(self.options.tries):
            cases = [case for case in plan.in_order(self.cases, number, self.options.seed) if not self.is_done(case)]
            if cases:
                # All: a repeated run predicts the other cases, too.
                self.cluster.calibrate_round(number, sorted({case.network for case in self.cases}), self.options.calibrate_seconds)
            for place, case in enumerate(cases):
                self.say(number, cases[place:])
                self.one(case, number)
        print(f"  all runs done in {clock(time.monotonic() - self.began)}", flush=True)
        return self.failures

    def say(self, number, left):
        known = {}
        for row in self.rows.values():
            known.setdefault(row["case"], []).append(row["seconds"])
        to_go = sum(len(plan.PARTS) * (plan.START_S + statistics.median(known.get(case, [plan.GUESS_S]))) for case in left)
        print(f"  {clock(time.monotonic() - self.began)} done, about {clock(to_go)} of round {number + 1} to go: {left[0]}", flush=True)

    def one(self, case, number):
        program, work = programs.ALL[case.program], os.path.join(self.options.output, "work")
        for part in plan.PARTS:
            run = Run(case, number, part)
            if run.id in self.rows:
                continue
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(input_folder(self.options.output, case.program, case.ranks), work)
            row = {"id": run.id, **case._asdict(), "round": number, "part": part,
                   "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "load_before": f"{os.getloadavg()[0]:.2f}"}
            try:
                row |= self.cluster.run_part(run, program, work)
            except MeasureError as error:
                self.failures.append(f"{case}, {part}: {str(error).splitlines()[0]}")
                print(f"public: {self.failures[-1]}\n{error}", file=sys.stderr)
                if len(self.failures) >= FAILURES_AT_FIRST and not self.rows:
                    raise  # nothing runs
                return
            write_row(self.path, row, COLUMNS)
            self.rows = read_runs(self.options.output)
