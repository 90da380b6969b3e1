"""The results as Markdown: the forms of SKEL Figs. 2 to 7."""

import json
import os
import statistics

from driver.tables import table

from . import plan


def mean(values):
    values = list(values)
    return statistics.fmean(values) if values else None


def cell(value, sign=""):
    return "" if value is None else f"{value:{sign}.1f}"


class Results:
    """Medians of runs, and the errors of three predictions of each application in each scenario."""

    def __init__(self, rows, facts, machine):
        self.facts, self.machine = facts, machine
        self.medians = {}
        times = {}
        for row in rows.values():
            times.setdefault((row["program"], row["scenario"], row["what"]), []).append(row["time_s"])
        self.runs = {key: len(values) for key, values in times.items()}
        self.medians = {key: statistics.median(values) for key, values in times.items()}
        self.programs = [name for name in plan.NAMES if any(key[0] == name for key in self.medians)]
        self.whats = [what for what in map(plan.what_of, plan.TIMES_S) if any(key[2] == what for key in self.medians)]
        self.scenarios = [scenario for scenario in plan.SCENARIOS
                          if any(key[1] == scenario.name for key in self.medians)]

    def slowdown(self, program, scenario, what):
        now, then = (self.medians.get((program, name, what)) for name in (scenario, plan.DEDICATED.name))
        return now / then if now and then else None

    def error(self, program, scenario, what):
        """Percent: 100 (predicted - measured) / measured. `what`: a skeleton, "small", or "average"."""
        measured = self.slowdown(program, scenario, "app")
        if what == "average":
            predicted = mean(s for s in (self.slowdown(name, scenario, "app") for name in self.programs) if s is not None)
        else:
            predicted = self.slowdown(program, scenario, what)
        return 100 * (predicted / measured - 1) if measured and predicted else None

    def absolute(self, programs, scenarios, what):
        """Sizes of all errors there are."""
        errors = (self.error(program, scenario.name, what) for program in programs for scenario in scenarios)
        return [abs(error) for error in errors if error is not None]

    def is_too_short(self, program, what):
        return self.facts.get(program, {}).get("built", {}).get(what, {}).get("too_short", False)

    # -- tables
    def lines(self, compared):
        return [*self.head(), *self.measured(), *self.figure_2(compared), *self.figure_3(), *self.figure_4(),
                *self.figure_5(), *self.figure_6(), *self.figure_7(), *self.refused()]

    def head(self):
        machine = self.machine
        over = [error for what in self.whats if float(what.removeprefix("skeleton-")) >= 2
                for error in self.absolute(self.programs, self.scenarios, what)]
        every = [error for what in self.whats for error in self.absolute(self.programs, self.scenarios, what)]
        lines = [f"Measured {machine['date']}, {machine['machine']}; {machine['versions']}. Command: `{machine['command']}`. Links in "
                 f"dedicated runs: {machine['dedicated_rate']}.", ""]
        if every:
            lines += [f"Average error over all programs, scenarios and sizes: {mean(every):.1f} % (paper: 6.7 %)" +
                      (f"; over skeletons of 2 s and more: {mean(over):.1f} % (aim: 5 %; paper, 5 and 10 s: 5 to 6 %)." if over
                       else "."), ""]
        return lines

    def measured(self):
        rows = []
        for program in self.programs:
            for scenario in (plan.DEDICATED, *self.scenarios):
                key = (program, scenario.name, "app")
                if key not in self.medians:
                    continue
                errors = [cell(self.error(program, scenario.name, what), "+") if scenario is not plan.DEDICATED else
                          f"{self.medians[program, scenario.name, what]:.3f} s" if (program, scenario.name, what) in self.medians
                          else "" for what in self.whats]
                rows.append([program, scenario.text, f"{self.medians[key]:.3f}", self.runs[key],
                             cell(self.slowdown(program, scenario.name, "app")), *errors])
        return ["#### Every case: measured times, and errors of the predictions in % (first row: the skeletons' own times)", "",
                *table(["program", "scenario", "measured s", "runs", "slowdown", *self.whats], rows)]

    def figure_2(self, compared):
        rows = []
        for program in self.programs:
            answer = compared.get(program, {})
            if "rows" not in answer:
                if "failed" in answer:
                    rows.append([program, "not captured: " + answer["failed"]])
                continue
            for row in answer["rows"]:
                by_what = dict(zip(answer["programs"][1:], row["percent"][1:]))
                rows.append([program, row["name"], cell(row["percent"][0]),
                             *[cell(by_what.get(f"{program}-{what}.c")) for what in self.whats]])
        if not rows:
            return []
        width = 3 + len(self.whats)
        return ["#### Share of time, application and skeletons captured themselves, in % (form of Fig. 2)", "",
                *table(["program", "activity", "application", *self.whats], [row + [""] * (width - len(row)) for row in rows])]

    def figure_3(self):
        rows = [[program, *[cell(mean(self.absolute([program], self.scenarios, what))) +
                            (" !" if self.is_too_short(program, what) else "") for what in self.whats]]
                for program in self.programs]
        rows.append(["average", *[cell(mean(self.absolute(self.programs, self.scenarios, what))) for what in self.whats]])
        return ["#### Error in % by program and size, averaged over the scenarios (form of Fig. 3; ! below the smallest good size)",
                "", *table(["program", *self.whats], rows)]

    def figure_4(self):
        rows = [[program, f"{facts['shortest_good_s']:.3g}"] for program in self.programs
                if "shortest_good_s" in (facts := self.facts.get(program, {}))]
        return ["#### Smallest good skeleton (form of Fig. 4)", "", *table(["program", "seconds"], rows)] if rows else []

    def figure_5(self):
        rows = []
        for what in self.whats:
            by_program = [(mean(self.absolute([program], self.scenarios, what)), program) for program in self.programs]
            known = sorted((error, program) for error, program in by_program if error is not None)
            if known:
                rows.append([what, cell(known[0][0]) + f" ({known[0][1]})", cell(mean(error for error, _ in known)),
                             cell(known[-1][0]) + f" ({known[-1][1]})"])
        return ["#### Error in % by size (form of Fig. 5)", "", *table(["size", "best program", "average", "worst program"], rows)]

    def figure_6(self):
        rows = []
        for program in self.programs:
            largest = next((what for what in self.whats if self.absolute([program], self.scenarios, what)), None)
            if largest:
                rows.append([program, largest, *[cell(self.error(program, scenario.name, largest), "+")
                                                 for scenario in self.scenarios]])
        if rows:
            rows.append(["average size", "", *[cell(mean(self.absolute([row[0]], [scenario], row[1])[0] for row in rows
                                                         if self.absolute([row[0]], [scenario], row[1])))
                                               for scenario in self.scenarios]])
        return ["#### Error in % by scenario, the largest skeleton of each program (form of Fig. 6)", "",
                *table(["program", "size", *[scenario.text for scenario in self.scenarios]], rows)]

    def figure_7(self):
        rows = []
        for name, text in ((what, what) for what in self.whats):
            rows.append(self.figure_7_row(name, text))
        rows.append(self.figure_7_row("small", "small input"))
        rows.append(self.figure_7_row("average", "average prediction"))
        return ["#### Against a small input and average prediction, error in % (form of Fig. 7: one node busy and one link limited; "
                "then all scenarios)", "",
                *table(["predicted by", "best", "average", "worst", "average, all scenarios"], [row for row in rows if row])]

    def figure_7_row(self, what, text):
        scenario = [scenario for scenario in self.scenarios if scenario.name == plan.FIGURE_7]
        errors = self.absolute(self.programs, scenario, what)
        everywhere = self.absolute(self.programs, self.scenarios, what)
        if not everywhere:
            return None
        return [text, *([cell(min(errors)), cell(mean(errors)), cell(max(errors))] if errors else ["", "", ""]),
                cell(mean(everywhere))]

    def refused(self):
        lines = [f"- {program}: no skeleton: {self.facts[program]['failed']}" for program in plan.NAMES
                 if "failed" in self.facts.get(program, {})]
        lines += [f"- {program}: {', '.join(facts['left_out'])} left out: more than half of the application's "
                  f"{facts['application_s']:.1f} s" for program in self.programs
                  if (facts := self.facts.get(program, {})).get("left_out")]
        return [*lines, ""] if lines else []


def read_compared(output):
    folder, compared = os.path.join(output, "compared"), {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith(".json"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                compared[name.removesuffix(".json")] = json.load(file)
    return compared
