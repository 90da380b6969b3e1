#!/usr/bin/python3
"""lbfd --check-config: every fault that would keep lbfd from starting is a line, all of them at once, and nothing is
started or written."""

import os
import sqlite3
import subprocess
import unittest

from lbfd import LBFD, TOKEN, Lbfd


class CheckConfig(unittest.TestCase):
    def setUp(self):
        self.lbfd = Lbfd()
        self.addCleanup(self.lbfd.folder.cleanup)

    def check(self, *arguments):
        """(exit status, lines); the folder is as it was."""
        before = self.files()
        done = subprocess.run([LBFD, "--config", self.lbfd.path("lbfd.toml"), "--check-config", *arguments],
                              env=self.lbfd.environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(before, self.files())
        self.assertEqual("", done.stderr)
        return done.returncode, done.stdout.splitlines()

    def files(self):
        found = {}
        for folder, _, names in os.walk(self.lbfd.folder.name):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    found[os.path.join(folder, name)] = file.read()
        return found

    def configure(self, text):
        self.lbfd.write("lbfd.toml", f'state_dir = "{self.lbfd.path("state")}"\nnetworks_dir = "{self.lbfd.path("networks.d")}"\n' + text)

    def errors(self, lines):
        return [line for line in lines if line.startswith("error: ")]

    def test_a_sound_configuration(self):
        status, lines = self.check()
        self.assertEqual((0, []), (status, self.errors(lines)), lines)
        text = "\n".join(lines)
        for words in (f"ok: {self.lbfd.path('lbfd.toml')}", "ok: listen: tcp:127.0.0.1:0", "state will be made, with a new database",
                      "ok: networks: zero is this cluster's", "ok: topology: none", "ok: token_file: ", "ok: metrics_token_file: ",
                      "warning: munge: "):
            self.assertIn(words, text)
        self.assertRegex(lines[-1], r"^0 errors, \d warnings?$")

    def test_every_fault_is_said_at_once(self):
        self.configure('lisen = ["unix:/x"]\nworker_threads = 0\nnetwork = "ib"\n'
                       f'listen = ["tcp:203.0.113.7:6820", "tcp:login1:6820", "unix:{self.lbfd.path("none")}/s", "unix:{self.lbfd.path("lbfd.toml")}"]\n'
                       f'token_file = "{self.lbfd.path("open")}"\n')
        self.lbfd.write("open", TOKEN)
        os.chmod(self.lbfd.path("open"), 0o644)
        status, lines = self.check()
        self.assertEqual(1, status)
        text = "\n".join(self.errors(lines))
        for words in ("lbfd.toml:3: lisen: unknown key", "lbfd.toml:4: worker_threads: must be a whole number", "tcp:203.0.113.7:6820: this host does not have it",
                      "tcp:203.0.113.7:6820 is open to other hosts and munge does not answer",
                      "'login1' is not an IP address", "/none: No such file or directory", "a file that is no socket is in the way",
                      "network = \"ib\": no file in", "must be a file of lbfd's user alone"):
            self.assertIn(words, text)
        self.assertIn("9 errors, ", lines[-1])

    def test_networks_and_topology(self):
        self.lbfd.write("networks.d/a.toml", "name = 3\n")
        self.configure(f'topology = "{self.lbfd.path("topology.conf")}"\n')
        self.lbfd.write("topology.conf", "SwitchName=a Switches=b\n")
        status, lines = self.check("--listen", "tcp:127.0.0.1:0")
        self.assertEqual(1, status)
        self.assertEqual(1, len(self.errors(lines)), lines)
        self.assertIn("networks.d/a.toml", self.errors(lines)[0])
        self.assertTrue([line for line in lines if line.startswith("warning: topology: ") and "topology.conf:1" in line], lines)
        os.remove(self.lbfd.path("networks.d/a.toml"))
        self.lbfd.write("topology.conf", "SwitchName=a Nodes=n[0-3]\n")
        status, lines = self.check("--listen", "tcp:127.0.0.1:0")
        self.assertEqual(0, status)
        self.assertIn(f"ok: topology: {self.lbfd.path('topology.conf')}: 4 nodes on 1 levels of switches", lines)

    def test_the_folder_of_the_database(self):
        arguments = ("--listen", "tcp:127.0.0.1:0")
        self.configure("")
        os.mkdir(self.lbfd.path("state"))
        self.assertIn(f"ok: database: {self.lbfd.path('state/lbf.db')} will be made", self.check(*arguments)[1])
        database = sqlite3.connect(self.lbfd.path("state/lbf.db"))
        database.execute("PRAGMA user_version = 9999")
        database.close()
        status, lines = self.check(*arguments)
        self.assertEqual(1, status)
        self.assertIn("schema version 9999, this lbfd knows up to", self.errors(lines)[0])
        self.lbfd.write("state/lbf.db", "not a database\n" * 100)
        status, lines = self.check(*arguments)
        self.assertEqual(1, status)
        self.assertIn("the database is damaged", self.errors(lines)[0])
        self.lbfd.write("file", "")
        status, lines = self.check("--state-dir", self.lbfd.path("file"), *arguments)
        self.assertIn("not a directory", self.errors(lines)[0])

    def test_a_running_lbfd_is_no_fault_and_stays(self):
        with self.lbfd as lbfd:
            lbfd.run_empty_step()
            done = subprocess.run([LBFD, "--config", lbfd.path("lbfd.toml"), "--check-config"], env=lbfd.environment(),
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(0, done.returncode, done)
            self.assertRegex(done.stdout, r"ok: database: .*lbf\.db, schema version \d+\n")
            self.assertEqual(200, lbfd.request("GET", "/v1/health")[0])

    def test_a_file_that_is_not_there_or_no_toml(self):
        for text, words in ((None, "cannot be read"), ("listen = [\n", "lbfd.toml:"), ("", "")):
            if text is None:
                os.remove(self.lbfd.path("lbfd.toml"))
            else:
                self.lbfd.write("lbfd.toml", text)
            status, lines = self.check("--state-dir", self.lbfd.path("state"), "--networks-dir", self.lbfd.path("networks.d"),
                                       "--listen", "tcp:127.0.0.1:0")
            self.assertEqual(1 if words else 0, status, lines)
            self.assertIn(words, "\n".join(self.errors(lines)))

    def test_wrong_options_are_usage(self):
        done = subprocess.run([LBFD, "--check-config", "--config", self.lbfd.path("lbfd.toml"), "--listen", "x"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(2, done.returncode)


if __name__ == "__main__":
    unittest.main(verbosity=2)
