"""The commands for a cluster that is up, and `down`."""

import os
import shlex
import shutil
import signal

from . import lbf, network, slurm
from .cleanup import remove
from .processes import end_processes
from .shell import ClusterError, run, say, wait_until
from .state import Cluster, all_names, known, open_lock, running
from .up import READY_TIMEOUT_S


def command_down(options):
    names = all_names() if options.name == "all" else [options.name]
    for name in names:
        with open_lock():
            cluster = Cluster(name)
            there = cluster.facts is not None or cluster.own_netns() or os.path.isdir(cluster.dir)
            remove(cluster)
        say(f"{name} is down" if there else f"{name} was not up")


def command_lbfd(options):
    cluster = known(options.name)
    if options.network is not None:
        if options.action != "restart":
            raise ClusterError("lbfd --network: goes with restart only")
        cluster.facts["network"] = options.network
        cluster.save()
    if options.action == "start":
        lbf.lbfd_start(cluster)
    elif options.action == "stop":
        lbf.lbfd_stop(cluster, signal.SIGTERM)
    elif options.action == "kill9":
        lbf.lbfd_stop(cluster, signal.SIGKILL)
    else:
        lbf.lbfd_stop(cluster, signal.SIGTERM)
        lbf.lbfd_start(cluster)
    pid = cluster.daemon_pid("lbfd")
    say(f"lbfd of {cluster.name}: " + (f"process {pid}, {lbf.lbfd_address(cluster)}" if pid else "not running"))


def command_env(options):
    cluster = known(options.name)
    for key, value in lbf.job_environment(cluster).items():
        print(f"export {key}={shlex.quote(value)}")
    if cluster.facts["lbf"]:
        print(f"export PATH={shlex.quote(cluster.facts['lbf'] + '/bin')}:\"$PATH\"")


def command_exec(options):
    cluster = running(options.name)
    cluster.index(options.node)
    if not options.command:
        raise ClusterError("exec: no command given")
    command = options.command
    if options.user:
        command = ["runuser", "-u", options.user, "--", *command]
    if cluster.facts["namespaces"]:
        pid = cluster.daemon_pid(f"slurmd-{options.node}")
        # --root: this may be a folder of another Debian (tests/cluster/release), which a mount namespace knows nothing of.
        command = ["nsenter", f"--target={pid}", "--net", "--mount", "--uts", "--ipc", "--root", "--wdns=/", *command]
    os.environ.update(lbf.job_environment(cluster))
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise ClusterError(f"{command[0]}: {error.strerror}") from error


def command_shape(options):
    rate = None if options.rate == "none" else network.parse_rate(options.rate)
    cluster = running(options.name)
    if not cluster.facts["namespaces"]:
        raise ClusterError(f"{options.name} is one node on loopback (no namespaces): there is no link to shape")
    nodes = cluster.nodes() if options.node == "all" else [options.node]
    for node in nodes:
        network.shape_link(cluster, node, rate)
    cluster.facts.setdefault("rates", {}).update({node: options.rate for node in nodes})
    cluster.save()
    say(f"{options.node} of {options.name}: " + (f"{options.rate} each way" if rate else "as fast as it gets"))


def command_kill_node(options):
    cluster = running(options.name)
    cluster.index(options.node)
    if not cluster.facts["namespaces"]:
        raise ClusterError("kill-node: this cluster has no namespaces; its only node is the machine itself")
    for pid in run("ip", "netns", "pids", cluster.netns(options.node)).split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    wait_until(lambda: not cluster.daemon_pid(f"slurmd-{options.node}"), READY_TIMEOUT_S, 0.05)
    say(f"{options.node} of {options.name} is dead; bring it back with: cluster start-node {options.name} {options.node}")


def command_start_node(options):
    cluster = known(options.name)
    cluster.index(options.node)
    if not cluster.daemon_pid(f"slurmd-{options.node}"):
        slurm.start_node(cluster, options.node)
    if not wait_until(lambda: slurm.nodes_ready(cluster), READY_TIMEOUT_S, 0.2):
        raise ClusterError(f"{options.node} does not come back; see: cluster logs {options.name}")
    say(f"{options.node} of {options.name} is up")


def command_lose_state(options):
    cluster = running(options.name)
    end_processes(lambda: [pid for pid in [cluster.daemon_pid("slurmctld")] if pid])
    shutil.rmtree(cluster.path("state"))
    os.makedirs(cluster.path("state"), mode=0o755)
    slurm.start_slurmctld(cluster)
    alive = [node for node in cluster.nodes() if cluster.daemon_pid(f"slurmd-{node}")]
    if not wait_until(lambda: slurm.nodes_ready(cluster, alive), READY_TIMEOUT_S, 0.2):
        raise ClusterError(f"the nodes are not ready after {READY_TIMEOUT_S:.0f} s; see: cluster logs {options.name}")
    say(f"slurmctld of {options.name} knows no jobs any more: their numbers come again")


def command_logs(options):
    cluster = known(options.name)
    if options.follow:
        logs = [cluster.path("log", name) for name in sorted(os.listdir(cluster.path("log")))]
        os.execvp("tail", ["tail", "-n", str(options.lines), "-F", *logs])
    print(slurm.log_tail(cluster, options.lines))


def command_status(options):
    names = [options.name] if options.name else all_names()
    if not names:
        print("no cluster")
    for name in names:
        cluster = Cluster(name)
        if cluster.facts is None:
            print(f"{name}: not up")
            continue
        state = "up" if cluster.alive() else "stopped or damaged"
        where = f"{cluster.facts['subnet']}.0/24" if cluster.facts["namespaces"] else "loopback, one node"
        print(f"{name}: {state}, {where}, {cluster.facts['cpus_per_node']} CPUs per node, {cluster.dir}")
        pid = cluster.daemon_pid("lbfd")
        if cluster.facts["lbf"]:
            print(f"  lbfd       {f'process {pid}, {lbf.lbfd_address(cluster)}' if pid else 'not running'}")
        for node in cluster.nodes():
            pid = cluster.daemon_pid(f"slurmd-{node}")
            pin = f", core {cluster.facts['pins'][cluster.index(node) - 1]}" if cluster.facts["pins"] else ""
            rate = cluster.facts.get("rates", {}).get(node, "none")
            rate = "unshaped" if rate == "none" else rate
            print(f"  {node:10} {cluster.node_address(node)}, slurmd {f'process {pid}' if pid else 'not running'}{pin}, {rate}")
