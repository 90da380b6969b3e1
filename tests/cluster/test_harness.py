#!/usr/bin/python3
"""The harness itself: nodes are real nodes to MPI, links can be shaped, clusters do not collide, a crash is cleaned up."""

import json
import os
import re
import signal
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402
from cluster_case import ClusterCase, cluster, cluster_name  # noqa: E402


class Harness(ClusterCase):
    def received_bytes(self, node):
        """Bytes that `node` sent to the others: what came in at the bridge's end of its link."""
        number = int(node.removeprefix("node"))
        with open(f"/sys/class/net/lbf{self.facts['number']}v{number}/statistics/rx_bytes", encoding="ascii") as file:
            return int(file.read())

    def one_way_s(self, nodes, size_bytes, rounds):
        done = self.srun(f"--nodes={nodes}", "--ntasks=2", self.program("transfer"), str(size_bytes), str(rounds))
        self.assertEqual(0, done.status, done)
        return float(re.search(r"one_way_s (\S+)", done.out)[1])

    def test_every_node_has_its_own_name_address_and_tmp(self):
        done = self.srun(f"--nodes={self.facts['nodes']}", "--ntasks-per-node=1", "sh", "-c",
                         "echo x >/tmp/mine-$(hostname); echo $(hostname) $(ls /tmp | grep -c mine-) $(id -un)")
        self.assertEqual(0, done.status, done)
        user = cluster_case.USER if self.root else done.out.split()[2]
        self.assertEqual({f"node{i} 1 {user}" for i in range(1, self.facts["nodes"] + 1)}, set(done.out.splitlines()))

    def test_ranks_of_two_nodes_talk_over_the_link_and_ranks_of_one_do_not(self):
        size, rounds = 1 << 20, 8
        before = self.received_bytes("node1"), self.received_bytes("node2")
        self.one_way_s(2, size, rounds)
        between = self.received_bytes("node1") - before[0], self.received_bytes("node2") - before[1]
        self.assertGreaterEqual(min(between), size * rounds)
        before = [self.received_bytes(f"node{i}") for i in range(1, self.facts["nodes"] + 1)]
        self.one_way_s(1, size, rounds)
        after = [self.received_bytes(f"node{i}") for i in range(1, self.facts["nodes"] + 1)]
        self.assertLess(max(b - a for a, b in zip(before, after)), size)

    def test_a_link_is_shaped_in_both_directions_while_the_cluster_runs(self):
        self.addCleanup(cluster, "shape", self.name, "all", "none")
        size, rounds = 1 << 20, 2
        rates = {}
        for rate in ("20mbit", "100mbit"):
            cluster("shape", self.name, "all", rate)
            rates[rate] = size * 8 / self.one_way_s(2, size, rounds)
        # A shaped link never carries more than its rate; how much less is the machine's business.
        self.assertLess(rates["20mbit"], 20e6)
        self.assertLess(rates["100mbit"], 100e6)
        self.assertGreater(rates["100mbit"], 2 * rates["20mbit"])
        cluster("shape", self.name, "all", "none")
        # Once is enough: other tests may hold a processor meanwhile.
        self.wait_for(lambda: size * 8 / self.one_way_s(2, size, rounds) > 100e6, 60, "the link is still shaped")

    def test_wrong_arguments_are_refused_with_one_line(self):
        for arguments in (("up", "Wrong", "--nodes", "1"), ("up", "x", "--nodes", "0"),
                          ("up", "x", "--nodes", "1", "--pin", "9999"), ("shape", self.name, "node77", "1mbit"),
                          ("shape", self.name, "node1", "fast"), ("env", "nosuch"), ("exec", self.name, "node1"),
                          ("up", self.name, "--nodes", "3")):
            done = cluster(*arguments, check=False)
            self.assertEqual(1, done.returncode, arguments)
            self.assertEqual(1, len(done.stderr.strip().splitlines()), done.stderr)


class SecondCluster(ClusterCase):
    """Clusters of their own beside the one of all tests."""

    nodes_needed = 1

    def setUp(self):
        super().setUp()
        self.second = cluster_name("h")
        self.addCleanup(cluster, "down", self.second)

    def up(self, *arguments, env=None):
        return cluster("up", self.second, *arguments, env=env)

    def hostnames(self, count):
        done = subprocess.run(["srun", f"--ntasks={count}", "hostname"], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=60, cwd="/", env=cluster_case.environment_of(self.second))
        self.assertEqual(0, done.returncode, done.stderr)
        return sorted(done.stdout.split())

    def test_two_clusters_do_not_collide_and_up_and_down_are_idempotent(self):
        self.up("--nodes", "2")
        self.assertIn("already", self.up("--nodes", "2").stdout)
        with open(f"/var/tmp/lbf-cluster-{self.second}/cluster.json", encoding="utf-8") as file:
            facts = json.load(file)
        if facts["namespaces"]:
            self.assertNotEqual(self.facts["subnet"], facts["subnet"])
            self.assertEqual(["node1", "node2"], self.hostnames(2))
        self.assertEqual(0, self.srun("--ntasks=1", "true").status)
        cluster("down", self.second)
        self.assertIn("was not up", cluster("down", self.second).stdout)
        self.assertFalse(os.path.exists(f"/var/tmp/lbf-cluster-{self.second}"))
        self.assertEqual(0, self.srun("--ntasks=1", "true").status)

    def test_after_a_crash_up_starts_anew(self):
        self.up("--nodes", "2")
        with open(f"/var/tmp/lbf-cluster-{self.second}/run/slurmctld.pid", encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)
        self.assertIn("stopped or damaged", cluster("status", self.second).stdout)
        self.up("--nodes", "2")
        self.hostnames(1)

    def test_a_node_is_pinned_to_its_core(self):
        cores = sorted(os.sched_getaffinity(0))
        nodes = len(cores) if self.facts["namespaces"] else 1
        self.up("--nodes", str(min(nodes, 4)), "--pin-nodes")
        done = subprocess.run(["srun", f"--nodes={min(nodes, 4)}", "awk", "/^Cpus_allowed_list/{print $2}",
                               "/proc/self/status"],
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False, cwd="/",
                              env=cluster_case.environment_of(self.second))
        self.assertEqual([str(core) for core in cores[:min(nodes, 4)]], sorted(done.stdout.split()), done.stderr)

    def test_a_killed_node_comes_back(self):
        if not self.facts["namespaces"]:
            self.skipTest("needs namespaces")
        self.up("--nodes", "2")
        cluster("kill-node", self.second, "node2")
        self.assertIn("slurmd not running", cluster("status", self.second).stdout)
        cluster("start-node", self.second, "node2")
        self.assertEqual(["node1", "node2"], self.hostnames(2))

    def test_without_namespaces_there_is_one_node_and_it_says_why(self):
        done = self.up("--nodes", "4", env={"LBF_CLUSTER_NO_NAMESPACES": "1"})
        self.assertEqual(1, len(done.stderr.strip().splitlines()), done.stderr)
        self.assertIn("ONE node only instead of 4", done.stderr)
        self.assertEqual(1, len(self.hostnames(1)))
        shaped = cluster("shape", self.second, "all", "1mbit", check=False)
        self.assertEqual(1, shaped.returncode)
        self.assertIn("no link to shape", shaped.stderr)


if __name__ == "__main__":
    cluster_case.main()
