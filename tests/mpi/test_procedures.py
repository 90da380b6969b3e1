#!/usr/bin/python3
"""Procedure times of an unmodified program, from its patched procedures to lbf-report: lbf-run --procedures (no Slurm).

Run by ctest as `test_procedures.py Case.test_name` with LBF_BUILD_DIR and LBF_PROGRAMS set; 77: skipped.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.abspath(os.environ.get("LBF_BUILD_DIR", "build/release"))
PROGRAMS = os.environ.get("LBF_PROGRAMS", f"{BUILD}/tests/mpi")
MPIRUN = os.environ.get("LBF_MPIRUN", "mpirun.openmpi")
SKIPPED = 77


class Procedures(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="lbf-procedures-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("LBF_", "SLURM_"))}
        self.env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1",
                        OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl="vader,self", OMPI_MCA_pml="ob1",
                        OMPI_MCA_btl_vader_single_copy_mechanism="none", HOME=self.work)

    def run_command(self, *command, status=0):
        done = subprocess.run(command, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150,
                              check=False)
        self.assertEqual(status, done.returncode, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return done

    def lbf_run(self, options, ranks, *program):
        """The program under lbf-run --procedures; what it printed, and its step, the newest one."""
        done = self.run_command(f"{BUILD}/bin/lbf-run", "--dir", f"{self.work}/data", *options, "--", MPIRUN,
                                *(["--oversubscribe"] if "mpich" not in MPIRUN else []), "-np", str(ranks), *program)
        listed = self.run_command(f"{BUILD}/bin/lbf-run", "--dir", f"{self.work}/data", "--", "lbf-report", "-a", "--json",
                                  "-S", "now-1hours")
        return done, max(json.loads(listed.stdout)["steps"], key=lambda step: step["job"])

    @staticmethod
    def own(done):
        """Of each procedure: calls and seconds of all ranks, as the program itself counted them."""
        totals = {}
        for match in re.finditer(r"^procedure \d+ (\w+) (\d+) ([\d.]+)$", done.stdout, re.M):
            calls, seconds = totals.get(match[1], (0, 0.0))
            totals[match[1]] = (calls + int(match[2]), seconds + float(match[3]))
        return totals

    def test_counts_are_the_programs_own_and_times_near_them(self):
        done, step = self.lbf_run(["--overhead", "100", "--procedures", "solve,inner,check,memcpy,no_such_one"], 2,
                                  f"{PROGRAMS}/procedures", "60")
        self.assertEqual(("complete", ""), (step["state"], step["why_partial"]))
        own = self.own(done)
        self.assertEqual({"solve", "inner", "check"}, set(own))
        by_name = {one["name"]: one for one in step["procedures"]["procedures"]}
        for name, (calls, _) in own.items():
            self.assertEqual(("measured", calls, 2), (by_name[name]["state"], by_name[name]["calls"], by_name[name]["ranks"]))
        # What a rank lost of its processor is taken off all procedures of that interval alike: small ones are far off then.
        for name, far in (("solve", 0.15), ("inner", 0.5)):
            self.assertAlmostEqual(1, by_name[name]["inclusive_s"] / own[name][1], delta=far, msg=f"{name}: {step['procedures']}")
        self.assertAlmostEqual(by_name["solve"]["inclusive_s"] - by_name["inner"]["inclusive_s"], by_name["solve"]["exclusive_s"],
                               delta=0.01 * own["solve"][1])
        self.assertLess(by_name["check"]["inclusive_s"], 0.2 * own["solve"][1], "its wait inside MPI is nobody's")
        self.assertEqual("refused", by_name["no_such_one"]["state"])
        self.assertIn("is no procedure of the program", by_name["no_such_one"]["note"])
        self.assertEqual(1, done.stderr.count("'no_such_one' is no procedure"), "rank 0 says it, and no other")
        path = step["procedures"]["critical_path"]
        self.assertFalse(path["partial"])
        self.assertGreater(by_name["solve"]["critical_path_s"] + by_name["inner"]["critical_path_s"], 0.5 * path["length_s"])
        for key in ("receiver_s", "sender_s", "zeroed_s"):
            self.assertGreater(by_name["solve"][key], 0)
        self.assertLess(by_name["solve"]["zeroed_s"], 0.5 * path["as_it_ran_s"])
        self.assertGreater(step["cost"]["direct_s"], 0)

        # The same from the stored trace, by lbf-whatif, which knows the names.
        job = f"{step['job']}.mpirun-{step['step'] - 0xE0000000:07x}"
        asked = self.run_command(f"{BUILD}/bin/lbf-run", "--dir", f"{self.work}/data", "--", "lbf-whatif", job, "--procedures",
                                 "solve,inner", "--json")
        for one in json.loads(asked.stdout)["procedures"]:
            self.assertEqual(own[one["name"]][0], one["calls"])
        table = self.run_command(f"{BUILD}/bin/lbf-run", "--dir", f"{self.work}/data", "--", "lbf-report", "--procedures", "-j",
                                 job).stdout
        self.assertRegex(table, r"(?m)^solve +measured +120 ")
        self.assertIn("critical path ", table)

    def test_what_is_called_too_often_is_switched_off_and_the_limit_holds(self):
        done, step = self.lbf_run(["--overhead", "20", "--procedures", "solve,storm"], 2, f"{PROGRAMS}/procedures", "30", "storm")
        by_name = {one["name"]: one for one in step["procedures"]["procedures"]}
        own = self.own(done)
        self.assertEqual("off", by_name["storm"]["state"], step["procedures"])
        self.assertIn("called too often", by_name["storm"]["note"])
        self.assertLess(by_name["storm"]["calls"], 0.1 * own["storm"][0])
        solve = by_name["solve"]
        self.assertEqual("measured", solve["state"])
        # Ranks that wait poll: on a busy machine the limit may close the capture for a while, and only windows are recorded.
        if step["cost"]["seen_share"] == 1 and step["cost"]["windows"] <= 1:
            self.assertEqual(own["solve"][0], solve["calls"], step["cost"])
        else:
            self.assertTrue(0 < solve["calls"] < own["solve"][0], step["cost"])

    def skip_if_the_relay_closed_it(self, step):
        """The relay wakes by the clock, whatever part of a processor the ranks get: on a busy machine that alone may be above the limit.
        Nothing else that is spent while a program runs which calls MPI a few hundred times a second may close its capture."""
        cost = step["cost"]
        if cost["seen_share"] == 1:
            return
        relay_percent = 100 * cost["relay_cpu_s"] / cost["program_cpu_s"]
        self.assertGreater(relay_percent, 0.5 * cost["limit_percent"], f"{cost['seen_share']:.0%} seen: {cost}")
        self.skipTest(f"a busy machine: the relay took {relay_percent:.2g} % of what the ranks got, the limit is {cost['limit_percent']} %")

    def test_auto_ends_on_one_list_for_ranks_with_other_work(self):
        self.assert_auto_ends_on_one_list(["--overhead", "20"])

    def test_auto_ends_on_one_list_at_the_default_limit(self):
        step = self.assert_auto_ends_on_one_list([])
        cost = step["cost"]
        self.assertEqual(2, cost["limit_percent"])
        # Reading symbols and patching is spent once, and not what the limit is about.
        self.assertLess(100 * cost["direct_s"], 2 * cost["program_cpu_s"])
        self.assertGreater(cost["once_capture_s"], cost["direct_s"])

    def assert_auto_ends_on_one_list(self, options):
        for rounds in ("900", "3600"):
            done, step = self.lbf_run([*options, "--procedures", "auto"], 2, f"{PROGRAMS}/procedures", rounds, "apart")
            self.skip_if_the_relay_closed_it(step)
            by_name = {one["name"]: one for one in step["procedures"]["procedures"]}
            # Beside other programs the list may come too late for a short run.
            if "the run ended before the list" not in by_name.get("auto", {}).get("note", ""):
                break
        notes = [note for note in step["notes"] if re.search(r"list \d+ of all ranks", note)]
        self.assertEqual(1, len(notes), f"{step['notes']} {done.stderr}")
        # spin is what they both call, and what samples find.
        self.assertTrue({"left", "right", "spin"} & set(by_name), step["procedures"])
        listed = set(re.findall(r"(\w+) [\d.]+ %", notes[0]))
        measured = {name for name, one in by_name.items() if one["state"] == "measured"}
        self.assertEqual(listed, measured, f"{notes} {step['procedures']}")
        for name in listed:
            self.assertEqual(2, by_name[name]["ranks"], "both ranks measure what either is hot in")
            # Nothing is known of it before, and the hooks keep half of the limit.
            self.assertEqual(("limit", step["cost"]["limit_percent"] / 2),
                             (by_name[name]["predicted_from"], by_name[name]["predicted_cost_percent"]))
            self.assertLess(by_name[name]["observed_cost_percent"], step["cost"]["limit_percent"] / 2)
        own = self.own(done)
        for name in listed & set(own):
            self.assertTrue(0 < by_name[name]["calls"] < own[name][0], "from the list on")
            self.assertGreater(by_name[name]["zeroed_s"], 0)
        return step

    def test_what_is_switched_off_is_sampled(self):
        done, step = self.lbf_run(["--overhead", "20", "--procedures", "storm"], 2, f"{PROGRAMS}/procedures", "600", "nested")
        storm, = step["procedures"]["procedures"]
        self.assertEqual("off", storm["state"], step["procedures"])
        # The program does not time it: it is nearly all of what stormy does, and runs a fifth of that beside it.
        # Where waits poll millions of times a second a part of the run is captured, and its time is of that part.
        own_s = self.own(done)["stormy"][1] * step["cost"]["seen_share"]
        self.assertTrue(0.7 * own_s < storm["sampled_s"] < 1.6 * own_s, f"{storm} {own_s} {step['cost']}")
        self.assertLess(storm["sampled_low_s"], storm["sampled_s"])
        self.assertLess(storm["sampled_s"], storm["sampled_high_s"])
        self.assertIn("sampled: ", storm["note"])
        self.assertLess(storm["zeroed_s"], step["procedures"]["critical_path"]["as_it_ran_s"])
        self.assertGreater(storm["observed_cost_percent"], 10, "until it was switched off")
        job = f"{step['job']}.mpirun-{step['step'] - 0xE0000000:07x}"
        table = self.run_command(f"{BUILD}/bin/lbf-run", "--dir", f"{self.work}/data", "--", "lbf-report", "--procedures", "-j",
                                 job).stdout
        self.assertRegex(table, r"(?m)^storm +sampled ")
        path = step["procedures"]["critical_path"]
        if step["cost"]["seen_share"] < 0.99:
            self.assertRegex(table, r"(?m)^[\d.]+ % of the run was captured: ")
            self.assertGreater(path["unseen_s"], 0)
        else:
            self.assertEqual(0, path["unseen_s"])

    def test_auto_finds_what_takes_the_time(self):
        self.env["LBF_CAPTURE_PROCEDURES_WAIT"] = "0"  # no list of all ranks: as without lbfd
        done, step = self.lbf_run(["--overhead", "20", "--procedures", "auto"], 2, f"{PROGRAMS}/procedures", "600")
        names = {one["name"] for one in step["procedures"]["procedures"]}
        self.assertTrue(names & {"solve", "spin", "inner"}, f"{step['procedures']} {step['notes']} {done.stderr}")
        self.assertTrue([note for note in step["notes"] if "auto: measured from now on" in note], step["notes"])
        self.assertIsNotNone(step["procedures"]["critical_path"])

    def test_auto_takes_the_caller_of_what_is_called_too_often(self):
        self.env["LBF_CAPTURE_PROCEDURES_WAIT"] = "0"
        done, step = self.lbf_run(["--overhead", "20", "--procedures", "auto"], 2, f"{PROGRAMS}/procedures", "300", "nested")
        if step["cost"]["seen_share"] < 0.5:
            self.skip_if_the_relay_closed_it(step)
        by_name = {one["name"]: one for one in step["procedures"]["procedures"]}
        self.assertEqual("off", by_name["storm"]["state"], f"{step['procedures']} {step['notes']}")
        self.assertIsNone(by_name["storm"]["receiver_s"], "its times end where it was switched off")
        self.assertIn("says nothing of what ran after", by_name["storm"]["note"])
        caller = by_name["stormy"]
        self.assertEqual("measured", caller["state"], step["procedures"])
        own_calls, own_s = self.own(done)["stormy"]
        self.assertTrue(0 < caller["calls"] < own_calls, "from the choice on")
        self.assertAlmostEqual(1, caller["inclusive_s"] / caller["calls"] / (own_s / own_calls), delta=0.3)
        self.assertGreater(caller["zeroed_s"], 0)
        self.assertTrue([note for note in step["notes"] if "storm is called too often: stormy, which calls it" in note], step["notes"])

    def test_auto_says_that_the_limit_ended_the_capture(self):
        """So many calls that even counting them is above the limit: that comes before a second of processor time."""
        _, step = self.lbf_run(["--overhead", "0.2", "--procedures", "auto"], 2, f"{PROGRAMS}/storm", "self", "5")
        self.assertEqual("off", step["cost"]["state"], step["cost"])
        auto, = step["procedures"]["procedures"]
        self.assertEqual(("auto", "refused"), (auto["name"], auto["state"]))
        self.assertIn("the overhead limit ended the capture before there were enough samples", auto["note"])

    def test_a_static_program_is_told_why_not(self):
        with open(f"{self.work}/static.c", "w", encoding="utf-8") as source:
            source.write("int main(void) { return 0; }\n")
        program = f"{self.work}/static"
        self.run_command("gcc", "-static", "-o", program, f"{self.work}/static.c")
        done = self.run_command(f"{BUILD}/bin/lbf-run", "--dir", f"{self.work}/data", "--procedures", "main", "--", MPIRUN, "-np", "1",
                                program)
        self.assertIn(f"lbf-run: {program} is linked statically: nothing can be loaded into it, so nothing of it is seen, and its "
                      "procedures cannot be measured", done.stderr)

    def test_without_the_option_nothing_is_loaded(self):
        done, step = self.lbf_run([], 2, f"{PROGRAMS}/procedures", "5")
        self.assertIsNone(step["procedures"])
        self.assertNotIn("lbf: procedures", done.stderr)


if __name__ == "__main__":
    if shutil.which(MPIRUN) is None:
        print(f"skipped: {MPIRUN} is not installed")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
