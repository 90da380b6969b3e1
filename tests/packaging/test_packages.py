#!/usr/bin/python3
"""The Debian packages of the target `package`: what they need, and what installing, upgrading, removing and purging them
leaves. Run with LBF_BUILD_DIR set to a folder in which everything is built."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import packages  # noqa: E402  (the module beside this file)
from packages import HIGHER_VERSION, NAMES, PLUGSTACK, output  # noqa: E402


def field(package, name):
    return output("dpkg-deb", "--field", package, name).strip()


class DebianPackages(packages.Packages):
    build_dir = os.path.abspath(os.environ.get("LBF_BUILD_DIR", "build/release"))

    def dpkg(self, action, which):
        return self.ok(f"dpkg {action} " + " ".join(which))

    def install(self, which="now"):
        return self.dpkg("--install", [self.inside(getattr(self, which))])

    def states(self):
        """{package: dpkg's two letters}."""
        out = self.machine.run(f"dpkg-query --show --showformat='${{Package}} ${{db:Status-Abbrev}}\\n' {' '.join(NAMES)}")[1]
        return {words[0]: words[1] for words in map(str.split, out.splitlines()) if words[0] in NAMES}

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
                in_etc = {match[1] for match in re.finditer(r"^-.* \.(/etc/.*)$", output("dpkg-deb", "--contents", package), re.M)}
                conffiles = subprocess.run(["dpkg-deb", "--info", package, "conffiles"], capture_output=True, text=True, check=False)
                self.assertEqual(in_etc, set(conffiles.stdout.split()))

    def test_every_installed_file_is_in_one_package(self):
        """A new file whose install() names no component would be in none."""
        installed = self.installed_files()
        packed = []
        for package in self.now.values():
            listing = output("dpkg-deb", "--contents", package)
            packed += [path.removesuffix(".gz") for path in re.findall(r"(?m)^-.* \.(/\S+)$", listing)]
        self.assertGreater(len(installed), 30)
        self.assertEqual(installed, sorted(path for path in packed if not path.startswith("/usr/share/doc/")))

    def test_another_release_of_slurm_is_refused(self):
        self.ok("sed -i '/^Package: slurm-wlm-basic-plugins$/,/^$/ s/^Version: .*/Version: 99.05.1-1/' /var/lib/dpkg/status")
        status, out = self.machine.run(f"dpkg --install {self.inside({'': self.now['lbf-slurm-plugin']})}")
        self.assertNotEqual(0, status)
        self.assertIn("lbf-slurm-plugin depends on slurm-wlm-basic-plugins (<<", out)

    def test_installed_upgraded_removed_and_purged(self):
        self.assertFalse(self.srun_has_the_option())
        before = self.changes()

        self.install()
        self.assertEqual(dict.fromkeys(NAMES, "ii"), self.states())
        self.assert_everything_works("/usr/lib/*/lbf/*.so /usr/lib/*/slurm-wlm/lbf.so")
        self.assertEqual("enabled", self.ok("systemctl is-enabled lbfd.service"))

        # A disabled unit stays so.
        self.change_what_administrators_change()
        self.ok("systemctl --quiet disable lbfd.service")
        self.install("higher")
        self.assertEqual(dict.fromkeys(NAMES, "ii"), self.states())
        self.assertTrue(self.ok("dpkg-query --show --showformat='${Version}' lbfd").startswith(HIGHER_VERSION))
        self.assert_administrators_changes_are_kept()
        self.assertEqual((1, "disabled"), self.machine.run("systemctl is-enabled lbfd.service"))
        self.assertTrue(self.srun_has_the_option())

        # Removed: configuration and data stay; Slurm no longer reads lbf.conf, so srun says nothing of a plugin that is missing.
        self.dpkg("--remove", NAMES)
        self.assertEqual({f"{PLUGSTACK}.removed", "/etc/lbf/advise.toml", "/etc/lbf/lbfd.toml", "/var/lib/lbf/lbf.db",
                          "/var/spool/lbf/1000.spool"},
                         {path for path in self.files_since(before) if "/nominal/" not in path})
        self.assert_srun_knows_nothing()

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

    def test_slurm_works_where_only_the_plugin_is_missing(self):
        """A shared /etc/slurm: lbf.conf names a plugin that this host does not have. It is optional."""
        self.ok(f"mkdir -p {os.path.dirname(PLUGSTACK)}; echo 'optional lbf.so' >{PLUGSTACK}")
        out = self.ok("srun --version")
        self.assertRegex(out, r"slurm\S* \d+\.\d+")
        # What Slurm says of it is what docs/install.md tells administrators.
        self.assertIn("lbf.so: Dlopen of plugin file failed", out)


if __name__ == "__main__":
    packages.main("")
