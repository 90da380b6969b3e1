"""What the scripts of bench/ read of the sources is where they look for it."""

import os
import re
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = "advisor|base|bench|cost|db|docs|etc|event|examples|packaging|predictor|protocol|report|skeleton|spank_plugin|tests|tools"
PATH = re.compile(rf"(?<![\w/.])(?:{FOLDERS})/[\w/.-]+\.(?:h|c|cpp|py|md|toml)\b")


def scripts():
    for folder, _, names in os.walk(os.path.join(ROOT, "bench")):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                if name.endswith(".py") or file.read(20).startswith(b"#!/usr/bin/python3"):
                    yield path


class Bench(unittest.TestCase):
    def test_files_that_scripts_name_exist(self):
        seen = 0
        for path in scripts():
            with open(path, encoding="utf-8") as file:
                for name in PATH.findall(file.read()):
                    seen += 1
                    self.assertTrue(os.path.exists(os.path.join(ROOT, name)), f"{os.path.relpath(path, ROOT)}: {name}")
        self.assertGreater(seen, 10)

    def test_results_are_dated_files_that_do_not_change(self):
        sys.path.insert(0, os.path.join(ROOT, "bench"))
        import result_file
        facts = {"command": "bench/x", "date": "2026-11-27", "versions": "abc", "machine": "2 x"}
        with tempfile.TemporaryDirectory() as folder:
            paths = [result_file.write_results("x", facts, lines, folder) for lines in (["| a |", ""], ["| b |"])]
            self.assertRegex(os.path.basename(paths[0]), r"^\d{4}-\d\d-\d\d-x\.txt$")
            self.assertTrue(paths[1].endswith("-x-2.txt"))
            with open(paths[0], encoding="utf-8") as file:
                self.assertEqual("command: bench/x\ndate:    2026-11-27\ncommit:  abc\nmachine: 2 x\n\n| a |\n", file.read())

    def test_the_interval_of_lbf_advise_is_read_from_its_source(self):
        sys.path.insert(0, os.path.join(ROOT, "bench/accuracy"))
        from driver import intervals
        rule = intervals.rule_in_use()
        self.assertTrue(all(value > 0 for value in rule), rule)
        case = intervals.Case("ep", self_percent=rule.least + 4, change=2, off_percent=0)
        self.assertAlmostEqual(rule.half_width(case),
                               rule.elsewhere + rule.per_self_error * (rule.least + 4) + rule.per_factor * 2)

    def test_what_goes_with_a_large_error_of_a_prediction(self):
        sys.path.insert(0, os.path.join(ROOT, "bench/accuracy"))
        from driver.analysis import Measured, Prediction
        from driver.plan import Case
        from driver.tables import kind_of_large_error
        measured = Measured(3, 1.0, 0.9, 0.95, 1.05, 1.1, None, None, None)

        def prediction(seconds):
            return Prediction("nodes", "lbf", Case("mg", 4, 1, "slow"), Case("mg", 4, 2, "fast"), seconds, seconds, seconds, measured)

        for seconds, itself, of_work, expected in (
                (1.09, 1.0, 0.0, "within the real runs' range"), (1.2, 1.15, 0.0, "missed from itself, too"),
                (1.2, 0.9, 30.0, "process time differs"), (1.2, 1.06, 8.0, "both in part"),
                (1.2, 0.8, 3.0, "neither"), (0.8, 1.3, None, "neither"), (0.8, 0.85, None, "missed from itself, too")):
            with self.subTest(seconds=seconds, itself=itself, of_work=of_work):
                self.assertEqual(kind_of_large_error(prediction(seconds), prediction(itself), of_work), expected)

    def test_packaged_programs_are_told_by_calm_rounds_alone(self):
        """Between bare runs of 2 and 2.08 s a captured one counts, between 2 and 2.2 s none does."""
        sys.path.insert(0, os.path.join(ROOT, "bench/accuracy"))
        from packaged import measure, plan, predict, tables
        one, two = plan.Case("lu", 2, 1, 2, "unshaped"), plan.Case("lu", 2, 2, 1, "unshaped")
        rows = {}
        for case, number, first, last in ((one, 0, 2, 2.2), (one, 1, 2, 2.08), (two, 0, 4, 4.3)):
            for part, seconds in zip(plan.PARTS, (first, 2.1, last)):
                run = measure.Run(case, number, part)
                rows[run.id] = {"id": run.id, "case": case, "round": number, "part": part, "seconds": seconds}
        rounds = measure.rounds_of(rows)
        told = tables.calm_only(rounds)
        self.assertEqual([[1], [0]], [[one.number for one in told[case]] if case in told else [0] for case in (one, two)])
        self.assertEqual([one], list(told))
        del rows[measure.Run(one, 1, "bare-2").id]
        self.assertEqual({}, tables.calm_only(measure.rounds_of(rows)), "a round that was cut is none")

        told[two] = [told[one][0]._replace(case=two, bare_s=4.0, captured={"id": "captured-two"})]
        known = {(told[one][0].captured["id"], "lbf"): {predict.key_of(one): predict.Answer(2.04, None), predict.key_of(two): predict.Answer(5.0, 19)},
                 ("captured-two", "lbf"): {predict.key_of(one): predict.Answer(2.0, 2.1)}}
        found = {(prediction.ran, prediction.target): prediction for prediction in tables.predictions_of(told, known, "lbf")}
        self.assertEqual({(one, one), (one, two), (two, one)}, set(found))
        self.assertAlmostEqual(0, found[one, one].error_percent)
        self.assertAlmostEqual(25, found[one, two].error_percent)
        self.assertFalse(found[one, two].is_inside, "4 s are 20 % below 5 s")
        self.assertTrue(found[two, one].is_inside, "2.04 s are 2 % above 2 s")
        self.assertEqual([2, "13.5", "**25.0**", "+25.0"],
                         tables.error_cells([found[one, two], found[two, one]], tables.Aim(14, 24)))
        self.assertEqual(["**50**", "10.6"], tables.interval_cells(list(found.values()), 12))

    def test_packaged_programs_have_inputs_and_their_own_cases(self):
        sys.path.insert(0, os.path.join(ROOT, "bench/accuracy"))
        from packaged import plan, programs
        for program in programs.ALL.values():
            cases = plan.cases_of(program.name)
            self.assertEqual(len(cases), len({case.id for case in cases}))
            self.assertLessEqual(set(plan.cases_of(program.name, is_quick=True)), set(cases))
        self.assertEqual({"dedicated": 4, "oversubscribed": 5}, {kind: sum(case.kind == kind for case in cases)
                                                                for kind in ("dedicated", "oversubscribed")})
        with tempfile.TemporaryDirectory() as folder:
            programs.lu(folder, 8)
            with open(os.path.join(folder, "LU.dat"), encoding="ascii") as file:
                self.assertIn("\n2    P\n4 Q\n", file.read())

    def test_a_node_with_a_processor_for_each_rank_has_its_own_times_inside(self):
        sys.path.insert(0, os.path.join(ROOT, "bench/accuracy"))
        from packaged import measure
        inside = '[[path]]\nlocality = "self-node"\ntable = [[0, 1.0]]\n'
        remote = '[[path]]\nlocality = "remote"\ntable = [[0, 9.0]]\n'
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("lan", "inside", "dedicated/lan")]
            for path, text in zip(paths, ('name = "lan"\n' + remote + inside.replace("1.0", "5.0") + "[local]\n",
                                          'name = "inside"\n' + inside + "[local]\n")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            measure.write_dedicated(*paths)
            with open(paths[2], encoding="utf-8") as file:
                self.assertEqual('name = "lan"\n' + inside + remote + "[local]\n", file.read())

    def test_the_numbers_of_bench_abuse_are_those_of_the_formats(self):
        sys.path.insert(0, os.path.join(ROOT, "bench/abuse"))
        import client
        import commands
        import wire
        with open(os.path.join(ROOT, "event/event.h"), encoding="utf-8") as file:
            text = file.read().split("enum class EventKind", 1)[1].split("};", 1)[0]
        kinds = {name.lower(): int(number) for name, number in re.findall(r"^  k(\w+) =\s+(\d+),", text, re.M)}
        for name in ("SEND", "ISEND", "START_RECV", "RECV", "WAIT", "COLLECTIVE", "ICOLLECTIVE", "COMM_CREATE", "CANCEL", "EXIT",
                     "SKIPPED"):
            self.assertEqual(getattr(wire, name), kinds[name.replace("_", "").lower()], name)
        with open(os.path.join(ROOT, "spank_plugin/capture/ring.h"), encoding="utf-8") as file:
            self.assertIn(f"kVersion = {commands.RING_VERSION};", file.read())
        self.assertEqual(wire.crc32c(b"123456789"), 0xE3069283)
        self.assertEqual([wire.svarint(value) for value in (0, -1, 1, -2, 64)], [b"\0", b"\1", b"\2", b"\3", b"\x80\1"])
        with self.assertRaises(ValueError):
            client.open_socket(("192.0.2.1", 6820), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
