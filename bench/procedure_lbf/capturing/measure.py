"""All runs of the plan, with progress; each is a row of runs.csv as soon as it is done."""

import os
import statistics
import time

from driver.cluster import MeasureError
from driver.measure import clock, read_rows as read_runs, write_row

from . import plan

COLUMNS = ("id", "program", "ranks", "version", "repeat", "time_s", "job_s", "result", "started", "load_before")


def times_of(rows):
    """{(program, ranks, version): seconds, ascending}"""
    times = {}
    for row in rows.values():
        times.setdefault((row["program"], int(row["ranks"]), row["version"]), []).append(float(row["job_s"]))
    return {key: sorted(values) for key, values in times.items()}


def check_results(rows):
    """All versions of a program compute the same, or nothing of it can be compared."""
    results = {}
    for row in rows.values():
        results.setdefault((row["program"], row["ranks"]), set()).add(row["result"])
    for (program, ranks), different in results.items():
        if len(different) > 1:
            raise MeasureError(f"{program} with {ranks} ranks: its versions give different results: {', '.join(sorted(different))}")


def measure_all(cluster, runs, repeats, output):
    path = os.path.join(output, "runs.csv")
    os.makedirs(os.path.join(output, "traces"), exist_ok=True)
    rows = read_runs(output)
    times = times_of(rows)

    def seconds_of(run):
        known = times.get((run.program, run.ranks, run.version))
        return (statistics.median(known) if known else plan.GUESS_S) + plan.START_S

    left = [run for run in runs if run.id not in rows]
    began = time.monotonic()
    for number, run in enumerate(left):
        left_s = sum(seconds_of(later) for later in left[number:])
        print(f"  {clock(time.monotonic() - began)} done, about {clock(left_s)} to go: {run.program} with {run.ranks} ranks, "
              f"{run.version}, round {run.repeat + 1} of {repeats}", flush=True)
        row = {"id": run.id, **run._asdict(), "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
               "load_before": f"{os.getloadavg()[0]:.2f}"}
        row |= cluster.run(run)
        write_row(path, row, COLUMNS)
        times.setdefault((run.program, run.ranks, run.version), []).append(float(row["job_s"]))
    print(f"  {len(left)} runs in {clock(time.monotonic() - began)}")
