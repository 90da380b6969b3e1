"""Who asks lbfd: users of bench/abuse, by munge credentials (docs/formats/http-v1.md).

They connect to Unix sockets and loopback addresses only.
"""

import ctypes
import http.client
import ipaddress
import json
import os
import socket
import time

import wire


class Munge:
    """Credentials of this process's user. Not for several threads."""

    SOCKET_OPTION = 8  # MUNGE_OPT_SOCKET

    def __init__(self, path):
        self.library = ctypes.CDLL("libmunge.so.2")
        self.library.munge_ctx_create.restype = ctypes.c_void_p
        self.library.munge_strerror.restype = ctypes.c_char_p
        self.context = ctypes.c_void_p(self.library.munge_ctx_create())
        self.library.munge_ctx_set(self.context, self.SOCKET_OPTION, ctypes.c_char_p(path.encode()))

    def credential(self, payload):
        text = ctypes.c_char_p()
        code = self.library.munge_encode(ctypes.byref(text), self.context, payload, len(payload))
        if code:
            raise OSError(f"munge: {self.library.munge_strerror(code).decode()}")
        out = text.value.decode()
        ctypes.CDLL(None).free(text)
        return out


def open_socket(address, timeout_s, source=None):
    """A connection to ADDRESS, a path or (loopback address, port), from the loopback address SOURCE."""
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX)
    else:
        for host in (address[0], source or address[0]):
            if not ipaddress.ip_address(host).is_loopback:
                raise ValueError(f"{host}: bench/abuse connects to this machine alone")
        sock = socket.socket(socket.AF_INET)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        sock.settimeout(max(timeout_s, 0.001))
        if source and not isinstance(address, str):
            sock.bind((source, 0))
        sock.connect(address)
    except OSError:
        sock.close()
        raise
    return sock


class Connection(http.client.HTTPConnection):
    def __init__(self, address, source=None):
        super().__init__("localhost")
        self.address, self.source, self.timeout_s = address, source, 10

    def connect(self):
        self.sock = open_socket(self.address, self.timeout_s, self.source)


class User:
    """One thread of one user, with one connection that stays open where `keep` says so."""

    def __init__(self, address, munge_socket, source=None, keep="keep"):
        self.munge = Munge(munge_socket) if munge_socket else None
        self.address, self.source, self.keep = address, source, keep == "keep"
        self.connection = None

    def ask(self, method, target, body=b"", until=None, crc=None):
        """Status and body of the answer. `until`: gives up then. `crc`: crc32c(body), where it is known."""
        timeout_s = 60 if until is None else max(until - time.monotonic(), 0.001)
        headers = {}
        if self.munge:
            checksum = wire.crc32c(body) if crc is None else crc
            payload = f"{method} {target} {len(body)} {checksum:08x}".encode()
            headers["Authorization"] = "Munge " + self.munge.credential(payload)
        if method != "GET":
            headers["Content-Length"] = str(len(body))
        for attempt in (0, 1):
            was_open = self.connection is not None
            if not was_open:
                self.connection = Connection(self.address, self.source)
            self.connection.timeout_s = timeout_s
            if self.connection.sock:
                self.connection.sock.settimeout(timeout_s)
            try:
                self.connection.request(method, target, body or None, headers)
                answer = self.connection.getresponse()
                out = answer.status, answer.read()
            except (ConnectionError, http.client.RemoteDisconnected):
                self.close()
                # lbfd closes connections that were idle: a new one, once, and a new credential.
                if was_open and attempt == 0 and (until is None or time.monotonic() < until):
                    if self.munge:
                        headers["Authorization"] = "Munge " + self.munge.credential(payload)
                    continue
                raise
            except BaseException:
                self.close()
                raise
            if not self.keep or answer.will_close:
                self.close()
            return out
        raise ConnectionError("lbfd closes each connection")

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


def step_path(job, submit=None):
    """Where the step of a job is asked for; `submit`: None for an lbfd, or as a relay, whose keys have no submit time."""
    return f"/v1/steps/bench/{job}/0/0" + (f"/{submit}" if submit else "")


def description(job, tasks, nodes=("n1",), **more):
    """As a relay of node 0 gives it; of one node if `nodes` is left alone."""
    out = {"cluster": "bench", "job": job, "step": 0, "restart": 0, "job_name": "bench", "nodes": list(nodes), "node_index": 0,
           "node": nodes[0], "tasks": tasks, "cpus_on_node": min(tasks, 64), "start_realtime_ns": time.time_ns(),
           "command": ["./bench"]}
    out.update(more)
    return json.dumps(out, separators=(",", ":")).encode()


def become(uid):
    """This process is a user's from here on."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
