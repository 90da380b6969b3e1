#!/usr/bin/python3
"""The commands as people type them, against a real lbfd: options that the manual pages name and no unit test runs."""

import json
import os
import re
import sys
import uuid

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import BIN, LAYOUT, MPI, OTHER_USER, USER, ClusterCase, cluster, open_mpi_major  # noqa: E402

COMMANDS = ("lbfd", "lbf-relay", "lbf-report", "lbf-whatif", "lbf-calibrate")


class CommandCase(ClusterCase):
    """What the classes below share; it has no tests."""

    def command(self, name, *arguments, **options):
        return self.run_command(os.path.join(BIN, name), *map(str, arguments), **options)

    def assert_refused(self, status, said, name, *arguments, **options):
        """One line on stderr that begins with the command's name, and nothing on stdout."""
        done = self.command(name, *arguments, **options)
        self.assertEqual(status, done.status, done)
        self.assertIn(said, done.err)
        self.assertEqual("", done.out)

    def predicted_job(self, *options, user=USER):
        done, job = self.predict(*LAYOUT, *options, self.program("steps"), "40", user=user)
        self.assertEqual(0, done.status, done)
        return done, job


class EveryCommand(CommandCase):
    nodes_needed = 1

    def test_version_and_help(self):
        versions = {self.command(name, "--version").out.split()[-1] for name in COMMANDS}
        self.assertEqual(1, len(versions), versions)
        self.assertRegex(versions.pop(), r"^\d+\.\d+\.\d+$")
        for name in COMMANDS:
            helped = self.command(name, "--help")
            self.assertEqual((0, ""), (helped.status, helped.err), name)
            self.assertIn(name, helped.out)

    def test_an_unknown_option_is_wrong_usage(self):
        for name in COMMANDS:
            self.assert_refused(2, "--nosuchoption", name, "--nosuchoption")  # what else is missing comes after it

    def test_lbfd_names_what_is_wrong_with_its_options(self):
        defaults = os.path.join(self.work, "lbfd.toml")
        with open(defaults, "w", encoding="utf-8") as file:
            file.write("# every default\n")
        self.assert_refused(2, "loud", "lbfd", "--log-level", "loud", "--state-dir", self.work, "--config", defaults)
        self.assert_refused(2, "nowhere", "lbfd", "--listen", "nowhere", "--state-dir", self.work, "--config", defaults)
        self.assert_refused(2, "/nonexistent/lbfd.toml", "lbfd", "--config", "/nonexistent/lbfd.toml")


