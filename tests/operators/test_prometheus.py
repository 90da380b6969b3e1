#!/usr/bin/python3
"""Prometheus and its promtool (Debian's package prometheus) on lbfd's metrics, its alert rules and its dashboard."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import yaml

import openmetrics
from certificates import Authority, TlsLbfd
from lbfd import Lbfd
from test_dashboard import DASHBOARD, HERE, RULES, read


class Promtool(unittest.TestCase):
    def promtool(self, *arguments, stdin=None):
        """(exit status, what it says)."""
        done = subprocess.run(["promtool", *arguments], input=stdin, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_the_exposition(self):
        with Lbfd() as lbfd:
            text = openmetrics.as_text_format(lbfd.request("GET", "/metrics")[2])
        self.assertEqual((0, ""), self.promtool("check", "metrics", stdin=text))
        self.assertNotEqual(0, self.promtool("check", "metrics", stdin=text.replace("# HELP", "# "))[0])

    def test_the_alerts(self):
        """Each fires when it should, and not before."""
        with tempfile.TemporaryDirectory() as folder:
            for path in (RULES, os.path.join(HERE, "lbfd.rules_test.yml")):
                shutil.copy(path, folder)
            for command in ("check", "lbfd.rules.yml"), ("test", "lbfd.rules_test.yml"):
                status, said = self.promtool(command[0], "rules", os.path.join(folder, command[1]))
                self.assertEqual(0, status, said)

    def test_the_dashboards_expressions(self):
        """As recording rules, with Grafana's variables filled in."""
        rules = [{"record": f"panel:{panel['id']}:{target['refId']}",
                  "expr": target["expr"].replace("$__rate_interval", "1m").replace("$__interval", "1m").replace("$instance", ".*")}
                 for panel in json.loads(read(DASHBOARD))["panels"] for target in panel["targets"]]
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/rules.yml", "w", encoding="utf-8") as file:
                yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}, file)
            status, said = self.promtool("check", "rules", f"{folder}/rules.yml")
        self.assertEqual(0, status, said)


class Prometheus(unittest.TestCase):
    """Its own list of targets says how a scrape went. It reads TCP alone: lbfd's Unix socket is for others."""

    def test_its_target_is_up(self):
        with Lbfd() as lbfd:
            lbfd.write("no-token", "x" * 64)
            self.assertEqual(("up", ""), self.scraped(lbfd, ""))
            self.assertIn("401", self.scraped(lbfd, "", token_file="no-token")[1])

    def test_its_target_is_up_over_tls(self):
        with TlsLbfd() as lbfd:
            self.assertEqual(("up", ""), self.scraped(lbfd, f"scheme: https\n  tls_config: {{ca_file: {lbfd.authority.file}}}"))
            health, error = self.scraped(lbfd, f"scheme: https\n  tls_config: {{ca_file: {Authority(lbfd.folder.name, 'other').file}}}")
            self.assertEqual("down", health)
            self.assertIn("certificate signed by unknown authority", error)

    def scraped(self, lbfd, scheme, token_file="metrics-token"):
        """Health and error of the target."""
        with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            free.close()
            with open(f"{folder}/prometheus.yml", "w", encoding="utf-8") as file:
                file.write(f"""
global: {{scrape_interval: 1s}}
rule_files: [{RULES}]
scrape_configs:
- job_name: lbfd
  {scheme}
  authorization: {{credentials_file: {lbfd.path(token_file)}}}
  static_configs: [{{targets: ["127.0.0.1:{lbfd.port}"]}}]
""")
            with open(f"{folder}/log", "w", encoding="utf-8") as log, \
                    subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                      f"--web.listen-address=127.0.0.1:{port}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process:
                try:
                    return self.target(port, f"{folder}/log")
                finally:
                    process.terminate()

    def target(self, port, log):
        def ask(path):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=10) as answer:
                return json.load(answer)["data"]
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up:
            try:
                for target in ask("targets")["activeTargets"]:
                    if target["health"] == "up":
                        build, = ask("query?query=lbfd_build_info")["result"]
                        self.assertIn("version", build["metric"])
                    if target["health"] != "unknown":
                        return target["health"], target["lastError"]
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.2)
        with open(log, encoding="utf-8") as file:
            self.fail(f"Prometheus does not scrape: {file.read()}")


if __name__ == "__main__":
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        print("skipped: Debian's package prometheus is not installed")
        sys.exit(77)
    unittest.main(verbosity=2)
