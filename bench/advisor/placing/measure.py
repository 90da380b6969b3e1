"""All runs of the plan, with progress; each is a row of runs.csv as soon as it is done."""

import os
import statistics
import time

from driver.measure import clock, read_rows as read_runs, write_row

from . import plan

COLUMNS = ("id", "program", "placement", "repeat", "job_s", "started", "load_before")


def times_of(runs):
    """{(program, placement): seconds, ascending}"""
    times = {}
    for row in runs.values():
        times.setdefault((row["program"], row["placement"]), []).append(float(row["job_s"]))
    return {key: sorted(values) for key, values in times.items()}


def measure_all(cluster, placements, repeats, seed, output):
    path = os.path.join(output, "runs.csv")
    done = read_runs(output)
    times = times_of(done)
    nodes_of = {(program, placement.name): placement.nodes for program in placements for placement in placements[program]}

    def seconds_of(run):
        known = times.get((run.program, run.placement))
        return (statistics.median(known) if known else plan.GUESS_S[cluster.size]) + plan.START_S

    left = [run for run in plan.all_runs(placements, repeats, seed) if run.id not in done]
    began = time.monotonic()
    checked = set()
    for number, run in enumerate(left):
        left_s = sum(seconds_of(later) for later in left[number:])
        print(f"  {clock(time.monotonic() - began)} done, about {clock(left_s)} to go: {run.program}, {run.placement}, "
              f"round {run.repeat + 1} of {repeats}", flush=True)
        nodes = nodes_of[run.program, run.placement]
        if nodes not in checked:
            cluster.check_placement(nodes)
            checked.add(nodes)
        row = {"id": run.id, **run._asdict(), "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
               "load_before": f"{os.getloadavg()[0]:.2f}"}
        row["job_s"] = f"{cluster.run(run.program, nodes):.6f}"
        write_row(path, row, COLUMNS)
        times.setdefault((run.program, run.placement), []).append(float(row["job_s"]))
    print(f"  {len(left)} runs in {clock(time.monotonic() - began)}")