class FlushSpool(CommandCase):
    """docs/relay.md, Leftover files."""

    def spool(self, *users):
        """Runs a step of each user while lbfd is away; returns their (output, job). Their spools wait on node1 and node2."""
        for _ in range(4):
            for node in ("node1", "node2"):
                self.assertEqual(0, self.flush(node, None).returncode, "the nodes have nothing left of other tests")
            self.lbfd("stop")
            jobs = [self.predict(*LAYOUT, "--nodelist=node1,node2", self.program("steps"), "40", user=user, tries=1)
                    for user in users]
            if not any(done.could_not_start() for done, _ in jobs):
                break
            self.lbfd("start")
        for done, _ in jobs:
            self.assertEqual(0, done.status, done)
        for node in ("node1", "node2"):
            self.assertEqual(len(users), len(self.spool_files(node)), "every relay left a spool file on its node")
        return jobs

    def spool_dir(self):
        return self.state("local", "spool-lbf")

    def spool_files(self, node):
        listing = cluster("exec", self.name, node, "find", self.spool_dir(), "-name", "*.lbfspool")
        return listing.stdout.split()

    def flush(self, node, user, *options):
        as_user = ("--user", user) if user else ()
        return cluster("exec", *as_user, self.name, node, os.path.join(BIN, "lbf-relay"), "--flush-spool", self.spool_dir(),
                       *options, check=False)

    def setUp(self):
        super().setUp()
        if not self.facts["namespaces"] or not self.root:
            self.skipTest("needs nodes with namespaces, and users")

    def test_a_user_delivers_what_is_left_of_his_steps(self):
        (done, job), (_, others_job) = self.spool(USER, OTHER_USER)
        self.lbfd("start")
        for node in ("node1", "node2"):
            flushed = self.flush(node, USER)
            self.assertEqual(1, len(self.spool_files(node)), f"the other user's file stays: {flushed.stderr}")
        self.assert_counts(self.printed_counts(done), self.step(job))
        self.assert_unknown(others_job, user=None)
        # lbfd keeps what it knows: a second flush, by root, takes the rest.
        for node in ("node1", "node2"):
            self.assertEqual(0, self.flush(node, None).returncode)
        self.step(others_job, user=OTHER_USER)

    def test_root_delivers_everybodys_as_its_owner(self):
        jobs = self.spool(USER, OTHER_USER)
        self.lbfd("start")
        for node in ("node1", "node2"):
            flushed = self.flush(node, None)
            self.assertEqual((0, ""), (flushed.returncode, flushed.stderr))
            self.assertEqual([], self.spool_files(node))
        for user, (done, job) in zip((USER, OTHER_USER), jobs):
            step = self.step(job, user=user)
            self.assertEqual(user, step["user"])
            self.assert_counts(self.printed_counts(done), step)

    def test_while_lbfd_is_away_everything_stays(self):
        self.spool(USER)
        away = self.flush("node1", USER)
        self.assertEqual(1, away.returncode, away)
        self.assertIn("1 spool files are left", away.stderr)
        self.assertEqual(1, len(self.spool_files("node1")))
        # --server instead of the address that the file names
        self.lbfd("start")
        self.assertEqual(1, self.flush("node1", USER, "--server", f"unix:{self.work}/nobody.sock").returncode)
        self.assertEqual(1, len(self.spool_files("node1")))
        for node in ("node1", "node2"):
            self.assertEqual(0, self.flush(node, USER, "--server", self.env["LBF_SERVER"]).returncode)
            self.assertEqual([], self.spool_files(node))

    def test_wrong_usage(self):
        self.assert_refused(1, "/nonexistent/spool", "lbf-relay", "--flush-spool", "/nonexistent/spool")
        done = self.command("lbf-relay", "--flush-spool", self.work, "--abandon", self.work)
        self.assertEqual(2, done.status, done)


class WhatIf(CommandCase):
    def test_a_job_gives_what_lbfd_predicted(self):
        """lbf-whatif JOB.STEP replays the stored trace with the code of lbfd: the same targets, the same times."""
        _, job = self.predicted_job()
        step = self.step(job)
        networks = os.path.join(cluster_case.HERE, "networks.d")
        whatif = self.command("lbf-whatif", f"{job}.0", "--nodes", "1,2,4", "--cores", step["predictions"][0]["cores"],
                              "--network", "test-fast,test-slow", "--networks-dir", networks, "--json")
        self.assertEqual(0, whatif.status, whatif)
        seen = {(target["nodes"], target["network"]): target["lbf_s"] for target in json.loads(whatif.out)["predictions"]}
        self.assertEqual(6, len(seen))
        compared = 0
        for prediction in step["predictions"]:
            target = prediction["nodes"], prediction["network"]
            if target in seen and prediction["placement"] == "block":
                self.assertAlmostEqual(1, seen[target] / prediction["predicted_s"], 6, target)
                compared += 1
        self.assertEqual(6, compared)

    def test_the_server_is_an_option_or_a_variable(self):
        _, job = self.predicted_job()
        self.step(job)
        arguments = (f"{job}.0", "--nodes", "2", "--network", "zero")
        self.assertEqual(0, self.command("lbf-whatif", *arguments, "--server", self.env["LBF_SERVER"],
                                         env={"LBF_SERVER": "unix:/nonexistent"}).status)
        self.assert_refused(1, "/nonexistent", "lbf-whatif", *arguments, env={"LBF_SERVER": "unix:/nonexistent"})
        self.assert_refused(1, "/nobody", "lbf-whatif", *arguments, "--server", "unix:/nobody")

    def test_another_users_job_is_refused(self):
        if not self.root:
            self.skipTest("needs root, to run commands as two ordinary users")
        _, job = self.predicted_job()
        self.step(job)
        stranger = self.command("lbf-whatif", f"{job}.0", "--nodes", "2", "--network", "zero", user=OTHER_USER)
        self.assertEqual(1, stranger.status, stranger)
        self.assertEqual("", stranger.out)


