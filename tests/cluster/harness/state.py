"""One cluster's name, folder, addresses and processes; which clusters there are; the lock between them."""

import fcntl
import json
import os
import re

from .processes import MARK, all_pids, carries_mark, parent_of
from .shell import ClusterError, run, write_file

STATE_ROOT = os.environ.get("LBF_CLUSTER_ROOT", "/var/tmp")
CONTROLLER_HOST = 254               # last byte of the bridge's address
FREEZER = "/sys/fs/cgroup/freezer"


class Cluster:
    """State folder, names and addresses of one cluster. `facts` is what is kept in cluster.json."""

    def __init__(self, name):
        if not re.fullmatch(r"[a-z][a-z0-9]{0,15}", name):
            raise ClusterError(f"'{name}' is no cluster name: use 1 to 16 of a-z and 0-9, a letter first")
        self.name = name
        self.dir = f"{STATE_ROOT}/lbf-cluster-{name}"
        self.facts = None
        try:
            owner = os.lstat(self.dir).st_uid
            if owner not in (os.getuid(), 0):
                raise ClusterError(f"{self.dir} belongs to uid {owner}, not to you; choose another cluster name")
            with open(self.path("cluster.json"), encoding="utf-8") as file:
                self.facts = json.load(file)
        except (FileNotFoundError, json.JSONDecodeError):
            pass

    # -- names
    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    @property
    def conf(self):
        return self.path("slurm.conf")

    def netns(self, node):
        return f"lbf-{self.name}.{node}"

    def nodes(self):
        return [f"node{i}" for i in range(1, self.facts["nodes"] + 1)]

    def index(self, node):
        if node not in self.nodes():
            raise ClusterError(f"cluster {self.name} has no node '{node}' (it has {', '.join(self.nodes())})")
        return int(node.removeprefix("node"))

    def node_address(self, node):
        return f"{self.facts['subnet']}.{self.index(node)}" if self.facts["namespaces"] else "127.0.0.1"

    def controller_address(self):
        return f"{self.facts['subnet']}.{CONTROLLER_HOST}" if self.facts["namespaces"] else "127.0.0.1"

    def bridge(self):
        return f"lbfbr{self.facts['number']}"

    def veth(self, node):
        return f"lbf{self.facts['number']}v{self.index(node)}"

    def cgroup(self):
        """Above the nodes' freezer hierarchies, with `up --cgroups`."""
        return f"{FREEZER}/lbf-cluster-{self.name}"

    def save(self):
        write_file(self.path("cluster.json.new"), json.dumps(self.facts, indent=1) + "\n")
        os.replace(self.path("cluster.json.new"), self.path("cluster.json"))

    # -- processes
    def own_netns(self):
        """Network namespaces of this cluster's name that exist, whatever cluster.json says."""
        try:
            names = os.listdir("/run/netns")
        except FileNotFoundError:
            return []
        return [name for name in names if re.fullmatch(rf"lbf-{self.name}\.node\d+", name)]

    def own_pids(self):
        """Every process of this cluster: in its network namespaces, carrying its mark, or a descendant of one."""
        own = set()
        for netns in self.own_netns():
            own.update(int(pid) for pid in run("ip", "netns", "pids", netns, check=False).split())
        mark = self.facts["mark"] if self.facts else None
        children = {}
        for pid in all_pids():
            parent = parent_of(pid)
            if parent is None:
                own.discard(pid)
                continue
            children.setdefault(parent, []).append(pid)
            if mark and carries_mark(pid, mark):
                own.add(pid)
        queue = list(own)
        while queue:
            for child in children.get(queue.pop(), ()):
                if child not in own:
                    own.add(child)
                    queue.append(child)
        own.discard(os.getpid())
        return sorted(own)

    def daemon_pid(self, what):
        """Pid of a daemon by its pid file, if that process is alive and ours; else None."""
        try:
            with open(self.path("run", f"{what}.pid"), encoding="ascii") as file:
                pid = int(file.read().strip())
        except (FileNotFoundError, ValueError):
            return None
        return pid if self.facts and parent_of(pid) is not None and carries_mark(pid, self.facts["mark"]) else None

    def environment(self):
        """Environment of the cluster's daemons: PATH, language and the CAs of an lbfd, nothing of the caller's Slurm or MPI."""
        authorities = {name: os.environ[name] for name in ("LBF_CA_FILE",) if name in os.environ}
        return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
                "SLURM_CONF": self.conf, MARK: self.facts["mark"], **authorities}

    def slurm(self, *command, check=True, timeout=30):
        return run(*command, check=check, timeout=timeout, env={**os.environ, "SLURM_CONF": self.conf})

    def alive(self):
        return (self.facts is not None and self.daemon_pid("slurmctld") is not None
                and all(self.daemon_pid(f"slurmd-{node}") for node in self.nodes()))


def open_lock():
    """The lock under which clusters are created and removed; released when the returned file is closed."""
    path = f"{STATE_ROOT}/.lbf-cluster.{os.getuid()}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    lock = os.fdopen(descriptor, "r+")
    if os.fstat(descriptor).st_uid != os.getuid():
        raise ClusterError(f"{path} belongs to another user; remove it")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def all_names():
    prefix = "lbf-cluster-"
    names = []
    for entry in sorted(os.listdir(STATE_ROOT)):
        if entry.startswith(prefix) and os.lstat(os.path.join(STATE_ROOT, entry)).st_uid == os.getuid():
            names.append(entry.removeprefix(prefix))
    return names


def running(name):
    cluster = Cluster(name)
    if not cluster.alive():
        state = "has stopped (its remains are removed by the next up or down)" if cluster.facts else "is not up"
        raise ClusterError(f"cluster {name} {state}; start it with: cluster up {name} --nodes N")
    return cluster


def known(name):
    cluster = Cluster(name)
    if cluster.facts is None:
        raise ClusterError(f"cluster {name} is not up; start it with: cluster up {name} --nodes N")
    return cluster
