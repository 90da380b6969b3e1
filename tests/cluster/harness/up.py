"""`cluster up`: checks what was asked for, makes the state, the network and the configuration, starts the daemons."""

import os
import secrets

from . import accounting, lbf, machine, network, slurm
from .cleanup import remove
from .shell import ClusterError, boot_id, free_port, say, wait_until, warn
from .state import Cluster, open_lock

MAX_NODES = 200
READY_TIMEOUT_S = 60.0


def parse_pins(options):
    cores = sorted(os.sched_getaffinity(0))
    if options.pin_nodes:
        return [cores[i % len(cores)] for i in range(options.nodes)]
    if options.pin:
        if len(options.pin) != options.nodes:
            raise ClusterError(f"--pin takes one core for each of the {options.nodes} nodes, not {len(options.pin)}")
        wrong = [core for core in options.pin if core not in cores]
        if wrong:
            raise ClusterError(f"--pin: this machine lets us use the cores {cores}, not {wrong}")
        return options.pin
    return []


def command_up(options):
    machine.require_commands()
    if not 1 <= options.nodes <= MAX_NODES:
        raise ClusterError(f"--nodes must be between 1 and {MAX_NODES}")
    if options.cpus_per_node < 1:
        raise ClusterError("--cpus-per-node must be at least 1")
    missing = machine.missing_for_namespaces()
    if missing:
        warn(f"ONE node only instead of {options.nodes}, plain slurmd on loopback, because: {missing}")
        options.nodes = 1
        options.pin = options.pin[:1]
    if options.cgroups:
        missing_cgroups = machine.missing_for_cgroups()
        if missing_cgroups:
            raise ClusterError(f"--cgroups: {missing_cgroups}")
    for option in ("job_container", "accounting"):
        if getattr(options, option) and missing:
            raise ClusterError(f"--{option.replace('_', '-')}: it needs root, and nodes with namespaces of their own")
    if options.accounting:
        accounting.require_commands()
    build_dir = os.path.abspath(options.lbf) if options.lbf else None
    keep = [os.path.abspath(path) for path in options.keep]
    # The checkout that this program stands in is wanted on every node, and so is the build folder.
    keep += [path for path in (machine.CHECKOUT, build_dir) if path]
    keep = [path for path in dict.fromkeys(keep) if path.startswith("/tmp/")]
    plugstack = ""
    if options.plugstack:
        with open(options.plugstack, encoding="utf-8") as file:
            plugstack = file.read()
    wish = {"nodes": options.nodes, "cpus_per_node": options.cpus_per_node, "pins": parse_pins(options),
            "namespaces": not missing, "plugstack": plugstack, "plugin_args": options.plugin_args or "",
            "lbf": build_dir, "lbfd_settings": options.lbfd_setting, "slurm_settings": options.slurm_setting,
            "networks": options.networks and os.path.abspath(options.networks), "keep": keep, "cgroups": options.cgroups,
            "job_container": options.job_container, "accounting": options.accounting}
    if options.users:
        machine.create_test_users()
    with open_lock():
        cluster = Cluster(options.name)
        if cluster.alive():
            if any(cluster.facts.get(key) != value for key, value in wish.items()):
                raise ClusterError(f"{options.name} is up with other settings; first: cluster down {options.name}")
            if build_dir and not cluster.daemon_pid("lbfd"):
                lbf.lbfd_start(cluster)
            say(f"{options.name} is up already: {options.nodes} nodes, {cluster.dir}")
            return
        remove(cluster)
        machine.start_munge()
        os.makedirs(cluster.dir, mode=0o755)
        for folder in ("state", "log", "run", "nodes", "local", "keep", "lbf"):
            os.makedirs(cluster.path(folder), mode=0o755)
        cluster.facts = {**wish, "mark": secrets.token_hex(8), "boot_id": boot_id(), "number": -1, "subnet": None}
        try:
            if wish["namespaces"]:
                network.pick_subnet(cluster)
                cluster.facts["slurmctld_port"], cluster.facts["slurmd_port"] = 6817, 6818
            else:
                cluster.facts["slurmctld_port"] = free_port("127.0.0.1", 26817)
                cluster.facts["slurmd_port"] = free_port("127.0.0.1", cluster.facts["slurmctld_port"] + 1)
            cluster.save()
            if wish["namespaces"]:
                network.make_bridge(cluster)
        except BaseException:
            remove(cluster)
            raise
    try:
        slurm.write_hosts(cluster)
        slurm.write_slurm_conf(cluster)
        lbf.write_plugstack(cluster)
        if build_dir:
            lbf.lbfd_start(cluster)
        if options.accounting:
            accounting.start(cluster)
        slurm.start_slurmctld(cluster)
        for node in cluster.nodes():
            slurm.start_node(cluster, node)
        if not wait_until(lambda: slurm.nodes_ready(cluster), READY_TIMEOUT_S, 0.2):
            raise ClusterError(f"the nodes are not ready after {READY_TIMEOUT_S:.0f} s:\n{slurm.log_tail(cluster, 4)}")
    except BaseException:
        if not options.keep_failed:
            remove(cluster)
        raise
    pins = f", pinned to cores {cluster.facts['pins']}" if cluster.facts["pins"] else ""
    where = f"network {cluster.facts['subnet']}.0/24" if cluster.facts["namespaces"] else "loopback"
    say(f"{cluster.name} is up: {options.nodes} node{'s' if options.nodes > 1 else ''} with "
        f"{options.cpus_per_node} CPU{'s' if options.cpus_per_node > 1 else ''} each{pins}, {where}, state and logs in {cluster.dir}")
