#!/usr/bin/python3
"""The RPMs of the preset rpm: their layout, what they need, what rpmlint says, and what installing, upgrading and removing
them leaves. This machine is a Debian: the copy of it that they are installed in has an RPM database of its own, and two
packages that stand for Rocky's and Slurm's. Run with LBF_BUILD_DIR set to the folder in which the preset rpm is built."""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import packages  # noqa: E402  (the module beside this file)
from packages import HIGHER_VERSION, NAMES, PLUGSTACK  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BUILD_DIR = os.path.abspath(os.environ.get("LBF_BUILD_DIR", os.path.join(ROOT, "build/rpm")))
DATABASE = "--dbpath /tmp/rpmdb"
RPM = f"rpm {DATABASE} --force-debian"
# Folders that a package may own; all others are the system's or Slurm's. NAME: of the package.
OWN_FOLDERS = (r"/etc/lbf(/.*)?|/etc/slurm/plugstack\.conf\.d|/usr/(lib64|libexec|share)/lbf|/usr/share/(doc|licenses)/NAME"
               r"|/var/spool/lbf")
OWN_FILES = (r"/etc/(lbf|slurm/plugstack\.conf\.d)/.*|/usr/bin/lbf-[a-z]+|/usr/sbin/lbfd|/usr/lib64/lbf/liblbf_\w+\.so"
             r"|/usr/lib64/slurm/lbf\.so|/usr/libexec/lbf/.*|/usr/lib/(sysusers|tmpfiles)\.d/lbf\.conf"
             r"|/usr/lib/systemd/system/lbfd\.service|/usr/share/(lbf|bash-completion/completions)/.*"
             r"|/usr/share/man/man[178]/lbf.*\.[178]\.gz|/usr/share/(doc|licenses)/NAME/(changelog\.gz|LICENSE)")
STAND_IN = """
Name: {name}
Version: {version}
Release: 1
Summary: Stands for what is not in the copy
License: none
BuildArch: noarch
{provides}
%description
%files
"""


