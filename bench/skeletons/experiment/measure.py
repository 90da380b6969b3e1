"""All runs, with progress; each is a row of runs.csv as soon as it is done."""

import csv
import json
import os
import statistics
import subprocess
import time

from driver.cluster import MeasureError
from driver.measure import clock, write_row

from . import plan

COLUMNS = ("id", "program", "scenario", "what", "repeat", "time_s", "started", "load_before")


def read_runs(output):
    """{id: row}; numbers as numbers."""
    path = os.path.join(output, "runs.csv")
    rows = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["load_before"] is None:
                    continue  # cut by an interruption
                row["repeat"], row["time_s"] = int(row["repeat"]), float(row["time_s"])
                rows[row["id"]] = row
    return rows


def read_json(path, otherwise):
    if not os.path.exists(path):
        return otherwise
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write_json(path, document):
    part = path + ".part"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    os.replace(part, path)


class Experiment:
    def __init__(self, cluster, options, programs):
        self.cluster, self.options, self.programs = cluster, options, programs
        self.rows = read_runs(options.output)
        self.facts_path = os.path.join(options.output, "skeletons.json")
        self.facts = read_json(self.facts_path, {})
        self.began = time.monotonic()

    def path(self, *parts):
        path = os.path.join(self.options.output, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    # -- rows
    def add(self, run, time_s):
        path = os.path.join(self.options.output, "runs.csv")
        row = {"id": run.id, **run._asdict(), "time_s": f"{time_s:.6f}",
               "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "load_before": f"{os.getloadavg()[0]:.2f}"}
        write_row(path, row, COLUMNS)
        self.rows[run.id] = {**row, "time_s": time_s}

    def times(self, program, scenario, what):
        return [row["time_s"] for row in self.rows.values()
                if (row["program"], row["scenario"], row["what"]) == (program, scenario, what)]

    # -- how long
    def guess_s(self, run):
        """As such a run took, else as the dedicated one did times the program's (or a guessed) slowdown."""
        known = self.times(run.program, run.scenario, run.what)
        if known:
            return statistics.median(known)
        program = self.programs[run.program]
        dedicated = {"app": program.guess_s, "small": 0.3}.get(run.what)
        measured = self.times(run.program, plan.DEDICATED.name, run.what)
        if measured:
            dedicated = statistics.median(measured)
        if dedicated is None:
            dedicated = float(run.what.removeprefix("skeleton-"))
        app, app_now = (self.times(run.program, scenario, "app") for scenario in (plan.DEDICATED.name, run.scenario))
        if app and app_now:
            return dedicated * statistics.median(app_now) / statistics.median(app)
        return dedicated * next(s.slowdown for s in (plan.DEDICATED, *plan.SCENARIOS) if s.name == run.scenario)

    def times_for(self, program):
        """The sizes of skeletons that are made of a program; all, while nothing is known of it."""
        facts = self.facts.get(program, {"left_out": []})
        return [time_s for time_s in self.options.times if plan.what_of(time_s) not in facts["left_out"]]

    def missing(self, program):
        """The sizes of skeletons that are still to be built of it."""
        return [time_s for time_s in self.times_for(program)
                if plan.what_of(time_s) not in self.facts.get(program, {}).get("built", {})]

    def left(self):
        runs = []
        for program in self.options.programs:
            if "failed" in self.facts.get(program, {}):
                continue
            for scenario in (plan.DEDICATED, *self.options.scenarios):
                runs += plan.runs_of(self.programs[program], scenario.name, self.times_for(program), self.options.repeats)
            runs += self.closing(program)
        return [run for run in runs if run.id not in self.rows and
                (run.scenario == plan.DEDICATED.name or self.is_wanted(run))]

    def is_wanted(self, run):
        return run.repeat < self.options.long_repeats or self.guess_s(run) <= self.options.long_run

    def say(self, text):
        to_go = sum(self.guess_s(run) + plan.START_S for run in self.left())
        print(f"  {clock(time.monotonic() - self.began)} done, about {clock(to_go)} to go: {text}", flush=True)

    # -- what is done once for a program
    def prepare(self, name):
        """Dedicated runs, a captured run, the skeletons and their reference runs."""
        program, done = self.programs[name], self.facts.get(name, {})
        if "failed" in done or ("built" in done and not self.missing(name)):
            return
        self.cluster.use(plan.DEDICATED)
        for repeat in range(self.options.repeats):
            for what in program.inputs:
                run = plan.Run(name, plan.DEDICATED.name, what, repeat)
                if run.id not in self.rows:
                    self.say(run.id)
                    self.add(run, self.cluster.run_program(program, what == "small"))
        trace = self.path("traces", f"{name}.lbfw")
        if not os.path.exists(trace):
            self.say(f"{name}: captured")
            self.cluster.capture(program, trace)
        application_s = statistics.median(self.times(name, plan.DEDICATED.name, "app"))
        # A later command with more sizes builds those, with the application's time of the first.
        application_s = done.get("application_s", application_s)
        facts = {**done, "application_s": application_s, "built": dict(done.get("built", {})),
                 "left_out": list(done.get("left_out", []))}
        for time_s in self.missing(name):
            if time_s > plan.LARGEST_SHARE * application_s:
                facts["left_out"].append(plan.what_of(time_s))
                continue
            self.say(f"{name}: building a skeleton of {time_s:g} s")
            built = self.build(name, trace, time_s, application_s)
            if "failed" in built:
                facts["failed"] = built["failed"]
                break
            facts["built"][plan.what_of(time_s)] = built
        if facts["built"]:
            # Of the signature that the largest skeleton was made from: a smaller one may need a higher threshold.
            largest_s = next(time_s for time_s in plan.TIMES_S if plan.what_of(time_s) in facts["built"])
            shown = self.tool("show", trace, "--json", "--time", f"{largest_s:g}s")
            if shown.returncode == 0:
                facts["shortest_good_s"] = json.loads(shown.stdout)["shortest_good_s"]
        self.facts[name] = facts
        write_json(self.facts_path, self.facts)

    def tool(self, *words):
        return subprocess.run(["lbf-skeleton", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=self.cluster.env, timeout=600, check=False)

    def build(self, name, trace, time_s, application_s):
        """{"failed": why}, or what lbf-skeleton said of it."""
        source = self.source(name, plan.what_of(time_s))
        done = self.tool("build", trace, "--time", f"{time_s:g}s", "--application-time", f"{application_s:.6f}s", "-o", source)
        if done.returncode != 0:
            return {"failed": done.stderr.strip().removeprefix("lbf-skeleton: error: ")}
        warnings = [line.removeprefix("lbf-skeleton: warning: ") for line in done.stderr.splitlines() if "warning: " in line]
        return {"warnings": warnings, "too_short": any("dominant sequence" in warning for warning in warnings)}

    def source(self, name, what):
        return self.path("skeletons", f"{name}-{what}.c")

    # -- the runs
    def reference(self, name, what):
        """Skeleton runs where nothing is shared: the measured scaling ratio."""
        runs = [plan.Run(name, plan.DEDICATED.name, what, repeat) for repeat in range(self.options.repeats)]
        if all(run.id in self.rows for run in runs):
            return
        self.cluster.use(plan.DEDICATED)
        self.say(f"{name}/{plan.DEDICATED.name}/{what}")
        application_s = self.facts[name]["application_s"]
        answer = self.cluster.skeleton("run", self.source(name, what), "--reference", "--repeat", str(len(runs)),
                                       "--application-time", f"{application_s:.6f}s")
        for run, time_s in zip(runs, answer["sets"][0]["times_s"]):
            if run.id not in self.rows:
                self.add(run, time_s)

    def one(self, run, scenario):
        self.cluster.use(scenario)
        self.say(run.id)
        if run.what.startswith("skeleton-"):
            answer = self.cluster.skeleton("predict", self.source(run.program, run.what), "--repeat", "1")
            self.add(run, answer["predictions"][0]["times_s"][0])
        else:
            self.add(run, self.cluster.run_program(self.programs[run.program], run.what == "small"))

    def closing(self, name):
        """Where nothing is shared once more, after the scenarios: a machine that drifts does so for both sides alike."""
        repeats = self.options.repeats
        return [run._replace(repeat=run.repeat + repeats)
                for run in plan.runs_of(self.programs[name], plan.DEDICATED.name, self.times_for(name), repeats)]

    def compare(self, name):
        """Fig. 2: shares of time, application against skeletons; what cannot be captured is left out."""
        path = self.path("compared", f"{name}.json")
        built = self.facts[name].get("built", {})
        if os.path.exists(path) or not built:
            return
        self.cluster.use(plan.DEDICATED)
        self.say(f"{name}: skeletons captured themselves")
        try:
            answer = self.cluster.skeleton("compare", self.path("traces", f"{name}.lbfw"),
                                           *[self.source(name, what) for what in built])
        except MeasureError as error:
            answer = {"failed": str(error).rsplit("error: ", maxsplit=1)[-1]}
        write_json(path, answer)

    def run(self):
        for name in self.options.programs:
            self.prepare(name)
            if "failed" in self.facts[name]:
                print(f"skeletons: {name}: no skeleton: {self.facts[name]['failed']}", flush=True)
                continue
            for what in map(plan.what_of, self.times_for(name)):
                self.reference(name, what)
            if self.options.compare:
                self.compare(name)
            for scenario in self.options.scenarios:
                for run in [run for run in self.left() if (run.program, run.scenario) == (name, scenario.name)]:
                    # The first run may have shown that a second one is too long.
                    if self.is_wanted(run):
                        self.one(run, scenario)
            for run in [run for run in self.closing(name) if run.id not in self.rows]:
                self.one(run, plan.DEDICATED)
        print(f"  all runs done in {clock(time.monotonic() - self.began)}", flush=True)
