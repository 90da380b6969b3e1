"""What the tests of Debian's packages and of RPMs share: the packages at two versions, and a copy of this machine to install
them in (overlay.py), which has Slurm as ./check installs it."""

import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

import overlay

NAMES = ("lbf-networks", "lbf-slurm-plugin", "lbf-tools", "lbfd")
PLUGSTACK = "/etc/slurm/plugstack.conf.d/lbf.conf"
HIGHER_VERSION = "99.0.0"
# What dpkg, systemd's helpers and the tools of Debian write for themselves while packages come and go.
OF_THE_SYSTEM = re.compile(r"/var/(lib/(dpkg|systemd|apt|man-db)|cache|log)(/|$)|/etc/(passwd|group|shadow|gshadow)-?$"
                           r"|/etc/\.pwd\.lock$|/(tmp|run|proc|dev|sys)(/|$)")


def output(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


def make_packages(build_dir, folder, version):
    """CPack's packages, at a version of the caller's; {name: file}."""
    command = ["cpack", "--config", os.path.join(build_dir, "CPackConfig.cmake"), "-B", folder]
    done = subprocess.run(command + (["-D", f"CPACK_PACKAGE_VERSION={version}"] if version else []), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stderr}{done.stdout[-2000:]}")
    return {re.match(r"[a-z-]+(?=[-_]\d)", os.path.basename(path))[0]: path
            for path in glob.glob(f"{folder}/*.deb") + glob.glob(f"{folder}/*.rpm")}


class Packages(unittest.TestCase):
    """now, higher: {name: file} at the version of the sources and at HIGHER_VERSION, of the folder `build_dir`, in which
    everything is built. The copy of the machine has them in /tmp/packages."""

    build_dir = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="lbf-packages-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        for name in ("now", "higher"):
            os.mkdir(os.path.join(cls.folder, name))
        cls.now = make_packages(cls.build_dir, os.path.join(cls.folder, "now"), None)
        cls.higher = make_packages(cls.build_dir, os.path.join(cls.folder, "higher"), HIGHER_VERSION)

    def setUp(self):
        self.machine = overlay.Overlay(self.folder)
        self.addCleanup(self.machine.close)
        # Slurm's commands want a configuration before they say anything. No daemon of it runs here.
        self.ok("printf 'ClusterName=c\\nSlurmctldHost=localhost\\nNodeName=localhost\\nPartitionName=p Nodes=localhost\\n' "
                ">/etc/slurm/slurm.conf")

    def ok(self, command):
        status, out = self.machine.run(command)
        self.assertEqual(0, status, f"{command}\n{out}")
        return out

    def changes(self):
        return {(what, path) for what, path in self.machine.changes() if not OF_THE_SYSTEM.search(path)}

    def is_folder(self, path):
        return self.machine.run(f"test -d '{path}'")[0] == 0

    def files_since(self, before):
        return {path for _, path in self.changes() - before if not self.is_folder(path)}

    def inside(self, packages):
        """The files of {name: file}, as the copy of the machine sees them."""
        return " ".join("/tmp/packages/" + os.path.relpath(path, self.folder) for path in packages.values())

    def installed_files(self):
        """What cmake --install leaves."""
        tree = os.path.join(self.folder, "tree")
        subprocess.run(["cmake", "--install", self.build_dir], env={**os.environ, "DESTDIR": tree}, stdout=subprocess.DEVNULL,
                       check=True)
        return sorted(os.path.join(folder, name).removeprefix(tree) for folder, _, names in os.walk(tree) for name in names)

    def assert_everything_works(self, libraries):
        """What is installed in the copy; `libraries`: a pattern of the shell."""
        self.assertRegex(self.ok("getent passwd lbf"), r"^lbf:.*:/var/lib/lbf:\S*nologin$")
        self.assertEqual("1777 root", self.ok("stat -c '%a %U' /var/spool/lbf"))
        commands = self.ok("ls /usr/bin/lbf-* /usr/sbin/lbfd /usr/libexec/lbf/lbf-relay").split()
        self.assertGreaterEqual(len(commands), 9)
        for command in commands:
            self.ok(f"{command} --version")
        completions = self.ok("ls /usr/share/bash-completion/completions/lbf-*").split()
        self.assertGreaterEqual(len(completions), 7)
        for path in completions:
            self.ok(f"bash -c 'source {path} && complete -p {os.path.basename(path)}'")
        self.assertNotIn("not found", self.ok(f"ldd /usr/libexec/lbf/* {libraries}"))
        self.assertEqual("", self.ok("systemd-analyze verify --man=no /usr/lib/systemd/system/lbfd.service"))
        self.assertTrue(self.srun_has_the_option(), "Debian's plugstack.conf includes plugstack.conf.d")

    def srun_has_the_option(self):
        return "--lbf-predict" in self.ok("srun --help")

    def assert_srun_knows_nothing(self):
        self.assertNotIn("lbf", self.ok("LBF_PREDICT=on srun --help"))
        self.assertNotIn("error", self.ok("srun --version"))

    def change_what_administrators_change(self):
        """Configuration, data of lbfd and of a relay: an upgrade keeps them all."""
        self.ok(f"sed -i s/overhead_limit=2/overhead_limit=7/ {PLUGSTACK}; echo 'worker_threads = 3' >>/etc/lbf/lbfd.toml")
        self.ok("install -d -o lbf -m 0700 /var/lib/lbf; echo data >/var/lib/lbf/lbf.db; echo data >/var/spool/lbf/1000.spool")

    def assert_administrators_changes_are_kept(self):
        self.ok(f"grep -q overhead_limit=7 {PLUGSTACK} && grep -q 'worker_threads = 3' /etc/lbf/lbfd.toml")
        self.assertEqual("data\ndata", self.ok("cat /var/lib/lbf/lbf.db /var/spool/lbf/1000.spool"))


def main(reason):
    """Runs the tests, or says `reason`, if there is one, or why else they are skipped."""
    reason = reason or overlay.may_be_skipped()
    if reason:
        print(reason)
        sys.exit(77)
    unittest.main(verbosity=2)
