#!/usr/bin/python3
"""A program that runs again is recognised, and what was predicted for it stands beside what was measured."""

import json
import sys

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import ClusterCase  # noqa: E402


class Outcomes(ClusterCase):
    nodes_needed = 4

    def accuracy(self):
        done = self.report("--accuracy", "--json")
        self.assertEqual(0, done.status, done)
        return json.loads(done.out)

    def count(self, accuracy, distance):
        return sum(group["outcomes"] for group in accuracy["by_distance"] if group["distance"] == distance)

    def predicted_step(self, *arguments):
        done, job = self.predict("--kill-on-bad-exit=1", *arguments, self.program("steps"), "37")
        self.assertEqual(0, done.status, done)
        return job, self.step(job)

    def test_one_program_on_two_nodes_and_on_four(self):
        before = self.accuracy()
        self.predicted_step("--nodes=2", "--ntasks=4")
        job, _ = self.predicted_step("--nodes=4", "--ntasks=4")
        # The step is in the database a moment after it is over.
        self.wait_for(lambda: self.count(self.accuracy(), "nodes") > self.count(before, "nodes"), 20,
                      f"no outcome of job {job} on another number of nodes: {self.accuracy()}")
        after = self.accuracy()
        self.assertGreaterEqual(self.count(after, "self"), self.count(before, "self") + 2)
        program = next(one for one in after["by_program"] if one["name"] == "steps" and one["ranks"] == 4)
        self.assertRegex(program["build_id"], r"^(gnu:[0-9a-f]{16,}|file:\d+-[0-9a-f]{8})$")
        table = self.report("--accuracy", "-n", "-P")
        self.assertEqual(0, table.status, table)
        self.assertRegex(table.out, r"(?m)^distance\|nodes\|\|\d+\|[-+][\d.]+%\|[\d.]+%\|[-+][\d.]+%$")


if __name__ == "__main__":
    cluster_case.main()
