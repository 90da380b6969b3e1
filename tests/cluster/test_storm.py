#!/usr/bin/python3
"""A program that makes no call for a while and then as many as it can, under an overhead limit (docs/cost-system.md)."""

import sys

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import ClusterCase  # noqa: E402

LIMIT = 1


class Storm(ClusterCase):
    nodes_needed = 1

    def test_silence_then_a_storm(self):
        """The step is whole, says what was seen, keeps to the limit, and has its prediction."""
        self.needs_pmix()  # not tried with MPICH 5
        done, job = self.predict(f"--lbf-overhead={LIMIT}", "--nodes=1", "--ntasks=2", self.program("storm"), "self", "5", "2")
        self.assertEqual(0, done.status, done)
        step = self.step(job)
        self.assertEqual(("complete", ""), (step["state"], step["why_partial"]))
        cost = step["cost"]
        self.assertEqual(LIMIT, cost["limit_percent"])
        # Counted or off, but for a window that happens to be open at the end.
        self.assertLess(cost["seen_share"], 0.9)
        self.assertGreater(cost["seen_share"], 0)
        # Of the ranks' time, not of the processor time that they got: on a busy machine that is less, and the cost the same.
        allowed_s = 1.5 * LIMIT / 100 * step["ranks"] * step["measured_s"]
        self.assertLessEqual(cost["high_percent"] / 100 * cost["program_cpu_s"], allowed_s, cost)
        own = step["predictions"][0]
        self.assertEqual("self", own["kind"])
        self.assertIsNotNone(own["predicted_s"])
        self.assertEqual(cost["seen_share"], own["seen_share"])
        # The silence is one block: where the storm ended the capture at once there is nothing to compare it with, and no
        # interval is given (docs/cost-system.md, "Extrapolation").
        if own["high_s"] is not None:
            self.assertLessEqual(own["low_s"], own["predicted_s"])
            self.assertLessEqual(own["predicted_s"], own["high_s"])
        # The whole run's, not that of what was seen (0.4 of it): all of the processor time that a rank got.
        self.assertGreater(own["predicted_s"], 0.7 * cost["program_cpu_s"] / step["ranks"])
        if cost["state"] == "off":
            self.assertTrue(any(note.startswith("the capture ended after") for note in step["notes"]), step["notes"])


if __name__ == "__main__":
    cluster_case.main()