class Report(CommandCase):
    def setUp(self):
        super().setUp()
        _, self.job = self.predicted_job()
        self.step(self.job)

    def rows(self, *arguments, user=USER):
        done = self.report(*arguments, user=user)
        self.assertEqual((0, ""), (done.status, done.err), done)
        return done.out.splitlines()

    def test_parsable_formats(self):
        job = ("-j", str(self.job))
        self.assertEqual([f"{self.job}.0|4|2|complete"], self.rows(*job, "-n", "-P", "-o", "JobID,NTasks,NNodes,State"))
        self.assertEqual([f"{self.job}.0|4|2|complete|"], self.rows(*job, "-n", "-p", "-o", "JobID,NTasks,NNodes,State"))
        self.assertEqual([f"{self.job}.0;4"], self.rows(*job, "--noheader", "--parsable2", "--delimiter=;", "--format=jobid,ntasks"))
        header, row = self.rows(*job, "--parsable", "--format=jobid")
        self.assertEqual(("JobID|", f"{self.job}.0|"), (header, row))
        self.assertEqual("comp+", self.rows(*job, "-n", "-o", "state%5")[0].strip())

    def test_the_list_of_fields_and_the_long_list(self):
        fields = " ".join(self.rows("-e")).split()
        self.assertIn("SelfError", fields)
        self.assertEqual(fields, " ".join(self.rows("--helpformat")).split())
        for row in (self.rows("-j", str(self.job), "-l"), self.rows("-j", str(self.job), "--long")):
            self.assertEqual(6, len([line for line in row if line.strip().startswith(f"{self.job}.0")]), "a line for each target")
        # Every field that is listed can be asked for.
        self.assertEqual(len(fields), len(self.rows("-j", str(self.job), "-n", "-P", "--delimiter=\x1f", "-o", ",".join(fields))[0]
                                          .split("\x1f")))

    def listed(self, *arguments, user=USER):
        done = self.report(*arguments, "-n", "-P", "-o", "JobID", user=user)
        self.assertEqual(0, done.status, done)
        return {row.partition(".")[0] for row in done.out.splitlines()}

    def test_which_steps_by_time(self):
        job = str(self.job)
        self.assertIn(job, self.listed())
        self.assertIn(job, self.listed("-S", "now-1hours", "-E", "now+1hours"))
        self.assertIn(job, self.listed("--starttime=now-1hours"))
        self.assertNotIn(job, self.listed("-E", "now-1days", "-S", "now-2days"))
        self.assertNotIn(job, self.listed("--starttime=now+1hours"))
        self.assertNotIn(job, self.listed("--starttime=now-2days", "--endtime=now-1days"))
        self.assertEqual({job}, self.listed(f"--jobs={job}"))
        refused = self.report("-S", "yesterdayish")
        self.assertEqual(2, refused.status, refused)

    def test_which_steps_by_user(self):
        if not self.root:
            self.skipTest("needs root, to look as two ordinary users")
        _, others = self.predicted_job(user=OTHER_USER)
        self.step(others, user=OTHER_USER)
        uid = str(self.steps(self.job)[0]["uid"])
        for arguments in (("-u", USER), (f"--user={USER}",), (f"--uid={uid}",)):
            self.assertIn(str(self.job), self.listed(*arguments, user=None), arguments)
            self.assertNotIn(str(others), self.listed(*arguments, user=None), arguments)
        self.assertLessEqual({str(self.job), str(others)}, self.listed("-u", f"{USER},{OTHER_USER}", user=None))
        self.assertLessEqual({str(self.job), str(others)}, self.listed("--allusers", user=None))
        refused = self.report("-u", USER, user=OTHER_USER)
        self.assertEqual((1, ""), (refused.status, refused.out), "asking does not make him see it")

    def test_color(self):
        escape = "\x1b["
        job = ("-j", str(self.job))
        self.assertNotIn(escape, "\n".join(self.rows(*job)), "no color into a pipe")
        self.assertIn(escape, "\n".join(self.rows(*job, "--color=always")))
        self.assertNotIn(escape, "\n".join(self.rows(*job, "--color=never")))
        self.assertEqual(2, self.report(*job, "--color=pink").status)

    def test_times_are_those_of_the_time_zone(self):
        def start(zone):
            done = self.command("lbf-report", "-j", self.job, "-n", "-P", "-o", "Start", env={"TZ": zone})
            return re.search(r"T(\d\d):", done.out)[1]

        self.assertEqual(5, (int(start("UTC-5")) - int(start("UTC"))) % 24)

    def test_the_server_is_an_option_or_a_variable(self):
        nowhere = {"LBF_SERVER": "unix:/nonexistent"}
        job = ("-j", str(self.job), "--json")
        self.assert_refused(1, "/nonexistent", "lbf-report", *job, env=nowhere)
        self.assertEqual(0, self.command("lbf-report", *job, "--server", self.env["LBF_SERVER"], env=nowhere).status)

    def test_brief_needs_a_job(self):
        self.assertEqual(2, self.report("--brief").status)
        self.assertEqual(1, len(self.rows("--brief", "-j", str(self.job))))


