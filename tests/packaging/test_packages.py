#!/usr/bin/python3
"""The Debian packages of the target `package`: what they need, and what installing, upgrading, removing and purging them
leaves. On a copy of this machine (overlay.py), which has Slurm as ./check installs it. Run with LBF_BUILD_DIR set to a
folder in which everything is built."""

import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import overlay  # noqa: E402  (the module beside this file)

BUILD_DIR = os.path.abspath(os.environ.get("LBF_BUILD_DIR", "build/release"))
NAMES = ("lbf-networks", "lbf-slurm-plugin", "lbf-tools", "lbfd")
PLUGSTACK = "/etc/slurm/plugstack.conf.d/lbf.conf"
HIGHER_VERSION = "99.0.0"
# What dpkg, systemd's helpers and the tools of Debian write for themselves while packages come and go.
OF_THE_SYSTEM = re.compile(r"/var/(lib/(dpkg|systemd|apt|man-db)|cache|log)(/|$)|/etc/(passwd|group|shadow|gshadow)-?$"
                           r"|/etc/\.pwd\.lock$|/(tmp|run|proc|dev|sys)(/|$)")


def make_packages(folder, version=None):
    """CPack's packages, at a version of the caller's; {name: file}."""
    command = ["cpack", "--config", os.path.join(BUILD_DIR, "CPackConfig.cmake"), "-B", folder]
    done = subprocess.run(command + (["-D", f"CPACK_PACKAGE_VERSION={version}"] if version else []), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stderr}{done.stdout[-2000:]}")
    return {os.path.basename(path).split("_")[0]: path for path in glob.glob(f"{folder}/*.deb")}


