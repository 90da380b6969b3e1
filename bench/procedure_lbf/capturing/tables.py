"""Predicted against measured, as Markdown."""

import statistics
from typing import NamedTuple

from driver.tables import table

from . import plan

AIM_PERCENT = 2.0  # median error; TR Fig. 3 has 0.6


class Measured(NamedTuple):
    median_s: float
    low_s: float
    high_s: float
    runs: int

    def percent(self, seconds):
        return 100 * (seconds / self.median_s - 1)

    def cells(self):
        return [f"{self.median_s:.3f}", f"{self.percent(self.low_s):+.1f} .. {self.percent(self.high_s):+.1f}"]


def measured_of(times):
    """{(program, ranks, version): Measured} of sorted seconds."""
    return {key: Measured(statistics.median(values), values[0], values[-1], len(values)) for key, values in times.items()}


class Outcome(NamedTuple):
    """One modification: medians over the captured runs of what each predicts."""
    program: str
    ranks: int
    modification: plan.Modification
    original: Measured
    modified: Measured
    as_it_ran_s: float
    moved_s: float
    moved_low_s: float
    moved_high_s: float
    zeroed_s: float

    @property
    def error_percent(self):
        return self.modified.percent(self.moved_s)

    def gain_percent(self, seconds):
        return 100 * (1 - seconds / self.as_it_ran_s)


def outcome_of(program, ranks, modification, measured, predictions):
    """`predictions`: (as it ran, moved, zeroed) of each captured run."""
    as_it_ran, moved, zeroed = zip(*predictions)
    return Outcome(program, ranks, modification, measured[program, ranks, plan.ORIGINAL],
                   measured[program, ranks, modification.procedure], statistics.median(as_it_ran), statistics.median(moved),
                   min(moved), max(moved), statistics.median(zeroed))


def errors_table(outcomes):
    """TR Fig. 3: predicted and measured time of the modified program, and how far they are apart."""
    rows = []
    for one in outcomes:
        inside = " ~" if one.modified.low_s <= one.moved_s <= one.modified.high_s else ""
        rows.append([one.program, one.ranks, one.modification.procedure, one.modification.to, *one.original.cells(),
                     f"{one.as_it_ran_s:.3f}", f"{one.original.percent(one.as_it_ran_s):+.1f}",
                     f"{one.moved_s:.3f}", f"{one.moved_low_s:.3f} .. {one.moved_high_s:.3f}", *one.modified.cells(),
                     f"{one.moved_s - one.modified.median_s:+.3f}", f"{one.error_percent:+.1f}{inside}"])
    return table(["program", "ranks", "procedure", "moved to", "original s", "min .. max %", "replayed s", "error %",
                  "procedure LBF s", "of single runs", "measured s", "min .. max %", "difference s", "error %"], rows)


def gains_table(outcomes):
    """TR Fig. 4: what moving gains, and what Critical Path Zeroing makes of it; the last column is what really was gained."""
    rows = [[one.program, one.ranks, one.modification.procedure, f"{one.moved_s:.3f}", f"{one.gain_percent(one.moved_s):.1f}",
             f"{one.zeroed_s:.3f}", f"{one.gain_percent(one.zeroed_s):.1f}",
             f"{-one.original.percent(one.modified.median_s):.1f}"] for one in outcomes]
    return table(["program", "ranks", "procedure", "procedure LBF s", "improvement %", "Critical Path Zeroing s", "improvement %",
                  "measured improvement %"], rows)


def overhead_table(cases, measured):
    rows = []
    for program, ranks in cases:
        bare, captured = measured[program, ranks, plan.ORIGINAL], measured[program, ranks, plan.CAPTURED]
        rows.append([program, ranks, *bare.cells(), *captured.cells(), f"{bare.percent(captured.median_s):+.1f}"])
    return table(["program", "ranks", "bare s", "min .. max %", "captured s", "min .. max %", "difference %"], rows)


def summary_of(outcomes):
    errors = [one.error_percent for one in outcomes]
    return statistics.median(map(abs, errors)), max(errors, key=abs)


def lines_of(facts, cases, outcomes, measured):
    median, worst = summary_of(outcomes)
    within = sum(abs(one.error_percent) <= AIM_PERCENT for one in outcomes)
    return [f"Measured {facts['date']}, {facts['machine']}; {facts['versions']}. Command: `{facts['command']}`. {plan.NODES} nodes of "
            f"one pinned core each, ranks laid out cyclically; {facts['unit_steps']} steps a unit; load before the runs "
            f"{facts['load']}.", "",
            *errors_table(outcomes),
            f"Median error {median:.1f} % (aim {AIM_PERCENT:g}; TR Fig. 3: 0.6), worst {worst:+.1f} %; {within} of {len(outcomes)} within "
            f"{AIM_PERCENT:g} %.", "",
            *gains_table(outcomes), *overhead_table(cases, measured)]
