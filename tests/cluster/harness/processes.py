"""Which processes are a cluster's own, and how they are ended.

A process belongs to a cluster if it carries the cluster's random mark in its environment, lives in one of its network
namespaces, or descends from such a process (state.Cluster.own_pids); no other one is ever touched."""

import os
import signal

from .shell import ClusterError, wait_until

MARK = "LBF_CLUSTER_MARK"           # in the environment of every process that a cluster starts


def all_pids():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return None if fields[0] == "Z" else int(fields[1])
    except (OSError, IndexError, ValueError):
        return None


def carries_mark(pid, mark):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"{MARK}={mark}".encode() in file.read().split(b"\0")
    except OSError:
        return False


def end_processes(list_pids, patience_s=5.0):
    """SIGTERM, then after `patience_s` SIGKILL, to whatever list_pids() names, until it names nothing."""
    for signal_number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, patience_s)):
        pids = list_pids()
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal_number)
            except (ProcessLookupError, PermissionError):
                pass
        if wait_until(lambda: not list_pids(), wait_s):
            return
    left = list_pids()
    if left:
        raise ClusterError(f"processes {left} do not end even after SIGKILL; look at them with ps")
