#!/usr/bin/python3
"""lbf-report --health against a real lbfd: one screen for operators, the least for others, and JSON."""

import json
import os
import subprocess
import unittest

from lbfd import BUILD, TOKEN, Lbfd


def report(server, *arguments, token=TOKEN):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LBF_")}
    environment.update(LBF_SERVER=server, LBF_MUNGE_SOCKET="/nonexistent")
    if token:
        environment["LBF_TOKEN"] = token
    return subprocess.run([os.path.join(BUILD, "bin", "lbf-report"), "--health", *arguments], env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)


class Health(unittest.TestCase):
    def test_screen_and_json(self):
        with Lbfd() as lbfd:
            lbfd.run_empty_step()
            server = f"http://127.0.0.1:{lbfd.port}"
            done = report(server)
            self.assertEqual((0, ""), (done.returncode, done.stderr))
            lines = done.stdout.splitlines()
            self.assertLessEqual(len(lines), 24)
            self.assertLessEqual(max(map(len, lines)), 80)
            self.assertRegex(lines[0], rf"^lbfd \S+ at {server}$")
            self.assertIn("Steps       0 under way, 1 started, 0 complete, 1 partial", lines)
            self.assertIn("Errors      none", lines)
            health = json.loads(report(server, "--json").stdout)["health"]
            self.assertEqual(1, health["metrics"]["lbfd_steps_started_total"])
            self.assertFalse(health["disk_full"])

    def test_who_is_no_operator_sees_whether_it_works(self):
        with Lbfd() as lbfd:
            done = report(f"http://127.0.0.1:{lbfd.port}", token=None)
            self.assertEqual(0, done.returncode, done)
            self.assertIn("Steps       0 under way\nMore        ", done.stdout)
            self.assertIsNone(json.loads(report(f"http://127.0.0.1:{lbfd.port}", "--json", token=None).stdout)["health"]["metrics"])

    def test_no_lbfd(self):
        done = report("unix:/nonexistent/socket")
        self.assertEqual(1, done.returncode)
        self.assertEqual(1, len(done.stderr.splitlines()), done)


if __name__ == "__main__":
    unittest.main(verbosity=2)