class Rpms(packages.Packages):
    build_dir = BUILD_DIR

    def setUp(self):
        super().setUp()
        # Folders of Slurm and of Rocky; and Rocky's services are disabled until somebody enables them.
        self.ok(f"mkdir -p {os.path.dirname(PLUGSTACK)} /etc/systemd/system-preset /usr/lib64/slurm /usr/share/licenses")
        self.ok("echo \"PluginDir=$(echo /usr/lib/*/slurm-wlm):/usr/lib64/slurm\" >>/etc/slurm/slurm.conf")
        self.ok("echo 'disable *' >/etc/systemd/system-preset/99-default-disable.preset")
        self.slurm = re.search(r"(\d+\.\d+)\.\d+", self.ok("srun --version"))[1]

    def query(self, name, lines):
        """A format of --queryformat, for one of the packages at the version of the sources."""
        return self.ok(f"{RPM} --query --queryformat '{lines}' --package {self.inside({name: self.now[name]})}").splitlines()

    def files(self, name):
        """(permissions, flags, path) of each; flags: c configuration, n noreplace, l licence."""
        return [tuple(line.split("|")) for line in self.query(name, "[%{FILEMODES:perms}|%{FILEFLAGS:fflags}|%{FILENAMES}\\n]")]

    def needs(self, name):
        return self.query(name, "[%{REQUIRES} %{REQUIREFLAGS:depflags} %{REQUIREVERSION}\\n]")

    def install_stand_in(self, name, version, provides=()):
        """(exit status, what rpm says)."""
        spec = STAND_IN.format(name=name, version=version, provides="\n".join(f"Provides: {what}" for what in provides))
        self.ok(f"mkdir -p /tmp/stand-in; cat >/tmp/stand-in/{name}.spec <<'END'\n{spec}END\n"
                f"rpmbuild {DATABASE} --quiet --define '_topdir /tmp/stand-in' -bb /tmp/stand-in/{name}.spec")
        return self.machine.run(f"{RPM} --upgrade /tmp/stand-in/RPMS/noarch/{name}-{version}-1.noarch.rpm")

    def install_what_is_needed(self, slurm):
        needed = {line.split()[0] for name in NAMES for line in self.needs(name)}
        provides = sorted(what for what in needed - {*NAMES, "slurm"} if not what.startswith("rpmlib("))
        self.assertEqual((0, ""), self.install_stand_in("rest", "1", provides))
        self.assertEqual((0, ""), self.install_stand_in("slurm", slurm))

    def test_the_layout_is_rockys(self):
        self.assertEqual(set(NAMES), set(self.now))
        for name in NAMES:
            folders, files = OWN_FOLDERS.replace("NAME", name), OWN_FILES.replace("NAME", name)
            found = self.files(name)
            self.assertEqual(len({path for _, _, path in found}), len(found), "each once")
            for permissions, flags, path in found:
                with self.subTest(name, path=path):
                    self.assertRegex(path, rf"^({folders if permissions[0] == 'd' else files})$")
                    is_configuration = path.startswith("/etc/") and permissions[0] == "-"
                    self.assertEqual("cn" if is_configuration else "", flags.strip("dl"))
                    self.assertEqual(path == "/var/spool/lbf", permissions[-2] == "w", permissions)
            self.assertIn(("-rw-r--r--", "l", f"/usr/share/licenses/{name}/LICENSE"), found)

    def test_every_installed_file_is_in_one_package(self):
        """A new file whose install() names no component would be in none."""
        packed = [path.removesuffix(".gz") for name in NAMES for mode, _, path in self.files(name) if mode[0] != "d"]
        self.assertEqual(self.installed_files(),
                         sorted(path for path in packed if not re.match(r"/usr/share/(doc|licenses)/", path)))

    def test_what_they_need_and_offer(self):
        major, minor = self.slurm.split(".")
        needs = self.needs("lbf-slurm-plugin")
        self.assertIn(f"slurm >= {self.slurm}", needs)
        self.assertIn(f"slurm < {major}.{int(minor) + 1:02}", needs)
        for name in NAMES:
            with self.subTest(name):
                self.assertNotRegex("\n".join(self.needs(name)), "libmpi")
                self.assertFalse([what for what in self.query(name, "[%{PROVIDES}\\n]") if ".so" in what])
                if name != "lbf-networks":
                    self.assertRegex("\n".join(self.needs(name)), r"libc\.so\.6", "rpmbuild looked")
        self.assertEqual(["noarch"], self.query("lbf-networks", "%{ARCH}"))

    def test_rpmlint_finds_nothing(self):
        done = subprocess.run(["rpmlint", "--config", f"{ROOT}/packaging/rpm/rpmlint.toml", *self.now.values()],
                              capture_output=True, text=True, check=False)
        self.assertRegex(done.stdout, r"4 packages and 0 specfiles checked; 0 errors, 0 warnings", done.stdout + done.stderr)

    def test_another_release_of_slurm_is_refused(self):
        self.install_what_is_needed("99.05.1")
        status, out = self.machine.run(f"{RPM} --upgrade {self.inside(self.now)}")
        self.assertNotEqual(0, status)
        self.assertRegex(out, r"slurm < \S+ is needed by lbf-slurm-plugin")

    def test_installed_upgraded_and_removed(self):
        self.assertFalse(self.srun_has_the_option())
        before = self.changes()
        self.install_what_is_needed(f"{self.slurm}.8")

        self.ok(f"{RPM} --upgrade {self.inside(self.now)}")
        self.assert_everything_works("/usr/lib64/lbf/*.so /usr/lib64/slurm/lbf.so")
        self.assertEqual((1, "disabled"), self.machine.run("systemctl is-enabled lbfd.service"))
        self.assertEqual("", self.ok(f"{RPM} --verify {' '.join(NAMES)}"))
        status, out = self.install_stand_in("slurm", "99.05.1")
        self.assertNotEqual(0, status)
        self.assertRegex(out, r"slurm < \S+ is needed by \(installed\) lbf-slurm-plugin")

        # An enabled unit stays so.
        self.change_what_administrators_change()
        self.ok("systemctl --quiet enable lbfd.service")
        self.assertEqual("", self.ok(f"{RPM} --upgrade {self.inside(self.higher)}"))
        self.assertEqual(HIGHER_VERSION, self.ok(f"{RPM} --query --queryformat '%{{VERSION}}' lbfd"))
        self.assert_administrators_changes_are_kept()
        self.assertEqual("enabled", self.ok("systemctl is-enabled lbfd.service"))
        self.assertTrue(self.srun_has_the_option())

        # Removed: what was changed and data stay. Slurm no longer reads lbf.conf.
        self.ok(f"{RPM} --erase {' '.join(NAMES)}")
        self.assertEqual({f"{PLUGSTACK}.rpmsave", "/etc/lbf/lbfd.toml.rpmsave", "/var/lib/lbf/lbf.db",
                          "/var/spool/lbf/1000.spool"}, self.files_since(before))
        self.assertEqual("1777 root", self.ok("stat -c '%a %U' /var/spool/lbf"))
        self.assert_srun_knows_nothing()
        self.ok("getent passwd lbf")

        # Without changes and data nothing is left.
        self.ok(f"rm -r {PLUGSTACK}.rpmsave /etc/lbf /var/lib/lbf /var/spool/lbf")
        self.ok(f"{RPM} --upgrade {self.inside(self.now)}")
        self.ok(f"{RPM} --erase {' '.join(NAMES)}")
        self.ok(f"mkdir -p {os.path.dirname(PLUGSTACK)}")
        self.assertEqual(before, self.changes())


if __name__ == "__main__":
    missing = [name for name in ("rpmbuild", "rpmlint", "systemctl") if shutil.which(name) is None]
    if missing:
        packages.main(f"{', '.join(missing)} missing: install what etc/debian-packages names for ./check --all")
    packages.main("" if os.path.exists(f"{BUILD_DIR}/CPackConfig.cmake")
                  else f"{BUILD_DIR} is not built: cmake --preset rpm && cmake --build --preset rpm")
