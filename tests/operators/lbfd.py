"""A real lbfd of a test's own, asked with tokens: no munged is needed. And a munged, for what is about it."""

import http.client
import json
import os
import re
import subprocess
import tempfile
import time
import unittest

BUILD = os.environ["LBF_BUILD_DIR"]
LBFD = os.path.join(BUILD, "bin", "lbfd")
TOKEN = "0123456789abcdef" * 4
METRICS_TOKEN = "fedcba9876543210" * 4


def write_secret(path, text):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write(text + "\n")


class Munged:
    """A munged of a test's own."""

    def __init__(self):
        if not os.access("/usr/sbin/munged", os.X_OK):
            raise unittest.SkipTest("munged is not installed")
        self.folder = tempfile.TemporaryDirectory(prefix="lbf-munged-")
        self.socket = os.path.join(self.folder.name, "socket")
        self.process = None

    def __enter__(self):
        write_secret(os.path.join(self.folder.name, "key"), "k" * 1024)
        files = [f"--{name}-file={os.path.join(self.folder.name, name)}" for name in ("key", "pid", "log", "seed")]
        self.process = subprocess.Popen(["/usr/sbin/munged", "--foreground", "--force", f"--socket={self.socket}", *files],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        give_up = time.monotonic() + 30
        while subprocess.run(["munge", "-n", "-S", self.socket], capture_output=True, check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > give_up:
                raise unittest.SkipTest("munged does not start here")
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


class Lbfd:
    def __init__(self, more_config="", addresses=("tcp:127.0.0.1:0",), munge_socket="/nonexistent"):
        self.munge_socket = munge_socket
        self.folder = tempfile.TemporaryDirectory(prefix="lbf-operators-")
        self.process = None
        self.port = None
        write_secret(self.path("token"), TOKEN)
        write_secret(self.path("metrics-token"), METRICS_TOKEN)
        os.mkdir(self.path("networks.d"))
        self.write("lbfd.toml", f'listen = {json.dumps(addresses)}\nstate_dir = "{self.path("state")}"\n'
                   f'networks_dir = "{self.path("networks.d")}"\ntoken_file = "{self.path("token")}"\n'
                   f'metrics_token_file = "{self.path("metrics-token")}"\n{more_config.replace("FOLDER", self.folder.name)}')

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def environment(self, **more):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("LBF_")}
        return {**environment, "LBF_MUNGE_SOCKET": self.munge_socket, **more}

    def log(self):
        with open(self.path("log"), encoding="utf-8") as file:
            return file.read()

    def __enter__(self):
        with open(self.path("log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([LBFD, "--config", self.path("lbfd.toml")], env=self.environment(),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        give_up = time.monotonic() + 30
        while self.port is None:
            found = re.search(r"listens on t(?:cp|ls):[\d.]+:(\d+)", self.log())
            if found:
                self.port = int(found[1])
            elif self.process.poll() is not None or time.monotonic() > give_up:
                raise AssertionError(f"lbfd does not start: {self.log()}")
            else:
                time.sleep(0.02)
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
        self.folder.cleanup()

    def request(self, method, target, body=None, token=TOKEN):
        """(status, content type, body)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
        finally:
            connection.close()

    def run_empty_step(self, job=7, wait_s=30):
        """A step of one task that registers and ends: partial, for no MPI was seen."""
        key = f"/v1/steps/c/{job}/0/0"
        description = {"cluster": "c", "job": job, "step": 0, "restart": 0, "uid": os.getuid(), "nodes": ["n0"],
                       "node_index": 0, "tasks": 1, "tasks_per_node": [1], "task_ids": [0], "command": ["./a"]}
        for method, target, body in (("PUT", "/streams/0", description),
                                     ("POST", "/streams/0/end", {"last_sequence": 0, "lost_batches": 0})):
            status, _, answer = self.request(method, key + target, json.dumps(body))
            if status != 200:
                raise AssertionError(answer)
        give_up = time.monotonic() + wait_s
        while json.loads(self.request("GET", key)[2])["state"] == "running" or not self.has_counted_all():
            if time.monotonic() > give_up:
                raise AssertionError(f"step {job} does not end: {self.log()}")
            time.sleep(0.05)

    def has_counted_all(self):
        """A step's view is final a moment before lbfd has counted it."""
        text = self.request("GET", "/metrics")[2]
        started, = re.findall(r"^lbfd_steps_started_total (\d+)$", text, re.M)
        return int(started) == sum(map(int, re.findall(r"^lbfd_steps_ended_total\{.*\} (\d+)$", text, re.M)))
