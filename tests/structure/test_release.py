#!/usr/bin/python3
"""tests/cluster/release: a command's exit status and signals go through, and what it leaves running ends with it.

The folder of the other Debian is this machine's own /usr, bound where only a mount namespace sees it. Root only; else skipped."""

import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RELEASE = os.path.join(ROOT, "tests/cluster/release")
SKIPPED = 77
# Told from every other sleep by how long it is.
SLEEP_S = str(10_000_000 + os.getpid())


def why_not():
    if os.getuid() != 0:
        return "needs root"
    if not os.path.islink("/bin") or not os.path.exists("/etc/resolv.conf"):
        return "needs a Debian whose programs are all in /usr"
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "mount", "-t", "proc", "proc", "/proc"], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        return "the kernel or this container refuses mount and PID namespaces"
    return ""


def sleepers():
    """Processes of this machine, in whichever namespace, that sleep for SLEEP_S."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                if file.read().split(b"\0")[:2] == [b"sleep", SLEEP_S.encode()]:
                    found.append(int(path.split("/")[2]))
        except OSError:
            continue
    return found


class Release(unittest.TestCase):
    def setUp(self):
        self.folders = tempfile.mkdtemp(prefix="lbf-release-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.folders)
        self.addCleanup(lambda: [os.kill(pid, signal.SIGKILL) for pid in sleepers()])
        folder = os.path.join(self.folders, "slurm-22.05")
        for name in ("dev", "etc", "proc", "root", "run", "sys", "tmp", "usr", "var"):
            os.makedirs(os.path.join(folder, name))
        for name in ("bin", "lib", "lib32", "lib64", "libx32", "sbin"):
            os.symlink(f"usr/{name}", os.path.join(folder, name))
        with open(os.path.join(folder, ".lbf-bootstrapped"), "w", encoding="utf-8"):
            pass
        self.command = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", 'mount --bind /usr "$0/usr"; exec "$@"',
                        folder, RELEASE, "22.05", "run", "sh", "-c"]
        self.env = {**os.environ, "LBF_RELEASES_DIR": self.folders}

    def run_in_folder(self, script):
        return subprocess.run([*self.command, script], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                              env=self.env, check=False)

    def assert_sleepers(self, number):
        deadline = time.monotonic() + 20
        while len(sleepers()) != number and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(number, len(sleepers()))

    def test_the_exit_status_is_the_commands(self):
        for script, status in (("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 128 + signal.SIGKILL),
                               ("kill -INT $$", 128 + signal.SIGINT), ("kill -TERM $$", 128 + signal.SIGTERM)):
            done = self.run_in_folder(script)
            self.assertEqual(status, done.returncode, f"{script}: {done}")

    def test_its_processes_are_its_own_and_it_sees_no_others(self):
        done = self.run_in_folder("set -- /proc/[0-9]*; echo $#; cat /proc/1/comm")
        self.assertEqual(0, done.returncode, done)
        number, first = done.stdout.split()
        self.assertLess(int(number), 6, done)
        self.assertEqual("bash", first)

    def test_what_it_leaves_running_ends_with_it(self):
        done = self.run_in_folder(f"setsid sleep {SLEEP_S} >/dev/null 2>&1 &\n"
                                  "until grep -qx sleep /proc/[0-9]*/comm; do :; done; exit 3")
        self.assertEqual(3, done.returncode, done)
        self.assert_sleepers(0)

    def test_what_ends_it_ends_the_command(self):
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with subprocess.Popen([*self.command, f"exec sleep {SLEEP_S}"], stdin=subprocess.DEVNULL, env=self.env) as process:
                self.assert_sleepers(1)
                process.send_signal(sent)
                self.assertEqual(128 + sent, process.wait(timeout=30))
                self.assert_sleepers(0)


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
