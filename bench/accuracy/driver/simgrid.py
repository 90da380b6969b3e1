"""SimGrid beside lbf: the same trace (its time-independent form) replayed on a platform like a network file.

What makes the two models comparable, and why each option is there, is in bench/results/2026-11-21-accuracy-simgrid-synthetic.txt.
"""

import os
import re
import subprocess
import tempfile
import tomllib

from .cluster import MeasureError, command

FLOPS_PER_SECOND = 1e9  # lbf-trace export writes seconds of process time times this


class SimGridFailed(Exception):
    """smpirun ended without a simulated time: in words."""


class Link:
    """Of one locality: T(bytes) = latency + bytes / bandwidth."""

    def __init__(self, path):
        def value(key, last):
            points = path.get(key) or [[0, 0.0]]
            return points[-1 if last else 0]

        largest = value("table", True)[0]
        parts = ("send_cpu", "table", "recv_cpu")
        first_us, last_us = (sum(value(part, last)[1] for part in parts) for last in (False, True))
        self.latency_s = first_us * 1e-6
        self.bytes_per_s = largest / max((last_us - first_us) * 1e-6, 1e-12) if largest else 1e15
        self.eager_limit = path.get("eager_limit_bytes", 2**31 - 1)


class Network:
    """The links and the contention of a network file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            document = tomllib.load(file)
        links = {entry["locality"]: Link(entry) for entry in document["path"]}
        self.remote = links.get("remote") or next(iter(links.values()))
        self.self_node = links.get("self-node") or self.remote
        self.is_shared = document.get("contention", {}).get("model", "none") != "none"


def write_platform(path, network, nodes, cores):
    """Hosts with an outgoing and an incoming link each, and a loopback that nothing shares."""
    policy = "SHARED" if network.is_shared else "FATPIPE"
    lines = ["<?xml version='1.0'?>", '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
             '<platform version="4.1">', '<zone id="cluster" routing="Full">']

    def link(name, model, share, sharing):
        lines.append(f'  <link id="{name}" bandwidth="{model.bytes_per_s:.6g}Bps" latency="{model.latency_s * share:.9g}s" '
                     f'sharing_policy="{sharing}"/>')

    for node in range(nodes):
        lines.append(f'  <host id="node{node}" speed="{FLOPS_PER_SECOND:.0f}f" core="{cores}"/>')
        link(f"out{node}", network.remote, 0.5, policy)
        link(f"in{node}", network.remote, 0.5, policy)
        link(f"self{node}", network.self_node, 1.0, "FATPIPE")
    for source in range(nodes):
        for target in range(nodes):
            names = [f"self{source}"] if source == target else [f"out{source}", f"in{target}"]
            links = "".join(f'<link_ctn id="{name}"/>' for name in names)
            lines.append(f'  <route src="node{source}" dst="node{target}" symmetrical="NO">{links}</route>')
    lines += ["</zone>", "</platform>", ""]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def model_options(network):
    """See docs/accuracy.md, "SimGrid"."""
    eager_limit = network.remote.eager_limit
    return [f"--cfg={option}" for option in (
        "network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0", "smpi/coll-selector:ompi",
        "smpi/bcast:binomial_tree", f"smpi/async-small-thresh:{eager_limit}", f"smpi/send-is-detached-thresh:{eager_limit}")]


class Trace:
    """A stored trace in its time-independent form, in a folder of its own; with `with`."""

    def __init__(self, lbf_trace, stored):
        self.lbf_trace, self.stored = lbf_trace, stored

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lbf-simgrid-")
        command([self.lbf_trace, "export", self.stored, "--format", "ti", "--flops-per-second", f"{FLOPS_PER_SECOND:.0f}",
                 "-o", os.path.join(self.folder.name, "trace")], timeout=600)
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def replay(self, network, ranks, nodes, cores=1, timeout_s=1800):
        """Simulated seconds, ranks in blocks, on nodes of so many cores."""
        folder = self.folder.name
        platform, hosts = os.path.join(folder, "platform.xml"), os.path.join(folder, "hosts")
        write_platform(platform, network, nodes, cores)
        with open(hosts, "w", encoding="utf-8") as file:
            file.writelines(f"node{rank // (ranks // nodes)}\n" for rank in range(ranks))
        words = ["smpirun", "-np", str(ranks), "-platform", platform, "-hostfile", hosts, "-replay",
                 os.path.join(folder, "trace"), *model_options(network)]
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s,
                                  cwd=folder, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MeasureError(f"{' '.join(words)}: {error}") from error
        found = re.search(r"Simulation time (\S+)", done.stderr + done.stdout)
        if done.returncode != 0 or not found:
            said = [line for line in done.stderr.splitlines() if line and "INFO" not in line]
            raise SimGridFailed(f"smpirun: exit status {done.returncode}: {' '.join(said)[-200:]}")
        return float(found[1])
