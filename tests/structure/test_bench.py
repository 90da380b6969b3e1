"""What the scripts of bench/ read of the sources is where they look for it."""

import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = "advisor|base|bench|cost|db|docs|etc|event|examples|packaging|predictor|skeleton|spank_plugin|tests|tools"
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

    def test_the_interval_of_lbf_advise_is_read_from_its_source(self):
        sys.path.insert(0, os.path.join(ROOT, "bench/accuracy"))
        from driver import intervals
        rule = intervals.rule_in_use()
        self.assertTrue(all(value > 0 for value in rule), rule)
        case = intervals.Case("ep", self_percent=rule.least + 4, change=2, off_percent=0)
        self.assertAlmostEqual(rule.half_width(case),
                               rule.elsewhere + rule.per_self_error * (rule.least + 4) + rule.per_factor * 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
