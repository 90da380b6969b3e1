"""The command line: what `cluster --help` says, and where each command goes."""

import argparse

from .commands import (command_down, command_env, command_exec, command_kill_node, command_lbfd, command_logs,
                       command_lose_state, command_shape, command_start_node, command_status)
from .machine import TEST_USERS, become_root
from .shell import ClusterError, warn
from .up import command_up


def parser():
    top = argparse.ArgumentParser(
        prog="cluster", description="A real Slurm cluster on one machine: each node has namespaces of its own.",
        epilog="Start: cluster up demo --nodes 4 --pin-nodes; eval \"$(cluster env demo)\"; srun -N4 hostname; "
               "cluster down demo. More: docs/cluster-harness.md")
    commands = top.add_subparsers(dest="command_name", metavar="COMMAND", required=True)

    def add(name, function, text):
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.set_defaults(function=function)
        return command

    up = add("up", command_up, "start a cluster (fine when it is up already; remains of a dead one are removed)")
    up.add_argument("name")
    up.add_argument("--nodes", type=int, required=True, metavar="N")
    up.add_argument("--cpus-per-node", type=int, default=1, metavar="C", help="what Slurm believes (default: 1)")
    up.add_argument("--pin", type=int, nargs="+", default=[], metavar="K", help="core of each node, N of them")
    up.add_argument("--pin-nodes", action="store_true", help="node i runs on core i mod the number of cores")
    up.add_argument("--plugstack", metavar="FILE", help="contents for plugstack.conf, before the lbf plugin")
    up.add_argument("--lbf", metavar="BUILD_DIR", help="use this build: plugin in plugstack.conf, lbfd started")
    up.add_argument("--plugin-args", metavar="'K=V ...'", help="arguments for the lbf plugin, over the usual ones")
    up.add_argument("--lbfd-setting", action="append", default=[], metavar="KEY=VALUE",
                    help="a line for lbfd.toml, several times")
    up.add_argument("--slurm-setting", action="append", default=[], metavar="LINE",
                    help="a line for the end of slurm.conf (a partition, an option), several times")
    up.add_argument("--networks", metavar="DIR", help="lbfd's networks.d (default: an empty one in the state folder)")
    up.add_argument("--keep", action="append", default=[], metavar="PATH",
                    help="a path under /tmp that the nodes shall see (each node has a /tmp of its own)")
    up.add_argument("--cgroups", action="store_true",
                    help="ProctrackType=proctrack/cgroup: each step in a cgroup (default: proctrack/linuxproc)")
    up.add_argument("--accounting", action="store_true", help="slurmdbd with a database of its own, for sacct")
    up.add_argument("--job-container", action="store_true",
                    help="JobContainerType=job_container/tmpfs: each job has a /tmp and a /dev/shm of its own")
    up.add_argument("--users", action="store_true",
                    help=f"create the ordinary users {' and '.join(TEST_USERS)} if they do not exist; they are kept")
    up.add_argument("--keep-failed", action="store_true", help="leave everything for inspection if the start fails")

    down = add("down", command_down, "end a cluster and remove everything it made (fine when it is not up)")
    down.add_argument("name", help="or: all")

    status = add("status", command_status, "what is up")
    status.add_argument("name", nargs="?")

    run_on = add("exec", command_exec, "run a command on a node")
    run_on.add_argument("--user", metavar="USER")
    run_on.add_argument("name")
    run_on.add_argument("node")
    run_on.add_argument("command", nargs=argparse.REMAINDER)

    env = add("env", command_env, "print the variables a shell needs: eval \"$(cluster env NAME)\"")
    env.add_argument("name")

    shape = add("shape", command_shape, "limit a node's link in both directions, also while jobs run")
    shape.add_argument("name")
    shape.add_argument("node", help="node1 ..., or: all")
    shape.add_argument("rate", help="100mbit, 1gbit ..., or: none")

    kill = add("kill-node", command_kill_node, "SIGKILL everything on a node, as if its power had failed")
    kill.add_argument("name")
    kill.add_argument("node")

    revive = add("start-node", command_start_node, "start a node's slurmd again")
    revive.add_argument("name")
    revive.add_argument("node")

    lose = add("lose-state", command_lose_state, "start slurmctld with an empty state: job numbers come again")
    lose.add_argument("name")

    logs = add("logs", command_logs, "the last lines of every daemon's log")
    logs.add_argument("name")
    logs.add_argument("-n", "--lines", type=int, default=20)
    logs.add_argument("-f", "--follow", action="store_true")

    lbfd = add("lbfd", command_lbfd, "start, stop, kill -9 or restart the cluster's lbfd")
    lbfd.add_argument("name")
    lbfd.add_argument("--network", help="from now on this is the cluster's own network (lbfd.toml: network)")
    lbfd.add_argument("action", choices=("start", "stop", "kill9", "restart"))
    return top


def main():
    options = parser().parse_args()
    try:
        if options.function not in (command_env, command_logs):
            become_root()
        options.function(options)
    except ClusterError as error:
        warn(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
