"""Tables of the measurement as Markdown: dedicated and oversubscribed apart, every miss, what was measured. Nothing is run here."""

import math
import statistics
from typing import NamedTuple, Optional

from driver.tables import table

from . import programs
from .plan import CALM_PERCENT, Case
from .predict import PREDICTORS, key_of


class Aim(NamedTuple):
    median: float
    p90: float


# docs/accuracy.md; the configuration that ran, and others.
AIMS = {"dedicated": (Aim(3, 6), Aim(5, 12)), "oversubscribed": (Aim(6, 20), Aim(8, 20))}
COVERAGE_PERCENT = 90
HALF_WIDTH_PERCENT = {"dedicated": 12}


class Prediction(NamedTuple):
    ran: Case
    target: Case
    error_percent: float           # 100 (predicted - measured) / measured
    half_percent: Optional[float]  # of the predicted time
    is_inside: Optional[bool]      # the measured time in the interval

    @property
    def is_self(self):
        return self.ran == self.target


def calm_only(rounds):
    """{case: calm rounds}, of cases that have one."""
    calm = {case: [one for one in of_case if one.is_calm] for case, of_case in rounds.items()}
    return {case: of_case for case, of_case in sorted(calm.items()) if of_case}


def measured_s(rounds):
    return statistics.median(one.bare_s for one in rounds)


def predictions_of(told, known, predictor):
    """Every captured run of a calm round for every case that was told: medians over the rounds of a case."""
    result = []
    for ran, rounds in told.items():
        for target, of_target in told.items():
            answers = [known[one.captured["id"], predictor].get(key_of(target)) for one in rounds
                       if (one.captured["id"], predictor) in known]
            answers = [answer for answer in answers if answer is not None]
            if (ran.program, ran.ranks) != (target.program, target.ranks) or not answers:
                continue
            predicted_s, truth_s = statistics.median(answer.predicted_s for answer in answers), measured_s(of_target)
            halves = [answer.half_percent for answer in answers if answer.half_percent is not None]
            half = statistics.median(halves) if halves else None
            result.append(Prediction(ran, target, 100 * (predicted_s / truth_s - 1), half,
                                     None if half is None else abs(truth_s / predicted_s - 1) <= half / 100))
    return result


def percentile_90(amounts):
    return sorted(amounts)[math.ceil(0.9 * len(amounts)) - 1]


def marked(value, limit, text):
    return f"**{text}**" if value > limit else text


def error_cells(predictions, aim=None):
    """How many, median, p90 of the errors' amounts, and the worst with its sign; bold above the aim."""
    if not predictions:
        return ["", "", "", ""]
    amounts = [abs(one.error_percent) for one in predictions]
    median, p90 = statistics.median(amounts), percentile_90(amounts)
    aim = aim or Aim(math.inf, math.inf)
    return [len(amounts), marked(median, aim.median, f"{median:.1f}"), marked(p90, aim.p90, f"{p90:.1f}"),
            f"{max((one.error_percent for one in predictions), key=abs):+.1f}"]


def interval_cells(predictions, half_limit):
    """Share of outcomes inside the printed interval, and its median half width."""
    known = [one for one in predictions if one.half_percent is not None]
    if not known:
        return ["", ""]
    inside = 100 * sum(one.is_inside for one in known) / len(known)
    half = statistics.median(one.half_percent for one in known)
    return [marked(COVERAGE_PERCENT, inside, f"{inside:.0f}"), marked(half, half_limit, f"{half:.1f}")]


