"""Predicted gain against measured gain, and every placement, as Markdown."""

import statistics
from typing import NamedTuple

from driver.tables import table

from . import plan

WITHIN_PERCENT = 3.0  # of the best: what the first choice is held to


class Measured(NamedTuple):
    median_s: float
    quartile_1_s: float
    quartile_3_s: float
    runs: int

    def percent(self, seconds):
        return 100 * (seconds / self.median_s - 1)


def measured_of(times):
    """{(program, placement): Measured} of sorted seconds."""
    result = {}
    for key, values in times.items():
        quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
        result[key] = Measured(statistics.median(values), quartiles[0], quartiles[2], len(values))
    return result


class Outcome(NamedTuple):
    """One program: what ran, what was advised, what was best of all that ran for real."""
    program: str
    ran: plan.Placement
    advised: plan.Placement
    best: plan.Placement
    predicted_gain: float  # percent
    low_gain: float
    high_gain: float
    measured_gain: float
    behind_best: float


def outcome_of(program, case, measured):
    """`case`: placements, predicted seconds and advice of the program; every placement was measured."""
    of = {placement.nodes: placement for placement in case["placements"]}
    ran = plan.ran(case["nodes"])
    advised = of[plan.advised_nodes(case["advice"]) or ran.nodes]
    seconds = {placement.name: measured[program, placement.name].median_s for placement in of.values()}
    best = min(of.values(), key=lambda placement: seconds[placement.name])
    advice = case["advice"]["advice"] or {"gain_percent": 0.0, "gain_low_percent": 0.0, "gain_high_percent": 0.0}
    return Outcome(program, ran, advised, best, advice["gain_percent"], advice["gain_low_percent"], advice["gain_high_percent"],
                   100 * (1 - seconds[advised.name] / seconds[ran.name]), 100 * (seconds[advised.name] / seconds[best.name] - 1))


def summary(outcomes):
    rows = [[one.program, plan.PROGRAMS[one.program][0], one.ran.name, one.advised.name,
             f"{one.predicted_gain:.1f} ({one.low_gain:.1f} .. {one.high_gain:.1f})", f"{one.measured_gain:.1f}", one.best.name,
             f"{one.behind_best:+.1f}"] for one in outcomes]
    good = sum(one.behind_best <= WITHIN_PERCENT for one in outcomes)
    return [*table(["program", "link", "what ran", "first choice", "predicted gain %", "measured gain %", "best of all that ran",
                    "first choice behind it %"], rows),
            f"{good} of {len(outcomes)} first choices are the best of all placements, or within {WITHIN_PERCENT:g} % of it.", ""]


def details(outcome, case, measured):
    rows = []
    for placement in sorted(case["placements"], key=lambda one: measured[outcome.program, one.name].median_s):
        real = measured[outcome.program, placement.name]
        predicted = case["predicted"][placement.name]
        marks = [word for word, one in (("ran", outcome.ran), ("first choice", outcome.advised), ("best", outcome.best))
                 if one.nodes == placement.nodes]
        rows.append([placement.name, "".join(map(str, placement.nodes)), f"{predicted:.3f}", f"{real.median_s:.3f}",
                     f"{real.percent(real.quartile_1_s):+.1f} .. {real.percent(real.quartile_3_s):+.1f}", real.runs,
                     f"{100 * (predicted / real.median_s - 1):+.1f}", ", ".join(marks)])
    return [f"#### {outcome.program}: {plan.PROGRAMS[outcome.program][1]} ({plan.PROGRAMS[outcome.program][0]})", "",
            *table(["placement", "node of each rank", "predicted s", "measured s", "quartiles %", "runs", "error %", ""], rows)]


def lines_of(facts, cases, times):
    measured = measured_of(times)
    outcomes = [outcome_of(program, case, measured) for program, case in cases.items()]
    lines = [f"Measured {facts['date']}, {facts['machine']}; {facts['versions']}. Command: `{facts['command']}`. "
             f"{facts['nodes']} nodes of one pinned core each, {plan.RANKS} ranks.", "", *summary(outcomes)]
    for outcome in outcomes:
        lines += details(outcome, cases[outcome.program], measured)
    return lines, outcomes
