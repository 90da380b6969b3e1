#!/usr/bin/python3
"""What `cmake --install` leaves is one consistent tree: whatever a unit, plugstack.conf.d, tmpfiles.d, sysusers.d, a
manual page or a command names is there. Run by ctest with LBF_BUILD_DIR set to a folder in which everything is built."""

import configparser
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BUILD_DIR = os.path.abspath(os.environ.get("LBF_BUILD_DIR", os.path.join(ROOT, "build/release")))
# Paths that a running system makes, not an installation.
MADE_AT_RUN_TIME = ("/run/", "/dev/", "/proc/", "/var/lib/lbf", "/tmp")
# Paths that only some sites have.
MADE_BY_ADMINISTRATORS = ("/etc/lbf/ca.pem",)


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return done.stdout + done.stderr


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def unit_of(path):
    """A unit file's sections; the keys keep their case."""
    unit = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",))
    unit.optionxform = str
    unit.read_string(read(path))
    return unit


class Tree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.destdir = tempfile.mkdtemp(prefix="lbf-install-")
        cls.addClassCleanup(shutil.rmtree, cls.destdir)
        cache = read(os.path.join(BUILD_DIR, "CMakeCache.txt"))
        cls.prefix = re.search(r"^CMAKE_INSTALL_PREFIX:\w+=(.*)$", cache, re.M)[1]
        if cls.prefix != "/usr":
            raise unittest.SkipTest(f"{BUILD_DIR} is for {cls.prefix}; the files of etc/ are those of an installation in /usr")
        done = subprocess.run(["cmake", "--install", BUILD_DIR], env={**os.environ, "DESTDIR": cls.destdir},
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"cmake --install: {done.stderr}")

    def installed(self, path):
        return self.destdir + path

    def assert_installed(self, path, why, executable=False):
        self.assertTrue(os.path.exists(self.installed(path)), f"{why} names {path}, which is not installed")
        if executable:
            self.assertTrue(os.access(self.installed(path), os.X_OK) and os.path.isfile(self.installed(path)), path)

    def man_page(self, name, section):
        self.assert_installed(f"/usr/share/man/man{section}/{name}.{section}", f"{name}({section})")

    def service(self):
        return unit_of(self.installed("/usr/lib/systemd/system/lbfd.service"))

    def lbfd_default(self, key):
        """A key of lbfd.toml, also where it is commented out as the default."""
        return re.search(rf"^#?{key} = (.*)$", read(self.installed("/etc/lbf/lbfd.toml")), re.M)[1].strip('"')

    def plugstack(self):
        """Of the one plugin line: (requirement, plugin, arguments)."""
        path = self.installed("/etc/slurm/plugstack.conf.d/lbf.conf")
        lines = [line.split() for line in read(path).splitlines() if line.strip() and not line.startswith("#")]
        self.assertEqual(1, len(lines), lines)
        return lines[0][0], lines[0][1], dict(argument.split("=", 1) for argument in lines[0][2:])

    def users(self):
        """{name: home} of sysusers.d."""
        lines = read(self.installed("/usr/lib/sysusers.d/lbf.conf")).splitlines()
        return {match[1]: match[2] for match in (re.match(r'u (\S+) \S+ "[^"]*" (\S+)', line) for line in lines) if match}

    def directories(self):
        """{path: mode} of tmpfiles.d."""
        lines = read(self.installed("/usr/lib/tmpfiles.d/lbf.conf")).splitlines()
        return {line.split()[1]: line.split()[2] for line in lines if re.match(r"d ", line)}

    # -- systemd
    def test_the_unit_starts_what_is_installed_with_what_is_installed(self):
        command = self.service()["Service"]["ExecStart"].split()
        self.assert_installed(command[0], "ExecStart", executable=True)
        for path in [word for word in command[1:] if word.startswith("/")]:
            self.assert_installed(path, "ExecStart")
        name, section = re.fullmatch(r"man:(\w+)\((\d)\)", self.service()["Unit"]["Documentation"]).groups()
        self.man_page(name, section)

    def test_the_units_user_exists_and_owns_what_lbfd_writes(self):
        service = self.service()["Service"]
        self.assertIn(service["User"], self.users())
        self.assertEqual(service["User"], service["Group"])
        self.assertEqual(f"/var/lib/{service['StateDirectory']}", self.lbfd_default("state_dir"))
        self.assertEqual(f"/var/lib/{service['StateDirectory']}", self.users()[service["User"]])
        sockets = re.findall(r'"unix:([^"]+)"', self.lbfd_default("listen"))
        self.assertEqual([f"/run/{service['RuntimeDirectory']}"], [os.path.dirname(path) for path in sockets])
        self.assertEqual("strict", service["ProtectSystem"], "nothing else is written: the two directories are all it needs")

    def test_systemd_finds_nothing_to_complain_about(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is not installed")
        unit = read(self.installed("/usr/lib/systemd/system/lbfd.service"))
        # The program must be where the unit says; here it is below DESTDIR.
        here = unit.replace("ExecStart=/usr", f"ExecStart={self.destdir}/usr")
        self.assertNotEqual(unit, here)
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("lbfd.service", here), ("wrong.service", here.replace("RestartSec=", "RestartSecs="))):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            self.assertEqual("", run("systemd-analyze", "verify", "--man=no", os.path.join(folder, "lbfd.service")))
            self.assertIn("RestartSecs", run("systemd-analyze", "verify", "--man=no", os.path.join(folder, "wrong.service")))

    def test_the_units_sandbox_is_as_tight_as_the_documentation_says(self):
        """docs/install.md: an exposure of 1.2 of 10; systemd-analyze fails above the threshold, which is in tenths."""
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is not installed")
        unit = self.installed("/usr/lib/systemd/system/lbfd.service")
        run("systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=12", unit)
        with tempfile.TemporaryDirectory() as folder:
            looser = os.path.join(folder, "looser.service")
            with open(looser, "w", encoding="utf-8") as file:
                file.write(read(unit).replace("ProtectSystem=strict\n", ""))
            with self.assertRaises(AssertionError):
                run("systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=12", looser)

    def test_sysusers_and_tmpfiles_do_what_they_say(self):
        if shutil.which("systemd-sysusers") is None or shutil.which("systemd-tmpfiles") is None:
            self.skipTest("systemd-sysusers and systemd-tmpfiles are not installed")
        if os.getuid() != 0:
            self.skipTest("needs root, to make users and directories of other owners in a folder")
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(f"{root}/etc")
            run("systemd-sysusers", f"--root={root}", self.installed("/usr/lib/sysusers.d/lbf.conf"))
            self.assertRegex(read(f"{root}/etc/passwd"), r"(?m)^lbf:[^:]*:\d+:\d+:[^:]*:/var/lib/lbf:\S*nologin$")
            run("systemd-tmpfiles", f"--root={root}", "--create", self.installed("/usr/lib/tmpfiles.d/lbf.conf"))
            self.assertEqual(0o41777, os.stat(f"{root}/var/spool/lbf").st_mode)

    # -- Slurm
    def test_the_plugin_lies_where_slurm_looks_for_it(self):
        requirement, plugin, _ = self.plugstack()
        self.assertEqual("optional", requirement, "a plugin that cannot be loaded must not stop jobs")
        self.assertNotIn("/", plugin)
        slurms = {os.path.dirname(path) for path in glob.glob("/usr/lib/*/slurm*/auth_munge.so") + glob.glob("/usr/lib*/slurm*/auth_munge.so")}
        found = [os.path.dirname(path).removeprefix(self.destdir)
                 for path in glob.glob(self.installed("/usr/lib*/**/") + plugin, recursive=True)]
        self.assertEqual(1, len(found), found)
        if not slurms:
            self.skipTest("no Slurm is installed here, so nobody can say where its plugins are")
        self.assertIn(found[0], slurms)

    def test_the_plugins_arguments_are_those_of_lbfd_and_tmpfiles(self):
        _, _, arguments = self.plugstack()
        self.assertIn(f'"{arguments["lbfd"]}"', self.lbfd_default("listen"))
        self.assertEqual("1777", self.directories()[arguments["spool_dir"]])
        self.assert_installed(self.lbfd_default("networks_dir"), "lbfd.toml: networks_dir")

    # -- everything
    def test_what_the_programs_name_is_there(self):
        """Paths of the installation that are compiled into programs and libraries."""
        programs = [path for pattern in ("/usr/bin/*", "/usr/sbin/*", "/usr/lib*/**/*.so")
                    for path in glob.glob(self.installed(pattern), recursive=True)]
        self.assertGreaterEqual(len(programs), 6, programs)
        named = set()
        for program in programs:
            with open(program, "rb") as file:
                words = re.findall(rb"(?<![\x20-\x7e])(/(?:usr|etc|var)/[\x21-\x7e]*lbf[\x21-\x7e]*)\0", file.read())
            named |= {(os.path.basename(program), word.decode()) for word in words}
        self.assertGreaterEqual(len(named), 5, named)
        for program, path in sorted(named):
            if path in self.directories() or path.startswith(MADE_AT_RUN_TIME) or path in MADE_BY_ADMINISTRATORS:
                continue
            self.assertTrue(glob.glob(self.installed(path) + "*"), f"{program} names {path}, which is not installed")

    def test_every_command_has_its_manual_page_and_every_page_its_command(self):
        commands = {os.path.basename(path) for pattern in ("/usr/bin/*", "/usr/sbin/*", "/usr/libexec/lbf/lbf-relay")
                    for path in glob.glob(self.installed(pattern))}
        pages = {os.path.basename(path).rpartition(".")[0] for path in glob.glob(self.installed("/usr/share/man/man[18]/*"))}
        self.assertEqual(commands, pages)

    def test_what_the_manual_pages_name_is_there(self):
        paths = set()
        for page in glob.glob(self.installed("/usr/share/man/man*/*")):
            text = re.sub(r"\\f.|\\-", lambda match: "-" if match[0] == r"\-" else "", read(page))
            paths |= {(os.path.basename(page), path) for path in re.findall(r"(?<![\w.:])/(?:usr|etc)/[\w./*-]*lbf[\w./*-]*", text)}
            for name, section in re.findall(r"\b(lbf[\w-]*) ?\((\d)\)", text):
                self.man_page(name, section)
        self.assertGreaterEqual(len(paths), 4, paths)
        for page, path in sorted(paths):
            if path.rstrip(".") in MADE_BY_ADMINISTRATORS:
                continue
            folder = path.rpartition("/")[0] if "*" in path or "NAME" in path else path.rstrip(".")
            self.assert_installed(folder, page)

    def test_nothing_is_writable_by_others(self):
        modes = {}
        for folder, _, names in os.walk(self.destdir):
            for name in names:
                path = os.path.join(folder, name)
                modes[path] = os.lstat(path).st_mode & 0o022
        self.assertGreater(len(modes), 10)
        self.assertEqual([], [path for path, mode in modes.items() if mode])


class OtherPrefix(unittest.TestCase):
    def test_the_unit_follows_the_prefix(self):
        with tempfile.TemporaryDirectory() as build:
            run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DLBF_PARTS=etc", "-DCMAKE_INSTALL_PREFIX=/opt/lbf")
            destdir = os.path.join(build, "tree")
            done = subprocess.run(["cmake", "--install", build], env={**os.environ, "DESTDIR": destdir}, capture_output=True,
                                  text=True, check=False)
            self.assertEqual(0, done.returncode, done.stderr)
            unit = unit_of(f"{destdir}/opt/lbf/lib/systemd/system/lbfd.service")
            program, _, configuration = unit["Service"]["ExecStart"].split()
            self.assertEqual("/opt/lbf/sbin/lbfd", program)
            self.assertTrue(os.path.exists(destdir + configuration), configuration)


if __name__ == "__main__":
    unittest.main(verbosity=2)
