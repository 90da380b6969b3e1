"""From the stored trace of each captured run of a calm round: every other case of its program and ranks that was measured."""

import csv
import json
import os
import sys
import time
from typing import NamedTuple, Optional

from driver.cluster import MeasureError, command, network_file, trace_of
from driver.measure import clock
from driver.simgrid import Network, SimGridFailed, Trace

from .measure import Round, round_folder

COLUMNS = ("id", "predictor", "nodes", "processors", "network", "predicted_s", "half_percent")
PREDICTORS = {"lbf": "lbf", "simgrid": "SimGrid"}
# Processor seconds that lbf-advise may take; all candidates of a call fit one pass.
BUDGET_S = 300


class Answer(NamedTuple):
    predicted_s: float
    half_percent: Optional[float]  # of the printed interval; none of the case that ran


def key_of(case):
    return case.nodes, case.processors, case.network


def read_predictions(output):
    """{(run, predictor): {(nodes, processors, network): Answer}}"""
    path, known = os.path.join(output, "predictions.csv"), {}
    if os.path.exists(path):
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                answer = Answer(float(row["predicted_s"]), float(row["half_percent"]) if row["half_percent"] else None)
                known.setdefault((row["id"], row["predictor"]), {})[int(row["nodes"]), int(row["processors"]), row["network"]] = answer
    return known


def write_predictions(output, known):
    path = os.path.join(output, "predictions.csv")
    with open(path + ".new", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for (run_id, predictor), answers in sorted(known.items()):
            for key, answer in sorted(answers.items()):
                writer.writerow((run_id, predictor, *key, f"{answer.predicted_s:.9f}",
                                 "" if answer.half_percent is None else f"{answer.half_percent:.3f}"))
    os.replace(path + ".new", path)


def predict_all(options, told):
    """Adds to predictions.csv what is not there yet. `told`: the calm rounds of each case."""
    known, began, jobs = read_predictions(options.output), time.monotonic(), []
    for case, rounds in told.items():
        targets = [other for other in told if (other.program, other.ranks) == (case.program, case.ranks)]
        for one in rounds:
            for predictor, predict in (("lbf", with_advise), *((("simgrid", with_simgrid),) if options.simgrid else ())):
                if not {key_of(target) for target in targets} <= set(known.get((one.captured["id"], predictor), {})):
                    jobs.append((predictor, predict, one, targets))
    try:
        for done, (predictor, predict, one, targets) in enumerate(jobs):
            left_s = (time.monotonic() - began) / done * (len(jobs) - done) if done else 0
            print(f"  {clock(time.monotonic() - began)} done{f', about {clock(left_s)} to go' if done else ''}: "
                  f"{one.case}, {PREDICTORS[predictor]}", flush=True)
            try:
                known[one.captured["id"], predictor] = predict(options, one, targets)
            except (MeasureError, SimGridFailed) as error:  # its cells stay empty
                print(f"public: {one.case}, {PREDICTORS[predictor]}: {error}", file=sys.stderr, flush=True)
    finally:
        write_predictions(options.output, known)


def network_of(options, one, network):
    return network_file(options.output, network, round_folder(one.number, one.case.kind))


def with_advise(options, one: Round, targets):
    """What lbf-advise says, and the interval that it prints."""
    answers, case = {}, one.case
    folder = os.path.dirname(network_of(options, one, case.network))
    for nodes, processors in sorted({(target.nodes, target.processors) for target in targets}):
        networks = sorted(target.network for target in targets if (target.nodes, target.processors) == (nodes, processors))
        cluster = os.path.join(options.output, f"cluster-{nodes}x{processors}.toml")
        with open(cluster, "w", encoding="utf-8") as file:
            file.write(f'lbf_cluster = 1\n[[node]]\nname = "n[1-{nodes}]"\ncores_per_socket = {processors}\n')
        document = json.loads(command(
            [f"{options.build}/bin/lbf-advise", trace_of(options.output, one.captured["id"]), "--json", "--cluster", cluster,
             "--placement", "block", "--overcommit", "--nodes", str(nodes), "--network", ",".join(networks), "--networks-dir", folder,
             "--ran-nodes", str(case.nodes), "--ran-placement", "block", "--ran-cores", str(case.processors), "--ran-network", case.network,
             "--budget", str(BUDGET_S)], timeout=600))
        if document["now"]["lbf_s"] is not None:
            answers[key_of(case)] = Answer(document["now"]["lbf_s"], None)
        for candidate in document["candidates"]:
            key = nodes, processors, candidate["network"]
            # Stuck ones have no time.
            if candidate.get("lbf_s") is not None and key != key_of(case):
                answers[key] = Answer(candidate["lbf_s"], candidate["error_percent"])
    return answers


def with_simgrid(options, one: Round, targets):
    with Trace(f"{options.build}/bin/lbf-trace", trace_of(options.output, one.captured["id"])) as trace:
        return {key_of(target): Answer(trace.replay(Network(network_of(options, one, target.network)), target.ranks, target.nodes,
                                                    target.processors), None) for target in targets}
