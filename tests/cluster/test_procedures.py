#!/usr/bin/python3
"""srun --lbf-procedures: from patched procedures on the nodes to lbf-report --procedures (docs/procedures.md)."""

import re
import sys

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import LAYOUT, ClusterCase  # noqa: E402


class Procedures(ClusterCase):
    @staticmethod
    def own_calls(done):
        """Of all ranks, as the program counted them."""
        totals = {}
        for match in re.finditer(r"^procedure \d+ (\w+) (\d+) ", done.out, re.M):
            totals[match[1]] = totals.get(match[1], 0) + int(match[2])
        return totals

    def assert_calls(self, own, one, step):
        """All of them where the capture was open all the time; where it had to close, those of its windows."""
        if step["cost"]["seen_share"] == 1 and step["cost"]["windows"] <= 1:
            self.assertEqual(own, one["calls"], step)
        else:
            self.assertTrue(0 < one["calls"] <= own, step)

    def test_a_program_is_measured_and_reported(self):
        done, job = self.predict("--lbf-procedures=solve,inner,no_such_one", *LAYOUT, self.program("procedures"), "40")
        self.assertEqual(0, done.status, done)
        own = self.own_calls(done)
        self.assertEqual(4 * 40, own["solve"], done)
        step = self.step(job)
        by_name = {one["name"]: one for one in step["procedures"]["procedures"]}
        for name in ("solve", "inner"):
            self.assertEqual(4, by_name[name]["ranks"], step["procedures"])
            self.assert_calls(own[name], by_name[name], step)
            self.assertGreater(by_name[name]["receiver_s"], 0)
        self.assertEqual("refused", by_name["no_such_one"]["state"])
        self.assertIn("no_such_one", done.err)
        report = self.report("--procedures", "-j", str(job))
        self.assertEqual(0, report.status, report)
        self.assertRegex(report.out, rf"(?m)^solve +measured +{by_name['solve']['calls']} ")
        self.assertIn("critical path ", report.out)
        self.assert_no_relays_or_rings_left()

    def test_the_batch_job_hands_the_option_on(self):
        name = "lbf-procedures-batch"
        script = f"{self.work}/job.sh"
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nsrun --mpi=pmix {self.program('procedures')} 20\n")
        done = self.run_command("sbatch", "--wait", f"--job-name={name}", f"--output={self.work}/out", "--lbf-predict",
                                "--lbf-procedures=solve", *LAYOUT, script)
        self.assertEqual(0, done.status, done)
        step = self.step(self.job_of(name))
        self.assertEqual(["solve"], [one["name"] for one in step["procedures"]["procedures"]])
        self.assert_calls(4 * 20, step["procedures"]["procedures"][0], step)

    def test_auto_ends_on_one_list_on_all_nodes(self):
        done, job = self.predict("--lbf-overhead=20", "--lbf-procedures=auto", *LAYOUT, self.program("procedures"), "900", "apart")
        self.assertEqual(0, done.status, done)
        step = self.step(job)
        by_name = {one["name"]: one for one in step["procedures"]["procedures"]}
        notes = [note for note in step["notes"] if "list 1 of all ranks" in note]
        self.assertEqual(1, len(notes), f"{step['notes']} {done.err}")
        listed = set(re.findall(r"(\w+) [\d.]+ %", notes[0]))
        self.assertTrue(listed, notes)
        if step["cost"]["seen_share"] < 1 or step["cost"]["windows"] > 1:
            self.skipTest(f"a busy machine: the capture closed ({step['cost']['seen_share']:.0%} seen), and a list is followed at recorded calls")
        for name in listed:
            self.assertEqual(("measured", 4), (by_name[name]["state"], by_name[name]["ranks"]), step["procedures"])

    def test_without_the_option_nothing_is_measured(self):
        done, job = self.predict(*LAYOUT, self.program("procedures"), "5")
        self.assertEqual(0, done.status, done)
        self.assertIsNone(self.step(job)["procedures"])
        report = self.report("--procedures", "-j", str(job))
        self.assertIn("no procedure of this was measured", report.err)


if __name__ == "__main__":
    cluster_case.main()
