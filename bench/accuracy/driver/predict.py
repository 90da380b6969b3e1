"""From the stored trace of each captured run: what it predicts for every case of its program and ranks."""

import csv
import json
import os
import sys
import time

from .cluster import command, network_file, trace_of
from .measure import clock, read_runs
from .simgrid import Network, SimGridFailed, Trace

COLUMNS = ("id", "predictor", "nodes", "network", "predicted_s")


def read_predictions(output):
    """{(run, predictor): {(nodes, network): seconds}}"""
    path = os.path.join(output, "predictions.csv")
    predictions = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                targets = predictions.setdefault((row["id"], row["predictor"]), {})
                targets[int(row["nodes"]), row["network"]] = float(row["predicted_s"])
    return predictions


def predict_all(options):
    """Adds to predictions.csv what is not there yet. SimGrid: from the first captured run of each case only."""
    runs = read_runs(options.output)
    known = read_predictions(options.output)
    began = time.monotonic()
    jobs = []
    for row in runs.values():
        if row["kind"] != "captured":
            continue
        targets = targets_of(row["case"], runs)
        if set(known.get((row["id"], "lbf"), {})) != targets:
            jobs.append((with_whatif, row, targets))
        if options.simgrid and row["repeat"] == 0 and set(known.get((row["id"], "simgrid"), {})) != targets:
            jobs.append((with_simgrid, row, targets))
    try:
        for done, (predict, row, targets) in enumerate(jobs):
            left_s = (time.monotonic() - began) / done * (len(jobs) - done) if done else 0
            print(f"  {clock(time.monotonic() - began)} done{f', about {clock(left_s)} to go' if done else ''}: "
                  f"{row['case']}, {predict.__name__.removeprefix('with_')}", flush=True)
            try:
                predictor, answer = predict(options, row, targets)
            except SimGridFailed as error:  # it is not ours to mend: its cells stay empty
                print(f"  {row['case']}: {error}", file=sys.stderr, flush=True)
                continue
            known[row["id"], predictor] = answer
    finally:
        write_predictions(options.output, known)


def write_predictions(output, known):
    path = os.path.join(output, "predictions.csv")
    with open(path + ".new", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for (run_id, predictor), answer in sorted(known.items()):
            for (nodes, network), seconds in sorted(answer.items()):
                writer.writerow((run_id, predictor, nodes, network, f"{seconds:.9f}"))
    os.replace(path + ".new", path)


def targets_of(case, runs):
    """What really ran of the same program with as many ranks."""
    ran = {row["case"] for row in runs.values()}
    return {(other.nodes, other.network) for other in ran if (other.program, other.ranks) == (case.program, case.ranks)}


def with_whatif(options, row, targets):
    answer = {}
    for nodes in sorted({nodes for nodes, _ in targets}):
        wanted = sorted(network for count, network in targets if count == nodes)
        document = json.loads(command(
            [f"{options.build}/bin/lbf-whatif", trace_of(options.output, row["id"]), "--nodes", str(nodes), "--network",
             ",".join(network_file(options.output, network, row["repeat"]) for network in wanted), "--json"], timeout=600))
        for prediction in document["predictions"]:
            if prediction["lbf_s"] is not None and not prediction["partial"]:
                answer[nodes, prediction["network"]] = prediction["lbf_s"]
    return "lbf", answer


def with_simgrid(options, row, targets):
    ranks = row["case"].ranks
    with Trace(f"{options.build}/bin/lbf-trace", trace_of(options.output, row["id"])) as trace:
        return "simgrid", {(nodes, network): trace.replay(Network(network_file(options.output, network, row["repeat"])), ranks,
                                                                nodes)
                           for nodes, network in sorted(targets)}
