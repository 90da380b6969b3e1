"""lbf-report and lbf-watch as users call them, against an lbfd that answers what the test wants."""

import json
import math
import os
import signal
import subprocess
import tempfile
import time
import unittest

import yaml

from fake_lbfd import FakeLbfd, command, picture, prediction, running_step, step


def always(*steps):
    return lambda path, query: (200, {"steps": list(steps)})


class Selecting(unittest.TestCase):
    def asked_with(self, *arguments):
        with FakeLbfd(always(step())) as lbfd:
            done = lbfd.run("lbf-report", *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [query for _, query in lbfd.asked]

    def test_filters_are_lbfds_to_apply(self):
        query, = self.asked_with("-a", "-A", "physics", "-r", "main", "-s", "R,cd,PARTIAL", "-N", "n[1-3,7]")
        self.assertEqual((query["account"], query["partition"]), ("physics", "main"))
        self.assertEqual(query["state"], "running,complete,partial")
        self.assertEqual(query["nodelist"], "n[1-3,7]")

    def test_jobs_without_an_option(self):
        for words in (["700"], ["-j", "700"]):
            query, = self.asked_with(*words)
            self.assertEqual(query["job"], "700")
        asked = self.asked_with("-P", "700.0", "-j", "8", "1234_5")
        self.assertEqual([(q["job"], q.get("step"), q.get("array_task")) for q in asked],
                         [("8", None, None), ("700", "0", None), ("1234", None, "5")])
        with FakeLbfd(always(step())) as lbfd:
            self.assertEqual(lbfd.run("lbf-watch", "--once", "700.0").returncode, 0)
            self.assertEqual([q["job"] for _, q in lbfd.asked], ["700"])

    def test_names_of_jobs(self):
        self.assertEqual([q["name"] for q in self.asked_with("--name", "lu,a b")], ["lu", "a b"])

    def test_a_window_that_a_change_of_the_clocks_makes_empty(self):
        with FakeLbfd(always(step())) as lbfd:
            zone = {"TZ": "CET-1CEST,M3.5.0,M10.5.0/3"}
            done = lbfd.run("lbf-report", "-S", "2026-03-29T02:10", "-E", "2026-03-29T02:50", **zone)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn("no time passes from -S '2026-03-29T02:10' to -E '2026-03-29T02:50'", done.stderr)
            self.assertEqual(lbfd.asked, [])
            lbfd.run("lbf-report", "-S", "2026-10-25T02:00", "-E", "2026-10-25T02:59:59", **zone)
            (_, query), = lbfd.asked
            self.assertEqual(int(query["until"]) - int(query["since"]), 2 * 3600 - 1)

    def test_filters_that_match_nothing_are_named(self):
        with FakeLbfd(always()) as lbfd:
            done = lbfd.run("lbf-report", "-a", "-r", "p a", "--name", "lu", "-S", "2026-01-01")
            self.assertEqual(done.returncode, 0, done)
            self.assertIn("no steps with predictions match --name lu -r 'p a' since 2026-01-01T00:00:00; leave a filter out",
                          done.stderr)
            self.assertNotIn("srun", done.stderr)
            self.assertIn("and that matches -s partial", lbfd.run("lbf-report", "-j", "7", "-s", "pa").stderr)
            self.assertIn("srun --lbf-predict", lbfd.run("lbf-report").stderr)

    def test_networks(self):
        with FakeLbfd(lambda path, query: (200, {"networks": ["zero", "lan-100"]})) as lbfd:
            self.assertEqual(lbfd.run("lbf-report", "--networks").stdout, "zero\nlan-100\n")
            self.assertEqual(lbfd.asked[0][0], "/v1/networks")

    def test_several_accounts_are_asked_for_one_by_one(self):
        self.assertEqual([q["account"] for q in self.asked_with("-a", "-A", "x,y z")], ["x", "y z"])

    def test_lists_want_two_predictions_of_each_step_only(self):
        self.assertEqual(self.asked_with()[0].get("summary"), "1")
        self.assertEqual(self.asked_with("-o", "JobID,BestTarget")[0].get("summary"), "1")
        for whole in (["-j", "123"], ["-o", "JobID,Target"], ["-l"], ["--json"], ["-j", "123", "--plot"]):
            self.assertNotIn("summary", self.asked_with(*whole)[0], whole)

    def test_tasks_of_arrays(self):
        tasks = [q["array_task"] for q in self.asked_with("-j", "12_[1-3,7].0,9")if "array_task" in q]
        self.assertEqual(tasks, ["1", "2", "3", "7"])
        self.assertEqual(self.asked_with("-j", "12+1")[0]["het_offset"], "1")

    def test_a_job_number_that_came_again(self):
        self.assertNotIn("duplicates", self.asked_with("-j", "12")[0])
        self.assertEqual(self.asked_with("-j", "12", "-D")[0]["duplicates"], "1")
        self.assertEqual(self.asked_with("--brief", "-j", "12.0", "--submit=1700000000")[0]["submit"], "1700000000")

    def test_what_is_wrong_is_said(self):
        with FakeLbfd(always(step())) as lbfd:
            for arguments, words in ((["-s", "FAILED"], "is no state"), (["-j", "12_[3-1]"], "12_[3-1]"),
                                     (["-j", "12_[1-5000]"], "up to 1000"), (["-j", "12+[0-1]"], "one number"),
                                     (["-j", "1", "--wait", "5"], "--wait is for --brief"), (["--brief", "-j", "1", "--wait", "-1"], "--wait"),
                                     (["-A", "a,,b"], "has no name"), (["--plot"], "--plot needs -j"),
                                     (["--html", "x"], "--html needs -j"), (["-D"], "give -j JOB"),
                                     (["--submit", "5"], "give -j JOB"), (["--units", "X"], "--units")):
                done = lbfd.run("lbf-report", *arguments)
                self.assertEqual(done.returncode, 2, arguments)
                self.assertIn(words, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)


class Brief(unittest.TestCase):
    def test_it_waits_for_a_slow_lbfd_as_long_as_it_is_told(self):
        def late(path, query):
            time.sleep(1.5)
            return 200, {"steps": [step()]}

        with FakeLbfd(late) as lbfd:
            done = lbfd.run("lbf-report", "--brief", "-j", "123.0", "--wait", "30")
            self.assertEqual(0, done.returncode, done)
            self.assertEqual(1, len(done.stdout.splitlines()), done)
            done = lbfd.run("lbf-report", "--brief", "-j", "123.0")
            self.assertEqual(1, done.returncode, done)
            self.assertEqual(1, len(done.stderr.splitlines()), done)

    def test_it_waits_for_a_step_that_is_being_completed(self):
        began = time.monotonic()

        def answers(path, query):
            return 200, {"steps": [step() if time.monotonic() > began + 2.5 else running_step(1.0)]}

        with FakeLbfd(answers) as lbfd:
            done = lbfd.run("lbf-report", "--brief", "-j", "123.0", "--wait", "30")
            self.assertEqual(0, done.returncode, done)
            self.assertNotIn("so far", done.stdout)


class Printing(unittest.TestCase):
    def report(self, *arguments, steps=None, **variables):
        with FakeLbfd(always(*(steps or [step()]))) as lbfd:
            done = lbfd.run("lbf-report", *arguments, **variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

    def test_account_and_partition_are_fields(self):
        self.assertEqual(self.report("-o", "JobID,Account,Partition", "-P", "-n"), "123.0|physics|main\n")

    def test_jobs_of_one_number_are_told_apart(self):
        fields = ["-j", "123", "-D", "-o", "JobID,Submit,Start", "-P", "-n"]
        runs = [step(start=1700000600.0, submit=1700000599), step(submit=1699999999), step(start=1600000000.0)]
        self.assertEqual(self.report(*fields, steps=runs), "123.0|Unknown|2020-09-13T12:26:40\n"
                         "123.0|2023-11-14T22:13:19|2023-11-14T22:13:20\n123.0|2023-11-14T22:23:19|2023-11-14T22:23:20\n")

    def test_bytes_in_saccts_units(self):
        fields = ["-o", "BytesOnWire,BytesStored", "-P", "-n"]
        self.assertEqual(self.report(*fields), "1.50K|3.00M\n")
        self.assertEqual(self.report(*fields, "--units=M"), "0.00M|3.00M\n")
        self.assertEqual(self.report(*fields, "--noconvert"), "1536|3145728\n")

    def test_widths(self):
        header, _, line = self.report("-o", "JobID%8,Account%-12,Account%12").splitlines()
        self.assertEqual(line, "   123.0 physics           physics")
        self.assertEqual(header, "   JobID Account           Account")

    def test_one_line_per_job(self):
        steps = [step(1, 0, measured_s=3.0), step(1, 1, measured_s=9.0), step(2, 0)]
        self.assertEqual(self.report("-X", "-o", "JobID,MeasuredRaw", "-P", "-n", steps=steps), "1|9.000000\n2|100.000000\n")

    def test_format_from_the_environment(self):
        self.assertEqual(self.report("-P", "-n", LBF_FORMAT="User,JobID"), "alice|123.0\n")
        self.assertEqual(self.report("-P", "-n", "-o", "JobID", LBF_FORMAT="User"), "123.0\n")

    def test_time_format(self):
        fields = ["-o", "Start%40", "-n", "-P"]
        self.assertEqual(self.report(*fields), "2023-11-14T22:13:20\n")
        self.assertEqual(self.report(*fields, SLURM_TIME_FORMAT="standard"), "2023-11-14T22:13:20\n")
        self.assertEqual(self.report(*fields, SLURM_TIME_FORMAT="%Y at %H h"), "2023 at 22 h\n")
        self.assertEqual(self.report(*fields, SLURM_TIME_FORMAT="relative"), "14 Nov 2023\n")
        now = step(start=float(int(time.time()) // 86400 * 86400 + 60))
        self.assertEqual(self.report(*fields, steps=[now], SLURM_TIME_FORMAT="relative"), "00:01:00\n")

    def test_yaml_is_the_json(self):
        odd = step(job_name="a: 'b' \U0001f600 \x1b[2J", notes=["1e3", "no"])
        as_yaml = self.report("-j", "123", "--yaml", steps=[odd])
        self.assertTrue(as_yaml.isascii())
        self.assertNotIn("\x1b", as_yaml)
        self.assertEqual(yaml.safe_load(as_yaml), json.loads(self.report("-j", "123", "--json", steps=[odd])))

    def test_lists_are_printed_as_they_came(self):
        odd = [step(1, 0), step(2, 0, job_name="\u00e9 \U0001f600 \x1b[2J")]
        whole = self.report("--json", steps=odd)
        self.assertTrue(whole.isascii())
        self.assertEqual(json.loads(whole), {"steps": odd})
        self.assertTrue(whole.startswith('{\n  "steps": [\n    {\n      "'), whole[:40])
        self.assertEqual(self.report("--json", steps=odd, SLURM_JSON="pretty"), whole)
        compact = self.report("--json", steps=odd, SLURM_JSON="compact")
        self.assertEqual(compact.count("\n"), 1)
        self.assertEqual(json.loads(compact), {"steps": odd})
        self.assertEqual(yaml.safe_load(self.report("--yaml", steps=odd)), {"steps": odd})

    def test_the_default_fits_80_columns(self):
        for arguments in ([], ["-a"], ["-j", "123"]):
            widest = max(len(line) for line in self.report(*arguments).splitlines())
            self.assertLessEqual(widest, 80, arguments)

    def test_the_note_names_the_flag(self):
        self.assertIn("srun -N4 -n32 --distribution=block --ntasks-per-node=8", self.report("-j", "123"))


class Plotting(unittest.TestCase):
    def plot(self, *arguments, one=None, **variables):
        with FakeLbfd(always(one or step())) as lbfd:
            done = lbfd.run("lbf-report", "-j", "123", "--plot", *arguments, **variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

    def test_every_network_has_marks_and_a_line(self):
        text = self.plot()
        drawing, legend = text.split("nodes\n\n")[-2:]
        self.assertEqual(drawing.count("●"), 5)
        self.assertEqual(drawing.count("▲"), 5)
        self.assertEqual(drawing.count("×"), 1)
        self.assertIn("lan-1g (the network that ran): fastest on 8 nodes, 01:28", legend.replace("88.00 s", "01:28"))
        self.assertIn("34.00 s", legend)
        self.assertIn("how far a time may be off", legend)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_ascii(self):
        for text in (self.plot("--ascii"), self.plot(LC_ALL="C")):
            self.assertTrue(text.isascii())
            self.assertEqual(text.split("nodes\n\n")[-2].count("^"), 5)

    def test_width(self):
        for width in (40, 60, 132):
            lines = self.plot(COLUMNS=str(width)).splitlines()
            self.assertEqual(max(map(len, lines)), width)

    def test_color_only_where_it_is_wanted(self):
        self.assertNotIn("\x1b", self.plot())
        self.assertIn("\x1b[34m", self.plot("--color=always"))

    def test_higher_is_longer(self):
        lines = self.plot().splitlines()
        of = {mark: [i for i, line in enumerate(lines) if mark in line] for mark in "●×"}
        self.assertLess(of["●"][0], of["×"][0])  # 1 node, 230 s, above the measured 100 s

    def test_nothing_to_draw(self):
        self.assertIn("There is no prediction to draw.", self.plot(one=step(predictions=[])))
        stuck = step(predictions=[prediction(2, "x", "LBF", 1.0, predicted_s=None, speedup=None, why_stuck="waits")])
        self.assertIn("The configuration that ran has no prediction yet", self.plot(one=stuck))


class Savings(unittest.TestCase):
    """The network that ran gains from half of the nodes here: 4 nodes, 100 s, and 2 nodes, 50 s."""

    @staticmethod
    def saving(job=123, **more):
        return step(job, predictions=[prediction(4, "lan-1g", "self", 98.6), prediction(2, "lan-1g", "LBF", 50.0)], wildcard_receives=0,
                    unmodelled_s=0.0, **more)

    def savings(self, *arguments, steps=None, **variables):
        with FakeLbfd(always(*(steps or [self.saving()]))) as lbfd:
            done = lbfd.run("lbf-report", "--savings", *arguments, **variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done, [query for _, query in lbfd.asked]

    def test_the_last_week_unless_told_otherwise(self):
        query, = self.savings()[1]
        self.assertAlmostEqual(int(query["since"]), time.time() - 7 * 86400, delta=60)
        self.assertEqual("10000", query["limit"])
        self.assertNotIn("summary", query)
        query, = self.savings("-a", "-S", "2026-01-01", "-E", "2026-01-08", "-A", "physics")[1]
        self.assertEqual(7 * 86400, int(query["until"]) - int(query["since"]))
        self.assertEqual(("1", "physics"), (query["all"], query["account"]))

    def test_what_rows_have_is_enough(self):
        """As whole steps say it: a run of 4 nodes and 100 s against 2 nodes and 50 s."""
        one = json.loads(self.savings("--json")[0].stdout)["savings"]["all"]
        used, best = 4 * 100.0 / 3600, 2 * 50.0 / 3600
        self.assertAlmostEqual(used, one["node_hours"])
        self.assertAlmostEqual(4 * 98.6 / 3600 - best, one["saved_node_hours"])
        self_error = 1.4 / (1 - 0.014)
        half = (5 + 1.25 * self_error + 8 * abs(math.log(50 / 98.6))) / 100
        self.assertAlmostEqual(one["saved_node_hours"] - best * half, one["low_node_hours"])
        self.assertAlmostEqual(one["saved_node_hours"] + best * half, one["high_node_hours"])

    def test_forms(self):
        steps = [self.saving(), self.saving(124, state="partial", why_partial="x")]
        done, _ = self.savings(steps=steps)
        self.assertIn("Of 0.11 node-hours with trusted predictions since", done.stdout)
        self.assertIn("program   lmp", done.stdout)
        self.assertIn("Not known: 1 run, 0.11 node-hours: 1 partial (0.11).", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)
        done, _ = self.savings("-P", "-n", steps=steps)
        self.assertEqual(["all", "program", "account", "partition"], [line.split("|")[0] for line in done.stdout.splitlines()])
        self.assertIn("Not known: 1 run", done.stderr)
        self.assertIn("by account", self.savings("--plot", steps=steps)[0].stdout)
        self.assertTrue(self.savings("--plot", "--ascii", steps=steps)[0].stdout.isascii())
        with tempfile.TemporaryDirectory() as folder:
            self.savings("-S", "2023-11-01", "--html", f"{folder}/page.html", steps=steps)
            with open(f"{folder}/page.html", encoding="utf-8") as file:
                page = file.read()
        self.assertIn("Not known: 1 run", page)
        self.assertEqual(page, self.savings("-S", "2023-11-01", "--html", "-", steps=steps)[0].stdout)

    def test_nothing_to_say(self):
        with FakeLbfd(always()) as lbfd:
            done = lbfd.run("lbf-report", "--savings")
            self.assertEqual((0, ""), (done.returncode, done.stderr))
            self.assertRegex(done.stdout, r"^No run since \S+ has trusted predictions\.\n$")

    def test_more_steps_than_one_answer_has(self):
        """25,000 steps of a second each, and ten that run all the time: lbfd gives the latest 10,000 of a window."""
        begin = 1700000000
        steps = [self.saving(job, start=float(begin - 1), end=float(begin + 50000)) for job in range(1, 11)]
        steps += [self.saving(job, start=begin + job + 0.5, end=float(begin + job + 1)) for job in range(11, 25001)]

        def answers(path, query):
            inside = [one for one in steps if one["end"] >= int(query["since"]) and one["start"] <= int(query["until"])]
            return 200, {"steps": inside[-int(query["limit"]):]}

        with FakeLbfd(answers) as lbfd:
            done = lbfd.run("lbf-report", "--savings", "--json", "-S", "2023-11-14T22:00", "-E", "2023-11-15T12:00")
            self.assertEqual((0, ""), (done.returncode, done.stderr))
            self.assertEqual(25000, json.loads(done.stdout)["savings"]["all"]["steps"])
            self.assertEqual(3, len(lbfd.asked))

    def test_more_steps_of_one_second_than_one_answer_has(self):
        steps = [self.saving(job, start=1700000000.0, end=1700000001.0) for job in range(1, 10002)]

        def answers(path, query):
            return 200, {"steps": steps[-int(query["limit"]):] if int(query.get("until", 1 << 40)) >= 1700000000 else []}

        with FakeLbfd(answers) as lbfd:
            done = lbfd.run("lbf-report", "--savings", "--json", "-S", "2023-11-01")
            self.assertEqual(0, done.returncode, done)
            self.assertIn("more steps began in one second than lbfd lists", done.stderr)
            self.assertEqual(10000, json.loads(done.stdout)["savings"]["all"]["steps"])
            self.assertEqual(3, len(lbfd.asked))

    def test_options_that_do_not_go_with_it(self):
        with FakeLbfd(always()) as lbfd:
            for arguments in (["-j", "1"], ["-o", "JobID"], ["--yaml"], ["--overhead"]):
                done = lbfd.run("lbf-report", "--savings", *arguments)
                self.assertEqual((2, []), (done.returncode, lbfd.asked), arguments)


class Scaling(unittest.TestCase):
    PARTS = ("copies", "overhead", "latency_between", "bytes_inside", "bytes_between", "kept", "unseen")

    def run_of(self, job, ranks, **more):
        work = 96.0 / ranks
        paths = {f"path_{part}_s": 0.0 for part in self.PARTS}
        seconds = work + 0.25 * ranks
        return step(job, ranks=ranks, nodes=["n1"], measured_s=seconds, program_id="gnu:1", network="lan-1g", path_work_s=work,
                    path_rank_work_s=work, path_latency_inside_s=0.25 * ranks,
                    predictions=[prediction(1, "lan-1g", "self", seconds)], **paths, **more)

    def scaling(self, *arguments, steps=None, status=0):
        with FakeLbfd(always(*(steps or [self.run_of(job, ranks) for job, ranks in ((12, 2), (13, 4), (14, 8))]))) as lbfd:
            done = lbfd.run("lbf-report", "--scaling", *arguments)
            self.assertEqual(done.returncode, status, done.stderr)
            return done, [query for _, query in lbfd.asked]

    def test_named_jobs(self):
        """Only what is shown is asked for; 96 s / p of work and 0.25 s p of latency."""
        done, queries = self.scaling("-j", "12,13,14", "--ranks", "4,8,16", "--json")
        self.assertTrue(all("path_work_s" in query["rows"] for query in queries), queries)
        answer, = json.loads(done.stdout)["scaling"]
        # One node has 8 ranks in these runs.
        self.assertEqual([4, 8], [row["ranks"] for row in answer["rows"]])
        self.assertAlmostEqual(12.0 + 2.0, answer["rows"][1]["predicted_s"])
        self.assertIn("16 ranks: no run had several nodes", answer["not_known"])

    def test_the_programs_of_the_last_week(self):
        done, (query,) = self.scaling()
        self.assertAlmostEqual(int(query["since"]), time.time() - 7 * 86400, delta=60)
        self.assertIn("From jobs 12.0, 13.0, 14.0.", " ".join(done.stdout.split()))
        self.assertNotIn("lbf-whatif", done.stdout, "all counts shown ran")
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        done, _ = self.scaling("-P", "-n", "-j", "12,13,14")
        self.assertEqual(["2", "4", "8"], [line.split("|")[0] for line in done.stdout.splitlines()])
        self.assertIn("no knee up to 8 ranks", done.stderr)
        done, _ = self.scaling(steps=[self.run_of(12, 2)])
        self.assertEqual("", done.stdout)
        self.assertIn("no program ran with the same arguments at two rank counts since", done.stderr)

    def test_the_replay_of_a_count_that_did_not_run(self):
        asked = ("-j", "12,13,14", "--ranks", "4,6")
        done, _ = self.scaling(*asked)
        self.assertIn("\n  lbf-whatif 12.0 13.0 14.0 --ranks 6 --nodes 1 --cores 6 --network ", done.stdout)
        for form in (["-P"], ["--plot"]):
            self.assertNotIn("lbf-whatif", self.scaling(*asked, *form)[0].stdout)

    def test_pictures(self):
        done, _ = self.scaling("-j", "12,13,14", "--plot", "--ascii")
        self.assertIn("Run time over ranks", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)
        done, _ = self.scaling("--html", "-")
        self.assertIn("<title>8 ranks: 14.00 s", done.stdout)

    def test_refusals(self):
        other = self.run_of(13, 4)
        other["program_id"] = "gnu:2"
        done, _ = self.scaling("-j", "12,13", steps=[self.run_of(12, 2), other], status=1)
        self.assertEqual("lbf-report: error: jobs 12.0 and 13.0 ran different programs, or it was built anew between them\n",
                         done.stderr)

    def test_options_that_do_not_go_with_it(self):
        with FakeLbfd(always()) as lbfd:
            for arguments in (["--scaling", "-o", "JobID"], ["--scaling", "--savings"], ["--scaling", "--weak"], ["--scaling", "-P"], ["--weak", "-j", "1"],
                              ["--ranks", "4"], ["--scaling", "--ranks", "0"]):
                done = lbfd.run("lbf-report", *arguments)
                self.assertEqual((2, []), (done.returncode, lbfd.asked), arguments)


class Refusals(unittest.TestCase):
    def failed(self, answers, *arguments, name="lbf-report"):
        with FakeLbfd(answers) as lbfd:
            done = lbfd.run(name, *arguments)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            return done.stderr

    def test_no_lbfd(self):
        for name in ("lbf-report", "lbf-watch"):
            done = subprocess.run([command(name), "-j", "1", "--server", "unix:/nowhere/lbfd.sock"], capture_output=True,
                                  text=True, env={"LBF_TOKEN": "x" * 40}, timeout=30, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("/nowhere/lbfd.sock", done.stderr)
            self.assertIn("--server or LBF_SERVER", done.stderr)

    def test_an_unknown_job(self):
        for name in ("lbf-report", "lbf-watch"):
            self.assertIn("job 99: lbfd knows no such step", self.failed(always(), "-j", "99", name=name))

    def test_a_step_that_lbfd_refused(self):
        """No row of it is anywhere: the report has lbfd's own words."""
        def answers(path, _):
            refusal = {"cluster": "c", "job": 99, "step": 1, "restart": 0, "submit": 0, "why": "user bob has 9 steps under way"}
            return 200, {"refused": [refusal]} if path == "/v1/refused" else {"steps": []}
        for name in ("lbf-report", "lbf-watch"):
            self.assertIn("99.1: lbfd took nothing of this step: user bob has 9 steps under way",
                          self.failed(answers, "-j", "99", name=name))
        self.assertIn("99.2: lbfd knows no such step", self.failed(answers, "-j", "99.2"))

    def test_the_job_of_another_user(self):
        def not_an_operator(path, query):
            if "all" in query:
                return 403, {"error": "only operators see everybody's steps", "code": "permission"}
            return 200, {"steps": []}
        self.assertIn("those of other users are for operators only", self.failed(not_an_operator, "-j", "99"))
        self.assertIn("leave out -a", self.failed(not_an_operator, "-a"))

    def test_a_database_that_a_backup_has_locked(self):
        locked = "/var/lib/lbf/lbf.db: database is locked: another program holds it"
        words = self.failed(lambda *_: (503, {"error": locked, "code": "unavailable"}), "-j", "7")
        self.assertIn("another program holds it", words)

    def test_something_that_is_no_lbfd(self):
        for arguments, words in ((["-j", "7"], "does not keep to HTTP API version 1"), ([], "does not keep to HTTP API version 1"),
                                 (["-j", "7", "--json"], "is that address lbfd's?")):
            self.assertIn(words, self.failed(lambda *_: (200, ["x"]), *arguments), arguments)


class Page(unittest.TestCase):
    def page(self, answer, one=None):
        def answers(path, query):
            return answer if path.endswith("/picture") else (200, {"steps": [one or step()]})
        with FakeLbfd(answers) as lbfd, tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "page.html")
            done = lbfd.run("lbf-report", "-j", "123", "--html", file)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            self.assertIn("/v1/steps/c/123/0/0/picture", [path for path, _ in lbfd.asked])
            with open(file, encoding="utf-8") as text:
                return text.read()

    def test_it_has_all_its_parts_and_needs_nothing(self):
        text = self.page((200, picture()))
        for outside in ("http:", "https:", "<script", "@import", "url("):
            self.assertNotIn(outside, text)
        for words in ("srun -N4 -n32", "Predicted time over nodes", "Time against node-hours", "As it ran",
                      "16 nodes, hdr-100", "Measured", "Limit", "2.00 %", "bytes cross between nodes"):
            self.assertIn(words, text)
        self.assertNotIn('class="missing"', text)

    def test_what_is_missing_is_said(self):
        gone = "the trace of step c/123/0/0 is not stored any more (retention)"
        text = self.page((404, {"error": gone, "code": "not_found"}), step(cost=None))
        self.assertEqual(text.count(gone), 2)
        self.assertIn("no cost record", text)
        self.assertIn("no prediction of this step", self.page_without_predictions())

    def page_without_predictions(self):
        with FakeLbfd(always(step(predictions=[]))) as lbfd:
            done = lbfd.run("lbf-report", "-j", "123", "--html", "-")
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

    def test_a_damaged_trace_is_said(self):
        why = "stream 0, batch 3: checksum does not match"
        self.assertEqual(self.page((200, picture(why_partial=why))).count(why), 2)

    def test_what_jobs_are_called_is_only_text(self):
        text = self.page((200, picture()), step(job_name="x", command=["<script>alert(1)</script>", "\"'&"]))
        self.assertNotIn("<script", text)
        self.assertIn("&lt;script&gt;", text)

    def test_a_picture_that_does_not_fit_together(self):
        broken = picture()
        broken["measured"]["mpi"].pop()
        self.assertIn("no picture of a run", self.page((200, broken)))

    def test_which_of_several_steps(self):
        with FakeLbfd(always(step(1, 0), step(1, 1))) as lbfd:
            done = lbfd.run("lbf-report", "-j", "1", "--html", "-")
            self.assertEqual(done.returncode, 2)
            self.assertIn("1.0, 1.1", done.stderr)


class Watching(unittest.TestCase):
    def test_one_look(self):
        with FakeLbfd(always(running_step(40.0))) as lbfd:
            done = lbfd.run("lbf-watch", "-j", "123", "--once")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("running, 32 ranks on node[1-4], network lan-1g", done.stdout)
        self.assertIn("16 nodes, hdr-100", done.stdout)
        self.assertIn("MPI time modelled: 99.7 %", done.stdout)
        self.assertNotIn("\x1b", done.stdout)

    def test_it_follows_to_the_end(self):
        looks = iter([running_step(10.0), running_step(20.0)])
        last = step()
        with FakeLbfd(lambda *_: (200, {"steps": [next(looks, last)]})) as lbfd:
            done = lbfd.run("lbf-watch", "-j", "123.0", "-n", "0.2")
        lines = done.stdout.splitlines()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(lines), 4)
        self.assertIn("123.0 running, measured 10.00 s", lines[0])
        self.assertRegex(lines[1], r"2e\+04 events|20 k events \([\d.]+ ?k?/s\)")
        self.assertIn("123.0 complete", lines[2])
        self.assertTrue(lines[3].startswith("lbf: 4 nodes would take"), lines[3])

    def test_a_terminal_gets_its_screen_back(self):
        looks = iter([running_step(10.0)])
        with FakeLbfd(lambda *_: (200, {"steps": [next(looks, step())]})) as lbfd:
            server = f"http://127.0.0.1:{lbfd.server.server_address[1]}"
            done = subprocess.run(["script", "-qec", f"{command('lbf-watch')} -j 123 -n 0.2 --server {server}", "/dev/null"],
                                  capture_output=True, text=True, timeout=30, check=False,
                                  env=dict(os.environ, LBF_TOKEN="0123456789abcdef" * 4, TERM="xterm"))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertLess(done.stdout.index("\x1b[?1049h"), done.stdout.index("\x1b[?1049l"))
        self.assertIn("lbf: 4 nodes would take", done.stdout.split("\x1b[?1049l")[1])

    def test_lbfd_may_be_away_for_a_moment(self):
        answers = iter([(200, {"steps": [running_step(10.0)]}), (503, {"error": "starting", "code": "unavailable"})])
        with FakeLbfd(lambda *_: next(answers, (200, {"steps": [step()]}))) as lbfd:
            done = lbfd.run("lbf-watch", "-j", "123", "-n", "0.1")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_signal_ends_it_while_lbfd_does_not_answer(self):
        def slow(path, query):
            time.sleep(5)
            return 200, {"steps": [step()]}

        with FakeLbfd(slow) as lbfd:
            server = f"http://127.0.0.1:{lbfd.server.server_address[1]}"
            with subprocess.Popen([command("lbf-watch"), "-j", "123", "--server", server],
                                  env=dict(os.environ, LBF_TOKEN="0123456789abcdef" * 4)) as watch:
                while not lbfd.asked:
                    time.sleep(0.01)
                watch.send_signal(signal.SIGINT)
                self.assertEqual(watch.wait(timeout=3), 0)

    def test_usage(self):
        with FakeLbfd(always()) as lbfd:
            for arguments, words in (([], "-j JOB"), (["-j", "x"], "is no job"), (["-j", "1,2"], "one job"),
                                     (["-j", "1", "-n", "0"], "interval")):
                done = lbfd.run("lbf-watch", *arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