class Calibrate(CommandCase):
    def calibrate(self, name, *arguments, **options):
        self.needs_pmix()
        return self.command("lbf-calibrate", "--name", name, "--srun", f"srun {MPI} --overcommit",
                            "--program", os.path.join(BIN, "lbf-calibrate-pingpong"), *arguments, **options)

    def test_a_measured_network_is_one_that_whatif_takes(self):
        name = f"m{uuid.uuid4().hex[:6]}"
        path = os.path.join(self.work, f"{name}.toml")
        done = self.calibrate(name, "--nodes", "node1,node2", "--sizes", "0,1K,64K,128K", "--repeats", "5", "--seconds", "1",
                              "--output", path)
        self.assertEqual(0, done.status, done)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(f'"{name}"', text)
        self.assertIn("65536", text)
        self.assertRegex(text, r"node1\b.*node2", "the file says where it was measured")
        self.assertIn(f"footprint_bytes = {32 << 20}\n", text)
        figure = os.path.join(os.path.dirname(cluster_case.HERE), "golden", "fig3.lbf")
        replayed = self.command("lbf-whatif", figure, "--nodes", "3", "--network", path, "--json")
        self.assertEqual(0, replayed.status, replayed)
        predictions = json.loads(replayed.out)["predictions"]
        self.assertEqual([name], [prediction["network"] for prediction in predictions])
        self.assertEqual(["nic"], [prediction["contention"] for prediction in predictions])
        # Open MPI 4.1: 4 KiB in shared memory and 64 KiB over TCP, less the 56 bytes of its largest header.
        # A message's header is longer in Open MPI 5.
        limits = ["4040", "65480"] if open_mpi_major() == 4 else ["4016", "65456"]
        self.assertEqual(limits, re.findall(r"^eager_limit_bytes = (\d+)$", text, re.M), text)
        # What a rank does by itself: a copy of 128 KiB takes some microseconds, longer than one of 1 KiB.
        local = text.split("[local]", maxsplit=1)[1].split("[contention]", maxsplit=1)[0]
        for key in ("copy", "reduce"):
            table = dict((int(size), float(us)) for size, us in
                         re.findall(r"\[(\d+), ([\d.]+)\]", local.split(f"{key} = ", maxsplit=1)[1].split("\n]\n", maxsplit=1)[0]))
            self.assertEqual({0, 1024, 65536, 131072}, set(table), local)
            self.assertLess(table[1024], table[131072], local)
        self.assertRegex(text, r"(?m)^bandwidth = .*: 1 pair .* MB/s, 2 pairs .* MB/s")

    def test_a_start_that_crashes_is_tried_again(self):
        """Open MPI crashes in MPI_Init at times (docs/cluster-harness.md)."""
        srun = os.path.join(self.work, "srun")
        for status, words in ((139, "by signal 11"), (14, "because a rank was gone")):
            with open(srun, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\nexit {status}\n")
            os.chmod(srun, 0o755)
            done = self.command("lbf-calibrate", "--name", "x", "--only", "remote", "--srun", srun,
                                "--program", os.path.join(BIN, "lbf-calibrate-pingpong"), "-o", "-")
            self.assertEqual(1, done.status, done)
            self.assertEqual(2, done.err.count(f"ended {words} before it printed anything: once more"), done)

    def test_a_network_whose_messages_do_not_share_links(self):
        done = self.calibrate("x", "--only", "remote", "--contention", "none", "--sizes", "0,1K", "--repeats", "3",
                              "--seconds", "1", "-o", "-", "-w", "node1,node2")
        self.assertEqual(0, done.status, done)
        self.assertNotIn("[contention]", done.out)
        self.assertNotIn("eager_limit_bytes", done.out)
        self.assertIn("up to 1024 bytes, the largest size", done.out)

    def test_one_of_the_two_measurements_to_stdout(self):
        name = f"m{uuid.uuid4().hex[:6]}"
        done = self.calibrate(name, "--only", "self-node", "--sizes", "0,1K", "--repeats", "3", "--seconds", "1", "-o", "-",
                              "-w", "node1", "--footprint", "0")
        self.assertEqual(0, done.status, done)
        self.assertIn("footprint_bytes = 0\n", done.out)
        self.assertIn("self-node", done.out)
        self.assertNotIn("remote", done.out.split("[about]", maxsplit=1)[0])
        self.assertNotIn("[contention]", done.out)

    def test_memory_and_teams_of_a_node(self):
        done = self.command("lbf-calibrate", "--only", "memory", "-w", "node1", "--program", os.path.join(BIN, "lbf-calibrate-node"))
        self.assertEqual(0, done.status, done)
        self.assertIn('# memory_node = "node1"', done.out)
        bandwidth = re.search(r"(?m)^bandwidth_MBps = \[\[1, ([\d.]+)\]", done.out)
        self.assertTrue(bandwidth and float(bandwidth[1]) > 0, done.out)

    def test_wrong_usage(self):
        for arguments in (("--sizes", "1Q"), ("--repeats", "0"), ("--seconds", "-1"), ("--only", "both"),
                          ("--footprint", "2G")):
            done = self.calibrate("x", "--output", os.path.join(self.work, "x.toml"), *arguments)
            self.assertEqual(2, done.status, f"{arguments}: {done}")
            self.assertFalse(os.path.exists(os.path.join(self.work, "x.toml")))
        self.assert_refused(2, "--name", "lbf-calibrate", "--quick")

    def test_a_failure_leaves_no_file(self):
        path = os.path.join(self.work, "x.toml")
        done = self.command("lbf-calibrate", "--name", "x", "--srun", "srun --nosuchoption", "--output", path)
        self.assertEqual(1, done.status, done)
        self.assertEqual([], os.listdir(self.work))


if __name__ == "__main__":
    cluster_case.main()
