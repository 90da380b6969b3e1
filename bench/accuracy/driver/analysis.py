"""Medians, spreads and errors from runs.csv and predictions.csv. Nothing is run here."""

import statistics
from typing import NamedTuple, Optional

from .plan import Case


class Measured(NamedTuple):
    """Bare runs of a case: from the return of MPI_Init to the end of the slowest rank."""
    runs: int
    median_s: float
    low_s: float
    quartile_1_s: float
    quartile_3_s: float
    high_s: float
    captured_median_s: Optional[float]  # the same clock in the captured runs
    process_s: Optional[float]          # of all ranks together, in the captured runs
    messages: Optional[float]

    def percent(self, seconds):
        return 100 * (seconds - self.median_s) / self.median_s

    def holds(self, seconds):
        """Whether a time is one that the real runs themselves had."""
        return self.low_s <= seconds <= self.high_s


class Prediction(NamedTuple):
    kind: str  # 'self', 'nodes' (another number of nodes), 'network', 'both'
    predictor: str
    actual: Case
    target: Case
    predicted_s: float
    low_s: float
    high_s: float
    measured: Measured

    @property
    def error_percent(self):
        return self.measured.percent(self.predicted_s)


def measured_cases(runs):
    cases = {}
    for row in runs.values():
        cases.setdefault(row["case"], []).append(row)
    result = {}
    for case in sorted(cases):
        bare = sorted(row["job_s"] for row in cases[case] if row["kind"] == "bare")
        captured = [row for row in cases[case] if row["kind"] == "captured"]
        if not bare:
            continue
        quartiles = statistics.quantiles(bare, n=4, method="inclusive") if len(bare) > 1 else bare * 3
        result[case] = Measured(len(bare), statistics.median(bare), bare[0], quartiles[0], quartiles[2], bare[-1],
                                statistics.median(row["job_s"] for row in captured) if captured else None,
                                statistics.median(row["process_s"] for row in captured) if captured else None,
                                captured[0]["messages"] if captured else None)
    return result


def kind_of(actual, target):
    """On one node no message uses the network, so a run there, or a target there, has none to change."""
    if actual == target:
        return "self"
    if actual.nodes == target.nodes:
        return "network"
    if actual.network == target.network or target.nodes == 1:
        return "nodes"
    return "both"


def all_predictions(runs, predictions):
    """The median over an actual case's captured runs, for every target that was measured."""
    measured = measured_cases(runs)
    seconds = {}
    for (run_id, predictor), answer in predictions.items():
        if run_id not in runs:
            continue
        actual = runs[run_id]["case"]
        for (nodes, network), predicted_s in answer.items():
            target = Case(actual.program, actual.ranks, nodes, network)
            if target in measured:
                seconds.setdefault((predictor, actual, target), []).append(predicted_s)
    return [Prediction(kind_of(actual, target), predictor, actual, target, statistics.median(values), min(values),
                       max(values), measured[target])
            for (predictor, actual, target), values in sorted(seconds.items())]


class Summary(NamedTuple):
    cases: int
    median_percent: float  # of the errors' amounts
    worst_percent: float   # with its sign
    within_3: float        # shares
    within_6: float
    in_spread: Optional[float]


def summary_of(errors, in_spread=None):
    amounts = [abs(error) for error in errors]
    return Summary(len(errors), statistics.median(amounts), max(errors, key=abs),
                   sum(amount <= 3 for amount in amounts) / len(errors),
                   sum(amount <= 6 for amount in amounts) / len(errors),
                   sum(in_spread) / len(in_spread) if in_spread else None)
