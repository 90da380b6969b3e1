"""The network of a cluster: its subnet, the bridge, one link per node, and how a link is limited."""

import ipaddress
import json
import os
import re
import shutil

from .shell import ClusterError, run

SUBNET_PREFIX = "10.77."            # cluster k gets 10.77.k.0/24, the first one that nothing on the host uses
# What a bucket may hold, as time at the shaped rate: large enough for the kernel's timers, so small that no
# message is "fast" only because it fits the bucket.
BURST_S = 0.0002
MIN_BURST_BYTES = 3200
QUEUE_LATENCY_MS = 400


def pick_subnet(cluster):
    """Chooses a number k so that 10.77.k.0/24 overlaps with no address, route or bridge of this machine.
    REQUIRES: the lock of all clusters is held."""
    taken = []
    for route in json.loads(run("ip", "-json", "-4", "route", "show", "table", "all") or "[]"):
        destination = route.get("dst", "default")
        if destination == "default":
            continue
        try:
            taken.append(ipaddress.ip_network(destination, strict=False))
        except ValueError:
            continue
    for link in json.loads(run("ip", "-json", "-4", "address", "show")):
        for address in link.get("addr_info", ()):
            taken.append(ipaddress.ip_network(f"{address['local']}/{address['prefixlen']}", strict=False))
    links = {link["ifname"] for link in json.loads(run("ip", "-json", "link", "show"))}
    for number in range(256):
        network = ipaddress.ip_network(f"{SUBNET_PREFIX}{number}.0/24")
        if f"lbfbr{number}" not in links and not any(network.overlaps(other) for other in taken):
            cluster.facts["number"] = number
            cluster.facts["subnet"] = f"{SUBNET_PREFIX}{number}"
            return
    raise ClusterError(f"every network {SUBNET_PREFIX}0.0/24 ... {SUBNET_PREFIX}255.0/24 is in use on this machine")


def parse_rate(text):
    """Bits per second from tc's way of writing it: 100mbit, 1gbit, 56kbit."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?)bit", text.lower())
    if not match or float(match[1]) <= 0:
        raise ClusterError(f"'{text}' is no rate: write 100mbit, 1gbit, 56kbit, or none")
    return float(match[1]) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[match[2]]


def make_bridge(cluster):
    """The bridge that joins the nodes; its alias says whose it is, for a clean-up without the state folder."""
    run("ip", "link", "add", cluster.bridge(), "type", "bridge")
    run("ip", "link", "set", cluster.bridge(), "alias", f"lbf-cluster {cluster.name}")
    run("ip", "address", "add", f"{cluster.controller_address()}/24", "dev", cluster.bridge())
    run("ip", "link", "set", cluster.bridge(), "up")


def make_link(cluster, node):
    """The node's network namespace and its link to the bridge; what is there already (after kill-node) stays."""
    netns, veth = cluster.netns(node), cluster.veth(node)
    if netns not in cluster.own_netns():
        run("ip", "netns", "add", netns)
    if not os.path.exists(f"/sys/class/net/{veth}"):
        run("ip", "link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", netns)
        run("ip", "link", "set", veth, "master", cluster.bridge(), "up")
        run("ip", "-n", netns, "address", "add", f"{cluster.node_address(node)}/24", "dev", "eth0")
        run("ip", "-n", netns, "link", "set", "eth0", "up")
        run("ip", "-n", netns, "link", "set", "lo", "up")


def remove_links(cluster):
    """Removes the namespaces by their names and the bridge, with its links, by its alias. Fine when there are none."""
    for netns in cluster.own_netns():
        run("ip", "netns", "del", netns, check=False)
    if os.getuid() == 0 and shutil.which("ip"):
        links = json.loads(run("ip", "-json", "link", "show", "type", "bridge", check=False) or "[]")
        for link in links:
            if link.get("ifalias") == f"lbf-cluster {cluster.name}":
                for port in json.loads(run("ip", "-json", "link", "show", "master", link["ifname"], check=False) or "[]"):
                    run("ip", "link", "del", port["ifname"], check=False)
                run("ip", "link", "del", link["ifname"], check=False)


def shape_link(cluster, node, rate):
    """Limits a node's link to `rate` bits per second each way; None: as fast as it gets."""
    # Both ends: what the node sends leaves by its eth0, what it receives leaves the bridge by the veth.
    for where, device in ((("tc", "-n", cluster.netns(node)), "eth0"), (("tc",), cluster.veth(node))):
        if rate is None:
            run(*where, "qdisc", "del", "dev", device, "root", check=False)
        else:
            burst = max(MIN_BURST_BYTES, int(rate / 8 * BURST_S))
            run(*where, "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{int(rate)}bit",
                "burst", str(burst), "latency", f"{QUEUE_LATENCY_MS}ms")
