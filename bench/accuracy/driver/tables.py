"""The results as Markdown, which reads as text too: the forms of TSE Figs. 7, 9, 10 and 8, a summary, the papers' own."""

from . import intervals, papers, plan
from .analysis import all_predictions, measured_cases, summary_of

KINDS = (("self", "itself"), ("nodes", "another node count"), ("network", "another network"), ("both", "both changed"))
PREDICTORS = {"lbf": "lbf", "simgrid": "SimGrid"}


def table(header, rows):
    """A Markdown table whose columns line up."""
    widths = [max(len(str(row[column])) for row in [header, *rows]) for column in range(len(header))]

    def line(cells):
        return "| " + " | ".join(str(cell).ljust(width) for cell, width in zip(cells, widths)) + " |"

    return [line(header), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, rows), ""]


def measured_cells(measured):
    """Median, quartiles, extremes: the last two in percent of the median."""
    return [f"{measured.median_s:.3f}",
            f"{measured.percent(measured.quartile_1_s):+.1f} .. {measured.percent(measured.quartile_3_s):+.1f}",
            f"{measured.percent(measured.low_s):+.1f} .. {measured.percent(measured.high_s):+.1f}", measured.runs]


MEASURED_HEADER = ["measured s", "quartiles %", "min .. max %", "runs"]


def error_cell(prediction):
    if prediction is None:
        return ""
    mark = " ~" if prediction.measured.holds(prediction.predicted_s) else ""
    return f"{prediction.error_percent:+.1f}{mark}"


def target_text(case):
    return f"{case.ranks}/{case.nodes}"


def actual_header(predictors, actuals):
    return [f"from {actual}" + (f", {PREDICTORS[predictor]}" if len(predictors) > 1 else "")
            for actual in actuals for predictor in predictors]


