"""How many predictions the interval of lbf-advise holds: its rule (advisor/trust/trust.h) on these runs, and another fit without each program."""

import math
import os
import re
import statistics
from typing import NamedTuple

from .cluster import ROOT

CONSTANTS = ("kElsewherePercent", "kPerSelfError", "kPerFactorPercent", "kLeastErrorPercent")
WANTED_SHARE = 0.9
# What the fits choose from: kElsewherePercent and kPerFactorPercent.
ELSEWHERE = (1, 2, 3, 4, 5, 6, 8, 10)
PER_FACTOR = (0, 3, 5, 8, 10, 12, 15, 20, 25, 30)


class Rule(NamedTuple):
    elsewhere: float
    per_self_error: float
    per_factor: float
    least: float

    def half_width(self, case):
        """In percent of the prediction."""
        return self.elsewhere + self.per_self_error * max(case.self_percent, self.least) + self.per_factor * case.change


class Case(NamedTuple):
    program: str
    self_percent: float   # |measured / predicted - 1| of what ran
    change: float         # |ln(predicted / predicted as it ran)|
    off_percent: float    # |measured / predicted - 1| of the prediction


def rule_in_use():
    with open(os.path.join(ROOT, "advisor/trust/trust.h"), encoding="utf-8") as file:
        text = file.read()
    return Rule(*(float(re.search(rf"{name} = ([\d.]+);", text)[1]) for name in CONSTANTS))


def cases_of(predictions):
    """`predictions`: {(predictor, actual, target): Prediction}."""
    def off(prediction):
        return abs(100 * (prediction.measured.median_s / prediction.predicted_s - 1))

    cases = []
    for (predictor, actual, target), prediction in predictions.items():
        own = predictions.get((predictor, actual, actual))
        if predictor == "lbf" and own is not None and actual != target:
            cases.append(Case(target.program, off(own), abs(math.log(prediction.predicted_s / own.predicted_s)), off(prediction)))
    return cases


def share_held(rule, cases):
    return sum(case.off_percent <= rule.half_width(case) for case in cases) / len(cases)


def fitted_without(program, cases, rule):
    """The narrowest rule that holds WANTED_SHARE of the other programs' predictions; None where there are no others."""
    others = [case for case in cases if case.program != program]
    if not others:
        return None
    fits = [rule._replace(elsewhere=elsewhere, per_factor=per_factor) for elsewhere in ELSEWHERE for per_factor in PER_FACTOR]
    holding = [fit for fit in fits if share_held(fit, others) >= WANTED_SHARE]
    return min(holding, key=lambda fit: statistics.mean(map(fit.half_width, others)), default=None)


def rows(predictions):
    """Per program and of all: predictions, median half width, share held; held by the rule fitted to the other programs."""
    cases, rule = cases_of(predictions), rule_in_use()
    result = []
    for name in [*dict.fromkeys(case.program for case in cases), None]:
        chosen = [case for case in cases if name in (None, case.program)]
        other = fitted_without(name, cases, rule) if name else None
        result.append([name or "all", len(chosen), f"{statistics.median(map(rule.half_width, chosen)):.1f} %",
                       f"{100 * share_held(rule, chosen):.0f} %", f"{100 * share_held(Rule(0, 1, 0, rule.least), chosen):.0f} %",
                       f"{100 * share_held(other, chosen):.0f} %" if other else ""])
    return result