def field(package, name):
    return subprocess.run(["dpkg-deb", "--field", package, name], capture_output=True, text=True, check=True).stdout.strip()


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="lbf-packages-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        for name in ("now", "higher"):
            os.mkdir(os.path.join(cls.folder, name))
        cls.now = make_packages(os.path.join(cls.folder, "now"))
        cls.higher = make_packages(os.path.join(cls.folder, "higher"), HIGHER_VERSION)

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

    def dpkg(self, action, which):
        return self.ok(f"dpkg {action} " + " ".join(which))

    def install(self, which="now"):
        return self.dpkg("--install", [f"/tmp/packages/{which}/{os.path.basename(path)}" for path in getattr(self, which).values()])

    def states(self):
        """{package: dpkg's two letters}."""
        out = self.machine.run(f"dpkg-query --show --showformat='${{Package}} ${{db:Status-Abbrev}}\\n' {' '.join(NAMES)}")[1]
        return {words[0]: words[1] for words in map(str.split, out.splitlines()) if words[0] in NAMES}

    def srun_has_the_option(self):
        return "--lbf-predict" in self.ok("srun --help")

    def test_what_they_need(self):
        self.assertEqual(set(NAMES), set(self.now))
        release = re.match(r"\d+\.\d+", self.ok("dpkg-query --show --showformat='${Version}' slurm-wlm-basic-plugins"))[0]
        needs = field(self.now["lbf-slurm-plugin"], "Depends")
        major, minor = release.split(".")
        self.assertIn(f"slurm-wlm-basic-plugins (>= {release}), slurm-wlm-basic-plugins (<< {major}.{int(minor) + 1:02}~)", needs)
        for name, package in self.now.items():
            with self.subTest(name):
                if name != "lbf-tools":  # lbf-calibrate measures with an MPI program of its own
                    self.assertNotRegex(field(package, "Depends"), "mpi")
                if field(package, "Architecture") != "all":
                    self.assertIn("libc6", field(package, "Depends"), "dpkg-shlibdeps looked")
                in_etc = subprocess.run(["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True).stdout
                in_etc = {match[1] for match in re.finditer(r"^-.* \.(/etc/.*)$", in_etc, re.M)}
                conffiles = subprocess.run(["dpkg-deb", "--info", package, "conffiles"], capture_output=True, text=True, check=False)
                self.assertEqual(in_etc, set(conffiles.stdout.split()))

    def test_every_installed_file_is_in_one_package(self):
        """A new file whose install() names no component would be in none."""
        tree = os.path.join(self.folder, "tree")
        subprocess.run(["cmake", "--install", BUILD_DIR], env={**os.environ, "DESTDIR": tree}, stdout=subprocess.DEVNULL, check=True)
        installed = sorted(os.path.join(folder, name).removeprefix(tree) for folder, _, names in os.walk(tree) for name in names)
        packed = []
        for package in self.now.values():
            listing = subprocess.run(["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True).stdout
            packed += [path.removesuffix(".gz") for path in re.findall(r"(?m)^-.* \.(/\S+)$", listing)]
        self.assertGreater(len(installed), 30)
        self.assertEqual(installed, sorted(path for path in packed if not path.startswith("/usr/share/doc/")))

    def test_another_release_of_slurm_is_refused(self):
        self.ok("sed -i '/^Package: slurm-wlm-basic-plugins$/,/^$/ s/^Version: .*/Version: 99.05.1-1/' /var/lib/dpkg/status")
        status, out = self.machine.run(f"dpkg --install /tmp/packages/now/{os.path.basename(self.now['lbf-slurm-plugin'])}")
        self.assertNotEqual(0, status)
        self.assertIn("lbf-slurm-plugin depends on slurm-wlm-basic-plugins (<<", out)

    def test_installed_upgraded_removed_and_purged(self):
        self.assertFalse(self.srun_has_the_option())
        before = self.changes()

        self.install()
        self.assertEqual(dict.fromkeys(NAMES, "ii"), self.states())
        self.assertTrue(self.srun_has_the_option(), "Debian's plugstack.conf includes plugstack.conf.d")
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
        self.assertNotIn("not found", self.ok("ldd /usr/libexec/lbf/* /usr/lib/*/lbf/*.so /usr/lib/*/slurm-wlm/lbf.so"))
        self.assertEqual("enabled", self.ok("systemctl is-enabled lbfd.service"))
        self.assertEqual("", self.ok("systemd-analyze verify --man=no /usr/lib/systemd/system/lbfd.service"))

        # An administrator's changes, data of lbfd and of a relay: an upgrade keeps them all, a disabled unit too.
        self.ok(f"sed -i s/overhead_limit=2/overhead_limit=7/ {PLUGSTACK}; echo 'worker_threads = 3' >>/etc/lbf/lbfd.toml")
        self.ok("install -d -o lbf -m 0700 /var/lib/lbf; echo data >/var/lib/lbf/lbf.db; echo data >/var/spool/lbf/1000.spool")
        self.ok("systemctl --quiet disable lbfd.service")
        self.install("higher")
        self.assertEqual(dict.fromkeys(NAMES, "ii"), self.states())
        self.assertTrue(self.ok("dpkg-query --show --showformat='${Version}' lbfd").startswith(HIGHER_VERSION))
        self.ok(f"grep -q overhead_limit=7 {PLUGSTACK} && grep -q 'worker_threads = 3' /etc/lbf/lbfd.toml")
        self.assertEqual("data\ndata", self.ok("cat /var/lib/lbf/lbf.db /var/spool/lbf/1000.spool"))
        self.assertEqual((1, "disabled"), self.machine.run("systemctl is-enabled lbfd.service"))
        self.assertTrue(self.srun_has_the_option())

        # Removed: configuration and data stay; Slurm no longer reads lbf.conf, so srun says nothing of a plugin that is missing.
        self.dpkg("--remove", NAMES)
        left = self.changes() - before
        self.assertEqual({f"{PLUGSTACK}.removed", "/etc/lbf/advise.toml", "/etc/lbf/lbfd.toml", "/var/lib/lbf/lbf.db",
                          "/var/spool/lbf/1000.spool"},
                         {path for _, path in left if not self.is_folder(path) and "/nominal/" not in path})
        self.assertNotIn("lbf", self.ok("LBF_PREDICT=on srun --help"))
        self.assertNotIn("error", self.ok("srun --version"))

        # Back again, with what the administrator had written.
        self.install("higher")
        self.assertTrue(self.srun_has_the_option())
        self.ok(f"grep -q overhead_limit=7 {PLUGSTACK} && ! test -e {PLUGSTACK}.removed")
        self.dpkg("--remove", NAMES)

        # Purged: as before. The user stays.
        self.dpkg("--purge", NAMES)
        self.assertEqual(before, self.changes())
        self.ok("getent passwd lbf")

        # Purged at once, without a remove before.
        self.install()
        self.dpkg("--purge", NAMES)
        self.assertEqual(before, self.changes())

    def is_folder(self, path):
        return self.machine.run(f"test -d '{path}'")[0] == 0

    def test_slurm_works_where_only_the_plugin_is_missing(self):
        """A shared /etc/slurm: lbf.conf names a plugin that this host does not have. It is optional."""
        self.ok(f"mkdir -p {os.path.dirname(PLUGSTACK)}; echo 'optional lbf.so' >{PLUGSTACK}")
        out = self.ok("srun --version")
        self.assertRegex(out, r"slurm\S* \d+\.\d+")
        # What Slurm says of it is what docs/install.md tells administrators.
        self.assertIn("lbf.so: Dlopen of plugin file failed", out)


if __name__ == "__main__":
    reason = overlay.may_be_skipped()
    if reason:
        print(reason)
        sys.exit(77)
    unittest.main(verbosity=2)