class Report:
    def __init__(self, runs, predictions, networks, plan_facts):
        self.measured = measured_cases(runs)
        self.predictions = {(p.predictor, p.actual, p.target): p for p in all_predictions(runs, predictions)}
        self.predictors = [p for p in PREDICTORS if any(key[0] == p for key in self.predictions)]
        self.networks = [n for n in networks if any(case.network == n for case in self.measured)]
        self.facts = plan_facts

    def lines(self):
        return [*self.head(), *self.nodes_tables(), *self.network_table(), *self.both_table(), *self.summary(),
                *self.large_errors(), *self.intervals(), *self.papers(), *self.process_times(), *self.overhead()]

    def head(self):
        facts = self.facts
        lines = [f"Measured {facts['date']}, {facts['machine']}; {facts['versions']}. Command: `{facts['command']}`.",
                 *(f"Then {later['date']}, {later['versions']}: `{later['command']}`." for later in facts.get("later", [])), ""]
        if facts["nodes"] < plan.PAPER_NODES:
            lines += [f"**{facts['nodes']} nodes of one core, not the papers' {plan.PAPER_NODES}:** this machine has no more "
                      "cores to pin.", ""]
        return lines

    def errors(self, actual, target):
        return [error_cell(self.predictions.get((predictor, actual, target))) for predictor in self.predictors]

    def nodes_tables(self):
        """TSE Fig. 7: rows are targets, with what was measured there; columns are configurations that ran."""
        lines = []
        for network in self.networks:
            for ranks in sorted({case.ranks for case in self.measured}):
                counts = sorted({case.nodes for case in self.measured if case.ranks == ranks})

                def case_of(program, nodes):
                    return next((case for case in self.measured if (case.program, case.ranks, case.nodes) ==
                                 (program, ranks, nodes) and (nodes == 1 or case.network == network)), None)

                rows = []
                for program in self.programs():
                    for nodes in counts:
                        target = case_of(program, nodes)
                        if target is None or (nodes == 1 and network != self.networks[0] and
                                              all(case_of(program, n) is None for n in counts if n > 1)):
                            continue
                        cells = [cell for n in reversed(counts) for cell in self.errors(case_of(program, n), target)]
                        rows.append([program, target_text(target), *measured_cells(self.measured[target]), *cells])
                if rows:
                    actuals = [f"{ranks}/{n}" for n in reversed(counts)]
                    lines += [f"#### Node count: {ranks} processes, {network} (form of TSE Fig. 7); errors in %", ""]
                    lines += table(["program", "target", *MEASURED_HEADER,
                                    *actual_header(self.predictors, actuals)], rows)
        return lines

    def programs(self):
        return list(dict.fromkeys(case.program for case in self.measured))

    def network_table(self):
        """TSE Fig. 9: the same configuration on another network."""
        rows = []
        for target, measured in self.measured.items():
            if target.nodes == 1 or len(self.networks) < 2:
                continue
            cells = []
            for network in self.networks:
                cells += self.errors(target._replace(network=network), target)
            rows.append([target.program, target_text(target), target.network, *measured_cells(measured), *cells])
        if not rows:
            return []
        return ["#### Network (form of TSE Fig. 9); errors in %", "",
                *table(["program", "target", "network", *MEASURED_HEADER,
                        *actual_header(self.predictors, self.networks)], rows)]

    def both_table(self):
        """TSE Fig. 10: node count and network at once."""
        pairs = sorted({(p.target, p.actual) for p in self.predictions.values() if p.kind == "both"})
        rows = [[target.program, target_text(target), target.network, *measured_cells(self.measured[target]),
                 target_text(actual) + (f" {actual.network}" if actual.nodes > 1 else ""), *self.errors(actual, target)]
                for target, actual in pairs]
        if not rows:
            return []
        return ["#### Node count and network (form of TSE Fig. 10); errors in %", "",
                *table(["program", "target", "network", *MEASURED_HEADER, "from",
                        *[f"{PREDICTORS[predictor]} error" for predictor in self.predictors]], rows)]

    def summary(self):
        rows = []
        for predictor in self.predictors:
            own = [p for p in self.predictions.values() if p.predictor == predictor]
            others = [p for p in own if p.kind != "self"]
            groups = [(text, [p for p in own if p.kind == kind]) for kind, text in KINDS]
            groups.append(("all but itself", others))
            groups += [(f"... of {program}", [p for p in others if p.target.program == program])
                       for program in self.programs()]
            for text, chosen in groups:
                if chosen:
                    summary = summary_of([p.error_percent for p in chosen],
                                         [p.measured.holds(p.predicted_s) for p in chosen])
                    rows.append([PREDICTORS[predictor], text, *summary_cells(summary), f"{100 * summary.in_spread:.0f} %"])
        noise = [max(abs(m.percent(m.low_s)), abs(m.percent(m.high_s))) for m in self.measured.values() if m.runs > 1]
        lines = ["#### Summary", "",
                 *table(["predictor", "predicted from", *SUMMARY_HEADER, "within the real runs' range"], rows)]
        if noise:
            worst = max(noise)
            lines += [f"The real runs of one case differ from their own median by up to {sorted(noise)[len(noise) // 2]:.1f} % "
                      f"(median over the cases; worst case {worst:.1f} %).", ""]
        return lines

    def large_errors(self):
        """What is known, by measurement, of each prediction that misses the aim."""
        chosen = [p for p in self.predictions.values() if p.predictor == "lbf" and p.kind != "self" and abs(p.error_percent) > AIM_PERCENT]
        if not chosen:
            return []
        rows, counts = [], dict.fromkeys(LARGE_ERRORS, 0)
        for p in sorted(chosen, key=lambda p: -abs(p.error_percent)):
            itself = self.predictions.get(("lbf", p.target, p.target))
            here, there = self.measured[p.actual].process_s, p.measured.process_s
            processors = min(p.target.ranks, p.target.nodes)  # a node has one core
            of_work = 100 * (here - there) / processors / p.measured.median_s if here and there else None
            what = kind_of_large_error(p, itself, of_work)
            counts[what] += 1
            rows.append([p.target.program, f"{target_text(p.target)} {p.target.network if p.target.nodes > 1 else ''}".strip(),
                         f"{target_text(p.actual)} {p.actual.network if p.actual.nodes > 1 else ''}".strip(), error_cell(p),
                         f"{p.measured.percent(p.measured.low_s):+.1f} .. {p.measured.percent(p.measured.high_s):+.1f}",
                         error_cell(itself), "" if of_work is None else f"{of_work:+.1f}", what])
        return [f"#### Off by more than {AIM_PERCENT} %: {len(chosen)} predictions for other configurations", "",
                *table(["program", "target", "from", "error %", "real runs' range %", "target from itself %",
                        "more process time where it ran, % of the run", "what goes with it"], rows),
                "; ".join(f"*{what}*: {count}" for what, count in counts.items()) + ".", ""]

    def intervals(self):
        return ["#### How wide an interval must be: that of lbf-advise on these predictions, all but itself", "",
                *table(["program", "predictions", "median half width", "held", "held by the self-prediction error alone",
                        "held by a fit without this program"], intervals.rows(self.predictions))]

    @staticmethod
    def papers():
        rows = []
        own = [("Fig. 7, itself", [p for p in papers.NODES if p.target == p.actual]),
               ("Fig. 7, another node count", [p for p in papers.NODES if p.target != p.actual]),
               ("Fig. 9, another network", papers.NETWORK), ("Fig. 10, both changed", papers.BOTH)]
        for text, predictions in own:
            rows.append([text, *summary_cells(summary_of([p.error_percent for p in predictions]))])
        details = []
        for program in dict.fromkeys(p.program for p in papers.NODES):
            def errors(predictions, chosen=program):
                return ", ".join(f"{p.error_percent:+.1f}" for p in predictions if p.program == chosen)
            details.append([program, errors([p for p in papers.NODES if p.target == p.actual]),
                            errors([p for p in papers.NODES if p.target != p.actual]), errors(papers.NETWORK),
                            errors(papers.BOTH)])
        return ["#### The papers' own errors (TSE; IBM SP-2, 4 and 16 nodes)", "",
                *table(["TSE", *SUMMARY_HEADER], rows),
                *table(["program", "Fig. 7, itself %", "Fig. 7, another node count %", "Fig. 9 %", "Fig. 10 %"], details)]

    def process_times(self):
        """What every prediction takes to be the same wherever the program runs."""
        rows = []
        for program, ranks in dict.fromkeys((case.program, case.ranks) for case in self.measured):
            of_case = {case: measured.process_s for case, measured in self.measured.items()
                       if (case.program, case.ranks) == (program, ranks) and measured.process_s}
            if not of_case:
                continue
            reference = max(of_case, key=lambda case: (case.nodes, case.network == self.networks[0]))
            others = [f"{target_text(case)}{f' {case.network}' if case.nodes > 1 else ''} "
                      f"{100 * (seconds / of_case[reference] - 1):+.1f}"
                      for case, seconds in of_case.items() if case != reference]
            rows.append([program, f"{target_text(reference)} {reference.network}", f"{of_case[reference]:.3f}",
                         ", ".join(others)])
        return ["#### Process time of all ranks, which predictions take to be the same everywhere", "",
                *table(["program", "N/M", "process time s", "in other configurations, %"], rows)]

    def overhead(self):
        """TSE Fig. 8, as far as these runs tell: docs/performance.md has a measurement made for it."""
        rows = []
        for case, measured in self.measured.items():
            if measured.captured_median_s is not None:
                rows.append([case.program, target_text(case), case.network, f"{measured.messages:.0f}",
                             f"{measured.median_s:.3f}", f"{measured.captured_median_s:.3f}",
                             f"{measured.percent(measured.captured_median_s):+.1f}",
                             f"{measured.percent(measured.low_s):+.1f} .. {measured.percent(measured.high_s):+.1f}"])
        return ["#### Captured beside bare runs (form of TSE Fig. 8)", "",
                *table(["program", "N/M", "network", "point-to-point messages", "bare s", "captured s", "difference %",
                        "bare min .. max %"], rows)]


