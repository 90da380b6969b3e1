#!/usr/bin/python3
"""Topology files: lbf's hops are those of the switches that slurmctld makes of the same file. A slurmctld of its own reads it; no
node runs."""

import getpass
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
import cluster_case  # noqa: E402

RACK = "SwitchName=s1 Nodes=n1,n2,\n"
TOPOLOGY = r"""# As sites write them, and each line as Slurm takes it.
Include rack.conf
SwitchName=s2 Nodes=n3,,\
n4   # continued
SwitchName=s3 Nodes="n5, n6" LinkSpeed=3
switchname=s4 nodes=n[0000000007-0000000008],n0000000007
SwitchName=s5 Nodes=n9 Nodes=m[1-2]
SwitchName=s6 Nodes=m3,n1
SwitchName=top Switches=s1,s2,
SwitchName=spine1 Switches=top,s[3-4]
SwitchName=spine2 Switches=top,s[3-4]
"""
NODES = ["n1", "n2", "n3", "n4", "n5", "n6", "n0000000007", "n0000000008", "m1", "m2", "m3"]
LEVELS = 4  # more than there are
# A message takes 1 s a hop; 50 s where no switch has both.
NETWORK = 'name = "hops"\n' + "".join(
    f'[[path]]\nlocality = "{where}"\ntable = [[0, {seconds * 1000000}.0]]\n'
    for where, seconds in [(f"hop:{level}", level) for level in range(1, LEVELS + 1)] + [("remote", 50)])
MESSAGE = ("lbf-trace 1\nranks 2\n0 send 0 to=1 tag=1 bytes=1\n1 startRecv 0 from=0 tag=1\n"
           "1 endRecv 0 from=0 tag=1 bytes=1\n0 exit 0\n1 exit 0\n")
CONF = """ClusterName=lbftopology
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
CommunicationParameters=NoCtldInAddrAny
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
TopologyPlugin=topology/tree
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
NodeName=n[1-6,9],n[0000000007-0000000008],m[1-4] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[17001-17013] State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES
"""


class Topology(unittest.TestCase):
    def setUp(self):
        why = cluster_case.may_be_skipped()
        if why:
            self.skipTest(why)
        folder = tempfile.TemporaryDirectory(prefix="lbf-topology-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return path

    def shown_by_slurm(self):
        """What `scontrol show topology` prints of the files in the folder."""
        os.mkdir(os.path.join(self.folder, "state"))
        port = 20000 + os.getpid() % 10000
        conf = self.write("slurm.conf", CONF.format(folder=self.folder, user=getpass.getuser(), port=port))
        environment = {**os.environ, "SLURM_CONF": conf}
        with open(os.path.join(self.folder, "out"), "wb") as out:
            slurmctld = subprocess.Popen(["slurmctld", "-D", "-c", "-f", conf], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                         env={**environment, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})
        try:
            for _ in range(100):
                asked = subprocess.run(["scontrol", "show", "topology"], env=environment, capture_output=True, text=True,
                                       timeout=60, check=False)
                if asked.returncode == 0 and "SwitchName=" in asked.stdout:
                    return asked.stdout
                self.assertIsNone(slurmctld.poll(), self.log())
                time.sleep(0.1)
            raise AssertionError(asked.stderr + self.log())
        finally:
            slurmctld.send_signal(signal.SIGTERM)
            slurmctld.wait(timeout=60)

    def log(self):
        with open(os.path.join(self.folder, "slurmctld.log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def hops_of_lbf(self, topology):
        """Of each pair of nodes; 50: no switch has both."""
        trace, network = self.write("one.lbf", MESSAGE), self.write("hops.toml", NETWORK)
        hops = {}
        for pair in itertools.combinations(NODES, 2):
            done = subprocess.run([os.path.join(cluster_case.BIN, "lbf-whatif"), trace, "--nodes=2", "--network=" + network,
                                   "--topology=" + topology, "--nodelist=" + ",".join(pair), "--json"],
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(0, done.returncode, done.stderr)
            hops[pair] = round(json.loads(done.stdout)["predictions"][0]["lbf_s"])
        return hops

    def expanded(self, hostlist):
        done = subprocess.run(["scontrol", "show", "hostnames", hostlist], capture_output=True, text=True, timeout=60, check=True,
                              env={**os.environ, "SLURM_CONF": os.path.join(self.folder, "slurm.conf")})
        return done.stdout.split()

    def hops_of_slurm(self, printed):
        """The level, from 1, of the lowest switch that has both."""
        switches = [(int(level) + 1, set(self.expanded(nodes))) for level, nodes in re.findall(
            r"^SwitchName=\S+ Level=(\d+)(?: LinkSpeed=\d+)? Nodes=(.*?)(?: Switches=.*)?$", printed, re.M)]
        return {pair: min([level for level, nodes in switches if set(pair) <= nodes], default=50)
                for pair in itertools.combinations(NODES, 2)}

    def test_hops_are_those_of_slurmctlds_switches(self):
        self.write("rack.conf", RACK)
        topology = self.write("topology.conf", TOPOLOGY)
        printed = self.shown_by_slurm()
        by_slurm = self.hops_of_slurm(printed)
        # n1 is on s6, too; for lbf its first switch counts.
        by_slurm["n1", "m3"] = 50
        self.assertEqual(by_slurm, self.hops_of_lbf(topology), printed)
        self.assertEqual({1, 2, 3, 50}, set(by_slurm.values()), printed)
        self.assertEqual(by_slurm, self.hops_of_lbf(self.write("printed.txt", printed)), printed)


if __name__ == "__main__":
    cluster_case.main()
