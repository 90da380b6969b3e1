#!/usr/bin/python3
"""With slurmdbd: what job_comment=on puts into a job's record, sacct shows after the job (docs/plugin.md, "The job's own record")."""

import os
import sys

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import MPI, ClusterCase  # noqa: E402


class Accounting(ClusterCase):
    def test_the_jobs_comment_in_sacct(self):
        self.use_own("a", "--accounting", "--plugin-args", "job_comment=on")
        script = os.path.join(self.work, "job.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nsrun {MPI} --lbf-predict {self.program('steps')} 60 1000\n")
        done = self.run_command("sbatch", "--parsable", "--wait", "--ntasks=2", f"--output={self.work}/out", script)
        self.assertEqual(0, done.status, done)
        job = done.out.split(";")[0].strip()

        def shown():
            return self.run_command("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job}", "--format=State,Comment").out

        # slurmctld sends it to slurmdbd when the job is over.
        self.wait_for(lambda: shown().startswith("COMPLETED|"), 30, shown)
        self.assertRegex(shown(), rf"^COMPLETED\|lbf: .*lbf-report -j {job}\.0\n$")


if __name__ == "__main__":
    cluster_case.main()
