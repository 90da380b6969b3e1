#!/usr/bin/python3
"""GET /metrics: OpenMetrics as the specification wants it, for those who may read it."""

import json
import os
import re
import time
import unittest

import openmetrics
from lbfd import METRICS_TOKEN, Lbfd

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))


class Strictness(unittest.TestCase):
    GOOD = "# TYPE a counter\n# HELP a Some.\na_total 1\n# TYPE b_s gauge\n# UNIT b_s s\n# HELP b_s Some.\nb_s{x=\"1\"} 2.5\n# EOF\n"

    def test_what_is_right(self):
        families = openmetrics.parse(self.GOOD)
        self.assertEqual(1, openmetrics.value(families, "a_total"))
        self.assertEqual(2.5, openmetrics.value(families, "b_s", x="1"))

    def test_what_is_wrong(self):
        for old, new in (("# EOF\n", ""), ("# EOF\n", "# EOF"), ("# EOF\n", "# EOF\n\n"), ("a_total 1", "a 1"), ("a_total 1", "a_total -1"),
                         ("a_total 1\n", ""), ("a_total 1\n", "a_total 1\na_total 1\n"), ("a_total 1\n", "a_total 1\n\n"),
                         ("# HELP a Some.\n", ""), ("# TYPE a counter", "# TYPE a count"), ("# UNIT b_s s", "# UNIT b_s seconds"),
                         ("a_total 1", "a_total  1"), ("x=\"1\"", "x=\"1\",x=\"2\""), ("x=\"1\"", "x=\"\\t\""), ("2.5", "2,5"),
                         ("# TYPE b_s gauge", "# TYPE b_s gauge\n# TYPE b_s gauge"), ("b_s{", "a{"),
                         ("# EOF", "# TYPE a counter\n# HELP a b\na_total 3\n# EOF")):
            self.assertIn(old, self.GOOD)
            with self.assertRaises(ValueError, msg=(old, new)):
                openmetrics.parse(self.GOOD.replace(old, new))


class Metrics(unittest.TestCase):
    def test_the_exposition(self):
        with Lbfd() as lbfd:
            lbfd.run_empty_step()
            status, content_type, text = lbfd.request("GET", "/metrics")
            self.assertEqual((200, openmetrics.CONTENT_TYPE), (status, content_type))
            families = openmetrics.parse(text)

            def value(name, **labels):
                return openmetrics.value(families, name, **labels)
            self.assertEqual(1, value("lbfd_steps_started_total"))
            self.assertEqual(1, value("lbfd_steps_ended_total", state="partial"))
            self.assertEqual(0, value("lbfd_steps_running"))
            self.assertEqual(0, value("lbfd_disk_full", of="traces"))
            self.assertGreater(value("lbfd_http_responses_total", status="200"), 2)
            self.assertGreater(value("lbfd_disk_bytes"), value("lbfd_disk_free_bytes"))
            self.assertGreater(value("lbfd_database_bytes"), 4096)
            self.assertGreater(value("process_resident_memory_bytes"), 1 << 20)
            self.assertGreater(value("process_cpu_seconds_total"), 0)
            self.assertLess(abs(time.time() - value("process_start_time_seconds")), 60)
            self.assertLess(value("lbfd_replay_lag_seconds"), 5)

    def test_no_label_grows_with_users(self):
        with Lbfd() as lbfd:
            before = openmetrics.parse(lbfd.request("GET", "/metrics")[2])
            for job in range(20):
                lbfd.run_empty_step(job + 1)
                self.assertEqual(404, lbfd.request("GET", f"/v1/nothing-{job}")[0])
            after = openmetrics.parse(lbfd.request("GET", "/metrics")[2])
            self.assertEqual({key for f in before.values() for key in f.samples}, {key for f in after.values() for key in f.samples})
            self.assertEqual(20, openmetrics.value(after, "lbfd_http_responses_total", status="404"))

    def test_who_may_read_it(self):
        with Lbfd() as lbfd:
            self.assertEqual(200, lbfd.request("GET", "/metrics", token=METRICS_TOKEN)[0])
            for token in (None, "x" * 64, METRICS_TOKEN[:-1]):
                self.assertEqual(401, lbfd.request("GET", "/metrics", token=token)[0], token)
            for method, target in (("GET", "/v1/steps?all=1"), ("GET", "/v1/networks"),
                                   ("PUT", "/v1/steps/c/1/0/0/streams/0")):
                status, _, body = lbfd.request(method, target, "{}" if method == "PUT" else None, token=METRICS_TOKEN)
                self.assertEqual((401, "this token is for GET /metrics alone"), (status, json.loads(body)["error"]), target)
            for target in ("/v1/metrics", "/metrics?x=1", "/metrics/"):
                self.assertEqual(404, lbfd.request("GET", target)[0], target)
            self.assertEqual(404, lbfd.request("POST", "/metrics")[0])

    def test_the_documents_table_is_the_exposition(self):
        with open(os.path.join(ROOT, "docs/formats/http-v1.md"), encoding="utf-8") as file:
            section = re.search(r"^## Metrics\n(.*?)(?=^## |\Z)", file.read(), re.M | re.S)[1]
        named = re.findall(r"^\| `([a-z_]+)(?:\{\w+\})?` \|", section, re.M)
        with Lbfd() as lbfd:
            families = openmetrics.parse(lbfd.request("GET", "/metrics")[2])
        self.assertEqual(sorted(openmetrics.sample_names(families)), sorted(named))


if __name__ == "__main__":
    unittest.main(verbosity=2)
