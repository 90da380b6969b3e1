"""Slurm's configuration files and daemons, and the namespaces that make a slurmd a node."""

import glob
import os
import pwd
import socket

from . import accounting, network
from .shell import run, write_file


def mpi_type():
    """How ranks find each other under srun: pmix, else pmi2 (Debian's Slurm 26.05 is built without PMIx). Open MPI 5 and 6
    know PMIx only, MPICH knows both."""
    found = any(glob.glob(os.path.join(folder, "mpi_pmix*.so")) for folder in
                glob.glob("/usr/lib/*/slurm*") + ["/usr/lib/slurm", "/usr/lib64/slurm"])
    return "pmix" if found else "pmi2"


def write_slurm_conf(cluster):
    facts = cluster.facts
    controller = "lbfctl" if facts["namespaces"] else socket.gethostname().split(".")[0]
    user = pwd.getpwuid(os.getuid()).pw_name
    # slurmctld listens on the bridge's address only, so that clusters and the machine's own Slurm do not collide.
    listen = "CommunicationParameters=NoCtldInAddrAny" if facts["namespaces"] else ""
    node_lines = []
    for node in cluster.nodes():
        host = "" if facts["namespaces"] else f" NodeHostname={controller}"
        node_lines.append(f"NodeName={node}{host} NodeAddr={cluster.node_address(node)} "
                          f"CPUs={facts['cpus_per_node']} State=UNKNOWN")
    stored = accounting.settings(cluster) if facts.get("accounting") else "AccountingStorageType=accounting_storage/none"
    contained = "JobContainerType=job_container/tmpfs\nPrologFlags=Contain" if facts.get("job_container") else ""
    write_file(cluster.conf, f"""# Written by tests/cluster/cluster; overwritten by the next `cluster up {cluster.name}`.
ClusterName={cluster.name}
SlurmctldHost={controller}({cluster.controller_address()})
SlurmctldPort={facts['slurmctld_port']}
SlurmdPort={facts['slurmd_port']}
{listen}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={cluster.path('state')}
SlurmdSpoolDir={cluster.path('spool')}-%n
SlurmctldPidFile={cluster.path('run', 'slurmctld.pid')}
SlurmdPidFile={cluster.path('run', 'slurmd-%n.pid')}
SlurmctldLogFile={cluster.path('log', 'slurmctld.log')}
SlurmdLogFile={cluster.path('log', 'slurmd-%n.log')}
ProctrackType=proctrack/{'cgroup' if facts.get('cgroups') else 'linuxproc'}
{contained}
# A pinned node's tasks inherit the core of its slurmd; task/affinity would bind them to CPU 0 of the machine.
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault={mpi_type()}
# With PMI-2 nobody tells the others that a rank has died.
KillOnBadExit={0 if mpi_type() == 'pmix' else 1}
ReturnToService=2
PlugStackConfig={cluster.path('plugstack.conf')}
{stored}
JobAcctGatherType=jobacct_gather/linux
JobCompType=jobcomp/none
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=100000,bf_interval=2
# An address of a node says nothing about the switch it hangs on: all are one hop apart.
TopologyPlugin=topology/none
KillWait=5
MinJobAge=86400
SlurmdTimeout=60
# The caller's limits (e.g. a small memlock in a container) must not reach the jobs of another user.
PropagateResourceLimits=NONE
""" + "\n".join(node_lines) + "\nPartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8\n"
               + "".join(f"{line}\n" for line in facts.get("slurm_settings", [])))
    if mpi_type() == "pmix":
        # With the direct connections of Slurm's PMIx plugin a run over four nodes dies or hangs in MPI_Init once in a
        # hundred times, captured or not (docs/cluster-harness.md).
        write_file(cluster.path("mpi.conf"), "PMIxDirectConn=false\n")
    if facts.get("job_container"):
        # The same path on every node, and each node's own (NODE_SETUP).
        write_file(cluster.path("job_container.conf"), f"AutoBasePath=true\nBasePath={cluster.path('local', 'containers')}\n")
    if facts.get("cgroups"):
        write_file(cluster.path("cgroup.conf"), "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\n")