AIM_PERCENT = 6
# What a large error goes with, the first that holds.
LARGE_ERRORS = ("within the real runs' range", "missed from itself, too", "process time differs", "both in part", "neither")


def kind_of_large_error(prediction, itself, of_work):
    """`itself`: the prediction of the same target from its own runs: what the model of messages misses there. `of_work`:
    how much longer the ranks computed where the program ran than on the target, in percent of the target's time. Each goes with an
    error where it is at least half as large and points the same way."""
    error = prediction.error_percent
    if prediction.measured.holds(prediction.predicted_s):
        return LARGE_ERRORS[0]

    def explains(amount):
        return amount is not None and amount * error > 0 and abs(amount) >= abs(error) / 2

    missed = itself.error_percent if itself else None
    if explains(missed):
        return LARGE_ERRORS[1]
    if explains(of_work):
        return LARGE_ERRORS[2]
    if missed is not None and of_work is not None and explains(missed + of_work):
        return LARGE_ERRORS[3]
    return LARGE_ERRORS[4]


SUMMARY_HEADER = ["cases", "median error", "worst error", "within 3 %", "within 6 %"]


def summary_cells(summary):
    return [summary.cases, f"{summary.median_percent:.1f} %", f"{summary.worst_percent:+.1f} %",
            f"{100 * summary.within_3:.0f} %", f"{100 * summary.within_6:.0f} %"]
