"""munged and lbfd of bench/abuse: started, watched and ended here, in a folder that goes away."""

import http.client
import os
import signal
import subprocess
import threading
import time

import client

LOOK_S = 0.02
START_LIMIT_S = 20
STOP_LIMIT_S = 15
DESCRIPTORS = 1536  # with max_connections = 1024


class Failed(Exception):
    pass


def status_kib(pid, key):
    """VmHWM or VmRSS of a process; 0: it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


class Watched:
    """A child whose memory is looked at, and which is killed where it takes more than `most_mib`."""

    def __init__(self, command, most_mib, **more):
        self.began = time.monotonic()
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, **more)  # pylint: disable=consider-using-with
        self.peak_kib, self.most_kib = 0, most_mib << 10
        self.was_killed = False
        self.ended_after_s = None
        self.watch = threading.Thread(target=self.look, daemon=True)
        self.watch.start()

    def look(self):
        while self.child.poll() is None:
            self.peak_kib = max(self.peak_kib, status_kib(self.child.pid, "VmHWM"))
            if self.peak_kib > self.most_kib and not self.was_killed:
                self.was_killed = True
                self.child.kill()
            time.sleep(LOOK_S)
        self.ended_after_s = time.monotonic() - self.began

    def is_alive(self):
        return self.child.poll() is None

    def end(self, number=signal.SIGTERM, patience_s=STOP_LIMIT_S):
        """How long it took; None: it had to be killed."""
        began = time.monotonic()
        took_s = None
        if self.is_alive():
            self.child.send_signal(number)
        try:
            self.child.wait(patience_s)
            took_s = time.monotonic() - began
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.watch.join()
        return took_s

    def ending(self):
        """How it ended, in words; empty: it has not, or as it was told."""
        if self.was_killed:
            return f"killed above {self.most_kib >> 10} MiB after {self.ended_after_s:.1f} s"
        code = self.child.poll()
        if code is None or code == 0:
            return ""
        word = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return f"{word} after {self.ended_after_s or 0:.1f} s"


class Munged:
    def __init__(self, folder):
        self.socket = os.path.join(folder, "munge", "socket")
        where = os.path.dirname(self.socket)
        os.mkdir(where, 0o755)
        with open(os.open(where + "/key", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as key:
            key.write(os.urandom(1024))
        words = ["munged", "--foreground", "--force", "--num-threads=4", f"--socket={self.socket}"]
        words += [f"--{what}-file={where}/{what}" for what in ("key", "pid", "log", "seed")]
        with open(where + "/out", "wb") as out:
            self.child = subprocess.Popen(words, stdout=out, stderr=out)  # pylint: disable=consider-using-with
        munge = client.Munge(self.socket)
        for _ in range(200):
            try:
                munge.credential(b"x")
                return
            except OSError:
                time.sleep(0.05)
        self.stop()
        raise Failed("munged does not start: " + open(where + "/out", encoding="utf-8").read()[-300:])

    def stop(self):
        self.child.terminate()
        self.child.wait()


class Lbfd:
    def __init__(self, program, networks, munge_socket, folder, uid, most_mib):
        self.program, self.munge_socket, self.uid, self.most_mib = program, munge_socket, uid, most_mib
        self.folder = folder
        self.unix = os.path.join(folder, "lbfd.sock")
        self.log_path = os.path.join(folder, "lbfd.log")
        self.tcp = ("127.0.0.1", 0)
        os.chown(folder, uid, uid)
        os.mkdir(folder + "/networks.d")
        for network in networks:
            os.symlink(network, os.path.join(folder, "networks.d", os.path.basename(network)))
        self.running = None

    def start(self):
        """Seconds until it answers; None: it does not."""
        with open(self.folder + "/lbfd.toml", "w", encoding="utf-8") as out:
            out.write(f'listen = ["unix:{self.unix}", "tcp:127.0.0.1:{self.tcp[1]}"]\nstate_dir = "{self.folder}/state"\n'
                      f'networks_dir = "{self.folder}/networks.d"\nnetwork = "nominal-1gbe"\noperators = ["0"]\n')
        log_begins = os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0
        with open(self.log_path, "ab") as log:
            self.running = Watched(["prlimit", f"--nofile={DESCRIPTORS}", "--core=0", "--", self.program, "--config",
                                    self.folder + "/lbfd.toml"], self.most_mib, stderr=log, stdout=log, user=self.uid,
                                   group=self.uid, extra_groups=[], env=dict(os.environ, LBF_MUNGE_SOCKET=self.munge_socket))
        until = time.monotonic() + START_LIMIT_S
        while time.monotonic() < until and self.running.is_alive():
            if self.answers(until):
                took_s = time.monotonic() - self.running.began
                self.find_port(log_begins)
                return took_s
            time.sleep(LOOK_S)
        return None

    def answers(self, until):
        try:
            return client.User(self.unix, None, keep="one request").ask("GET", "/v1/health", until=until)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def find_port(self, log_begins):
        for line in self.log_lines(log_begins):
            if "listens on tcp:127.0.0.1:" in line:
                self.tcp = ("127.0.0.1", int(line.rsplit(":", 1)[1]))

    def log_lines(self, begin=0):
        with open(self.log_path, encoding="utf-8", errors="replace", newline="\n") as log:
            log.seek(begin)
            return log.read(16 << 20).split("\n")

    def disk_mib(self):
        total = 0
        for where, _, names in os.walk(self.folder + "/state"):
            for name in names:
                try:
                    total += os.lstat(os.path.join(where, name)).st_blocks * 512
                except OSError:
                    pass
        return total / (1 << 20)
