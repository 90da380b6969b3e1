#!/usr/bin/python3
"""srun --lbf-procedures: from patched procedures on the nodes to lbf-report --procedures (docs/procedures.md)."""

import re
import sys

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import LAYOUT, MPI, ClusterCase  # noqa: E402


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
        # Where the capture has to close after a moment, nothing is predicted.
        done, job = self.predict("--lbf-overhead=20", "--lbf-procedures=solve,inner,no_such_one", *LAYOUT,
                                 self.program("procedures"), "40")
        self.assertEqual(0, done.status, done)
        own = self.own_calls(done)
        self.assertEqual(4 * 40, own["solve"], done)
        step = self.step(job)
        by_name = {one["name"]: one for one in step["procedures"]["procedures"]}
        for name in ("solve", "inner"):
            self.assertEqual(4, by_name[name]["ranks"], step["procedures"])
            self.assert_calls(own[name], by_name[name], step)
            self.assertGreater(by_name[name]["receiver_s"] or 0, 0, step)
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
            file.write(f"#!/bin/sh\nsrun {MPI} {self.program('procedures')} 20\n")
        done = self.run_command("sbatch", "--wait", f"--job-name={name}", f"--output={self.work}/out", "--lbf-predict",
                                "--lbf-procedures=solve", *LAYOUT, script)
        self.assertEqual(0, done.status, done)
        step = self.step(self.job_of(name))
        self.assertEqual(["solve"], [one["name"] for one in step["procedures"]["procedures"]])
        self.assert_calls(4 * 20, step["procedures"]["procedures"][0], step)

    def assert_auto_ends_on_one_list(self, *options):
        done, job = self.predict(*options, "--lbf-procedures=auto", *LAYOUT, self.program("procedures"), "900", "apart")
        self.assertEqual(0, done.status, done)
        step = self.step(job)
        by_name = {one["name"]: one for one in step["procedures"]["procedures"]}
        notes = [note for note in step["notes"] if re.search(r"list \d+ of all ranks", note)]
        self.assertEqual(1, len(notes), f"{step['notes']} {done.err}")
        listed = set(re.findall(r"(\w+) [\d.]+ %", notes[0]))
        self.assertTrue(listed, notes)
        cost = step["cost"]
        if cost["seen_share"] < 1:
            # The relay wakes by the clock, whatever part of a processor the ranks get: on a busy machine that alone may be above the
            # limit. Nothing else of this program may close the capture.
            relay_percent = 100 * cost["relay_cpu_s"] / cost["program_cpu_s"]
            self.assertGreater(relay_percent, 0.5 * cost["limit_percent"], f"{cost['seen_share']:.0%} seen: {cost}")
            self.skipTest(f"a busy machine: the relay took {relay_percent:.2g} % of what the ranks got, the limit is {cost['limit_percent']} %")
        # Reading symbols and patching is spent once, and not what the limit is about.
        self.assertLess(100 * cost["direct_s"], cost["limit_percent"] * cost["program_cpu_s"])
        self.assertGreater(cost["once_capture_s"], cost["direct_s"])
        for name in listed:
            self.assertEqual(("measured", 4), (by_name[name]["state"], by_name[name]["ranks"]), step["procedures"])
            self.assertGreater(by_name[name]["calls"], 0)
            self.assertGreater(by_name[name]["zeroed_s"], 0)
        report = self.report("--procedures", "-j", str(job))
        rows = re.findall(r"(?m)^(\w+)(?:\([^)]*\))? +measured +\d+ +\S+ +\S+ +([\d.]+)%", report.out)
        self.assertEqual(listed, {name for name, _ in rows}, report)
        shares = [float(share) for _, share in rows]
        self.assertEqual(sorted(shares, reverse=True), shares, report)
        self.assertGreater(sum(shares), 25, "of the critical path, though sampling came first")

    def test_auto_ends_on_one_list_on_all_nodes(self):
        self.assert_auto_ends_on_one_list("--lbf-overhead=20")

    def test_auto_ends_on_one_list_at_the_default_limit(self):
        self.assert_auto_ends_on_one_list()

    def test_without_the_option_nothing_is_measured(self):
        done, job = self.predict(*LAYOUT, self.program("procedures"), "5")
        self.assertEqual(0, done.status, done)
        self.assertIsNone(self.step(job)["procedures"])
        report = self.report("--procedures", "-j", str(job))
        self.assertIn("no procedure of this was measured", report.err)


if __name__ == "__main__":
    cluster_case.main()