def write_hosts(cluster):
    # The machine's own name too: from 24.11 on slurmctld looks up where srun was called when it has something to tell it.
    lines = ["127.0.0.1 localhost", f"{cluster.controller_address()} lbfctl {socket.gethostname()}"]
    lines += [f"{cluster.node_address(node)} {node}" for node in cluster.nodes()]
    write_file(cluster.path("hosts"), "\n".join(lines) + "\n")


def start_slurmctld(cluster):
    start = ["slurmctld", "-f", cluster.conf]
    if cluster.facts["namespaces"]:
        # An /etc/hosts of its own: slurmctld looks its name up to listen on the bridge's address only.
        start = ["unshare", "--mount", "--propagation", "slave", "--uts", "sh", "-e", "-c",
                 'mount --bind "$1" /etc/hosts; hostname lbfctl; exec slurmctld -f "$2"',
                 "sh", cluster.path("hosts"), cluster.conf]
    run(*start, env=cluster.environment())


NODE_SETUP = r"""
set -e
node=$1; state=$2; shift 2
# What lies under /tmp and must be seen on the node (a checkout, a build folder) is kept over the node's own /tmp.
kept=0
for path in "$@"; do
  mkdir -p "$state/keep/$kept"; mount --rbind "$path" "$state/keep/$kept"; kept=$((kept + 1))
done
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
kept=0
for path in "$@"; do
  mkdir -p "$path"; mount --rbind "$state/keep/$kept" "$path"; kept=$((kept + 1))
done
# A folder of the node's own that outlives slurmd, the same path on every node (the spool of the relay).
mount --bind "$state/nodes/$node" "$state/local"
mount --bind "$state/hosts" /etc/hosts
hostname "$node"
# Slurm names a step's cgroup by job and step only: each node sees a hierarchy of its own.
if [ -n "$LBF_CGROUP" ]; then
  mkdir -p "$LBF_CGROUP/$node"; mount --bind "$LBF_CGROUP/$node" /sys/fs/cgroup/freezer
fi
exec slurmd -f "$SLURM_CONF"
"""


def start_node(cluster, node):
    facts = cluster.facts
    os.makedirs(cluster.path("spool") + f"-{node}", exist_ok=True)
    for folder in ("nodes/" + node, "nodes/" + node + "/spool-lbf"):
        os.makedirs(cluster.path(folder), exist_ok=True)
    os.chmod(cluster.path("nodes", node, "spool-lbf"), 0o1777)
    pin = facts["pins"][cluster.index(node) - 1] if facts["pins"] else None
    prefix = f"taskset --cpu-list {pin}" if pin is not None else ""
    if not facts["namespaces"]:
        run(*prefix.split(), "slurmd", "-f", cluster.conf, env=cluster.environment())
        return
    network.make_link(cluster, node)
    # `ip netns exec` would mount a fresh /sys and hide /sys/fs/cgroup, without which slurmd does not start.
    # Propagation "slave": what the host unmounts later (another cluster's /run/netns entry) goes away here too.
    # Pinned before unshare: Linux 6.18 knows a mount namespace for younger than another one only if one processor made both.
    run("nsenter", f"--net=/run/netns/{cluster.netns(node)}", *prefix.split(),
        "unshare", "--mount", "--propagation", "slave", "--uts", "--ipc",
        "sh", "-c", NODE_SETUP, "sh", node, cluster.dir, *facts["keep"],
        env={**cluster.environment(), "LBF_CGROUP": cluster.cgroup() if facts.get("cgroups") else ""})


def nodes_ready(cluster, nodes=None):
    """`nodes`: of these; default: of all."""
    states = cluster.slurm("sinfo", "--noheader", "--Node", "--format=%N %t", check=False).split("\n")
    good = {line.split()[0] for line in states if line.strip() and line.split()[1] in ("idle", "mix", "alloc")}
    return good >= set(cluster.nodes() if nodes is None else nodes)


def log_tail(cluster, lines=12):
    rows = []
    for name in sorted(os.listdir(cluster.path("log"))):
        with open(cluster.path("log", name), encoding="utf-8", errors="replace") as file:
            rows += [f"{name}: {row.rstrip()}" for row in file.readlines()[-lines:]]
    return "\n".join(rows)
