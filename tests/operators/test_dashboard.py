#!/usr/bin/python3
"""The dashboard and the alert rules in etc/: what Grafana and Prometheus need of them is there, and every metric that
they name is one of lbfd's."""

import json
import os
import re
import unittest

import yaml

import openmetrics
from lbfd import Lbfd

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../.."))
RULES = os.path.join(ROOT, "etc/prometheus/lbfd.rules.yml")
DASHBOARD = os.path.join(ROOT, "etc/grafana/lbfd-dashboard.json")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def metrics_of(expression):
    return set(re.findall(r"\b(?:lbfd|process)_[a-z_]+", expression))


class Dashboard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dashboard = json.loads(read(DASHBOARD))

    def test_what_grafana_needs(self):
        board = self.dashboard
        for key, kind in (("uid", str), ("title", str), ("schemaVersion", int), ("panels", list), ("time", dict), ("templating", dict)):
            self.assertIsInstance(board[key], kind, key)
        self.assertGreaterEqual(board["schemaVersion"], 36)
        self.assertLessEqual(len(board["uid"]), 40)
        self.assertNotIn("id", board, "Grafana gives it")
        variables = {variable["name"] for variable in board["templating"]["list"]}
        self.assertEqual({"datasource", "instance"}, variables)
        used = set(re.findall(r"\$\{?(\w+)", json.dumps(board["panels"]))) - {"__rate_interval", "__interval"}
        self.assertEqual(variables, used)

    def test_panels(self):
        places, ids = set(), set()
        for panel in self.dashboard["panels"]:
            self.assertIn(panel["type"], ("stat", "timeseries"))
            self.assertTrue(panel["title"])
            ids.add(panel["id"])
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24)
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(places & cells, f"{panel['title']} lies over another panel")
            places |= cells
            self.assertTrue(panel["targets"])
            names = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(set(names)), len(names))
            for one in [panel, *panel["targets"]]:
                self.assertEqual({"type": "prometheus", "uid": "${datasource}"}, one["datasource"])
            for target in panel["targets"]:
                self.assertTrue(metrics_of(target["expr"]), target)
                self.assertEqual(target["expr"].count("("), target["expr"].count(")"), target)
        self.assertEqual(len(self.dashboard["panels"]), len(ids))


class Rules(unittest.TestCase):
    def test_every_rule_says_what_to_do(self):
        group, = yaml.safe_load(read(RULES))["groups"]
        names = [rule["alert"] for rule in group["rules"]]
        self.assertEqual(len(set(names)), len(names))
        for rule in group["rules"]:
            self.assertIn(rule["labels"]["severity"], ("warning", "critical"))
            for key in ("summary", "description"):
                self.assertTrue(rule["annotations"][key], rule)
            self.assertIn("$labels.instance", rule["annotations"]["summary"])


class Names(unittest.TestCase):
    def test_every_metric_is_one_of_lbfds(self):
        with Lbfd() as lbfd:
            known = openmetrics.sample_names(openmetrics.parse(lbfd.request("GET", "/metrics")[2]))
        named = metrics_of(read(RULES)) | metrics_of(json.dumps(json.loads(read(DASHBOARD))["panels"]))
        self.assertEqual(set(), named - known)
        self.assertEqual(set(), known - named, "metrics that nobody watches")


if __name__ == "__main__":
    unittest.main(verbosity=2)
