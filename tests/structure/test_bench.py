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
