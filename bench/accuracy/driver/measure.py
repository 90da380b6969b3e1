"""All runs of the plan, with progress; each is a row of runs.csv as soon as it is done."""

import csv
import os
import statistics
import time

from . import plan
from .cluster import network_file

COLUMNS = ("id", "program", "ranks", "nodes", "network", "kind", "repeat", "time_s", "job_s", "measured_s", "process_s",
           "messages", "events", "unmodelled_s", "started", "load_before")


def read_rows(output):
    """Rows of runs.csv by id, as they stand there."""
    path = os.path.join(output, "runs.csv")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8", newline="") as file:
        # A row that an interruption cut has no last column.
        return {row["id"]: row for row in csv.DictReader(file) if row["load_before"] is not None}


def read_runs(output):
    """Rows of runs.csv by id, numbers as numbers."""
    path = os.path.join(output, "runs.csv")
    if not os.path.exists(path):
        return {}
    rows = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["load_before"] is None:
                continue  # cut by an interruption
            for key in ("ranks", "nodes", "repeat"):
                row[key] = int(row[key])
            for key in ("time_s", "job_s", "measured_s", "process_s", "messages", "events", "unmodelled_s",
                        "load_before"):
                row[key] = float(row[key]) if row[key] else None
            row["case"] = plan.Case(row["program"], row["ranks"], row["nodes"], row["network"])
            rows[row["id"]] = row
    return rows


def write_row(path, row, columns=COLUMNS):
    is_new = not os.path.exists(path)
    with open(path, "a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)
        file.flush()
        os.fsync(file.fileno())


class Durations:
    """What a run will take: as its case did, else as its program and network did, else a guess."""

    def __init__(self, rows):
        self.times = {}
        for row in rows.values():
            self.add(row["case"], row["time_s"])

    def add(self, case, time_s):
        for key in (case, (case.program, case.network)):
            self.times.setdefault(key, []).append(time_s)

    def of(self, case):
        times = self.times.get(case) or self.times.get((case.program, case.network))
        return statistics.median(times) if times else plan.GUESS_S[case.network]


def left_of(runs, done, durations, options):
    """Cases with long runs are repeated less often: they are dominated by a shaped link, and differ little."""
    return [run for run in runs if run.id not in done and
            (run.repeat < options.long_repeats or durations.of(run.case) <= options.long_run)]


def measure_all(cluster, runs, program_dir, options):
    path = os.path.join(options.output, "runs.csv")
    os.makedirs(os.path.join(options.output, "traces"), exist_ok=True)
    rows = read_runs(options.output)
    durations, done = Durations(rows), set(rows)
    began, number = time.monotonic(), 0
    while left := left_of(runs, done, durations, options):
        run = left[0]
        calibrate_round(cluster, run.repeat, options)
        left_s = sum(durations.of(later.case) + plan.START_S for later in left)
        print(f"  {clock(time.monotonic() - began)} done, about {clock(left_s)} to go: {run.case}, "
              f"{'captured' if run.captured else 'bare'}, round {run.repeat + 1} of {options.repeats}", flush=True)
        words = [os.path.join(program_dir, run.case.program), options.size]
        row = {"id": run.id, **run.case._asdict(), "kind": "captured" if run.captured else "bare", "repeat": run.repeat,
               "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "load_before": f"{os.getloadavg()[0]:.2f}"}
        row |= cluster.run(run, words)
        write_row(path, row)
        done.add(run.id)
        durations.add(run.case, float(row["time_s"]))
        number += 1
    print(f"  {number} runs in {clock(time.monotonic() - began)}")


def calibrate_round(cluster, repeat, options):
    """A host may place a virtual machine's processors anew at any time, and messages between them are then faster or slower: each
    round has networks of its own."""
    for network in options.networks:
        path = network_file(options.output, network, repeat)
        if not os.path.exists(path):
            print(f"  measuring the network {network}", flush=True)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            cluster.calibrate(network, options.calibrate_seconds, path)


def clock(seconds):
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
