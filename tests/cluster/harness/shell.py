"""Commands, messages, files and waiting: what every part of the harness uses."""

import os
import socket
import subprocess
import sys
import time


class ClusterError(Exception):
    """One line for people: what is wrong and what to do."""


def run(*command, check=True, quiet=False, env=None, timeout=120):
    """Runs a command; returns its stdout. A failure is a ClusterError with the command's own words."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env,
                              timeout=timeout, check=False)
    except FileNotFoundError as missing:
        raise ClusterError(f"{command[0]} is not installed (see etc/debian-packages)") from missing
    except subprocess.TimeoutExpired as slow:
        raise ClusterError(f"{' '.join(command)}: no answer in {timeout} s") from slow
    if done.returncode != 0 and check:
        words = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise ClusterError(f"{' '.join(command)}: {words}")
    if done.returncode != 0 and not quiet:
        return ""
    return done.stdout


def succeeds(*command, timeout=30):
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=timeout, check=False).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False


def say(text):
    print(f"cluster: {text}", flush=True)


def warn(text):
    print(f"cluster: {text}", file=sys.stderr, flush=True)


def write_file(path, text, mode=0o644):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def free_port(address, first):
    """The first TCP port from `first` that nothing on this machine listens on."""
    for port in range(first, first + 500):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
                return port
            except OSError:
                continue
    raise ClusterError(f"no free TCP port between {first} and {first + 499} on {address}")


def boot_id():
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def wait_until(condition, timeout_s, interval_s=0.1):
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(interval_s)
    return condition()