class Report:
    def __init__(self, rounds, known, failures):
        self.rounds, self.told, self.failures = rounds, calm_only(rounds), failures
        self.predictions = {predictor: predictions_of(self.told, known, predictor) for predictor in PREDICTORS}

    def lines(self):
        return [*self.errors("dedicated"), *self.errors("oversubscribed"), *self.misses(), *self.measured(), *self.failed()]

    def errors(self, kind):
        """One kind of cases; a mean over both would say nothing of either."""
        of_itself, of_others = AIMS[kind]
        half_limit = HALF_WIDTH_PERCENT.get(kind, math.inf)
        chosen = {predictor: [one for one in predictions if one.target.kind == kind] for predictor, predictions in self.predictions.items()}
        names = list(dict.fromkeys(one.target.program for one in chosen["lbf"]))
        if not names:
            return []
        rows = []
        for name in [*names, None]:
            def pick(predictor, is_self, program=name):
                return [one for one in chosen[predictor] if program in (None, one.target.program) and one.is_self == is_self]

            aims = (of_itself, of_others) if name is None else (None, None)
            rows.append([name or "all", *error_cells(pick("lbf", True), aims[0]), *error_cells(pick("lbf", False), aims[1]),
                         *interval_cells(pick("lbf", False), half_limit if name is None else math.inf),
                         *error_cells(pick("simgrid", True))[1:], *error_cells(pick("simgrid", False))[1:]])
        header = ["program"]
        for whose in ("itself", "others"):
            header += [f"{whose}: cases", "median %", "p90 %", "worst %"]
        header += ["inside interval %", "half width %", "SimGrid, itself: median %", "p90 %", "worst %", "SimGrid, others: median %", "p90 %",
                   "worst %"]
        if not chosen["simgrid"]:
            header, rows = header[:11], [row[:11] for row in rows]
        return [f"#### {kind.capitalize()}: aim {of_itself.median} and {of_itself.p90} % from itself, {of_others.median} and {of_others.p90} % "
                f"for others (median, p90), {COVERAGE_PERCENT} % inside the interval; bold misses it", "", *table(header, rows)]

    def misses(self):
        """Each prediction beyond the p90 aim, with what was measured of both cases; its cause is for people to find."""
        rows, itself = [], {one.target: one for one in self.predictions["lbf"] if one.is_self}
        for one in sorted(self.predictions["lbf"], key=lambda one: -abs(one.error_percent)):
            if abs(one.error_percent) <= AIMS[one.target.kind][0 if one.is_self else 1].p90:
                continue
            here, there = (self.told[case][0].captured for case in (one.ran, one.target))
            rows.append([one.target.program, one.target.where, "itself" if one.is_self else one.ran.where, f"{one.error_percent:+.1f}",
                         "" if one.half_percent is None else f"{one.half_percent:.0f}{'' if one.is_inside else ', outside'}",
                         f"{itself[one.target].error_percent:+.1f}" if one.target in itself else "",
                         f"{100 * (here['process_s'] / there['process_s'] - 1):+.1f}", f"{there['mpi_percent']:.0f}", there["calls"],
                         f"{there['messages']:.0f}", f"{there['bytes'] / 1e6:.1f}", f"{here['unseen_percent']:.0f}"])
        if not rows:
            return []
        return ["#### Every prediction beyond the p90 aim", "",
                *table(["program", "target", "ran", "error %", "interval +- %", "target from itself %", "more process time where it ran %",
                        "target: in MPI %", "longest calls, % of the run", "messages", "MB", "not captured where it ran %"], rows)]

    def measured(self):
        rows = []
        for case, rounds in sorted(self.rounds.items()):
            calm, row = self.told.get(case), rounds[-1].captured
            chosen = calm or rounds
            bare_s, captured_s = measured_s(chosen), statistics.median(one.captured["seconds"] for one in chosen)
            rows.append([case.program, case.where, f"{bare_s:.2f}", f"{chosen[0].apart_percent:.1f}", f"{len(calm or ())} of {len(rounds)}",
                         f"{100 * (captured_s / bare_s - 1):+.1f}", f"{row['mpi_percent']:.0f}", row["calls"], f"{row['messages']:.0f}",
                         f"{row['bytes'] / 1e6:.1f}", f"{row['unseen_percent']:.0f}", "" if calm else "cannot be told"])
        return [f"#### What was measured: a round is a captured run between two bare ones, calm where these differ by at most {CALM_PERCENT} %", "",
                *table(["program", "N on MxP", "bare s", "apart %", "calm rounds", "captured, %", "in MPI %", "longest calls, % of the run",
                        "messages", "MB", "not captured %", ""], rows),
                *(f"*{name}*: {program.what} (package {program.package})." for name, program in programs.ALL.items()
                  if any(case.program == name for case in self.rounds)), ""]

    def failed(self):
        return ["#### Did not run", "", *self.failures, ""] if self.failures else []
