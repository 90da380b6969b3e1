"""lbf on a cluster: the plugin's line in plugstack.conf, lbfd, and the variables of a user's shell."""

import os
import socket
import subprocess

from . import slurm
from .machine import readable_by_all
from .shell import ClusterError, free_port, wait_until, warn, write_file

LBFD_PORT = 7420


def lbfd_address(cluster):
    return f"{cluster.controller_address()}:{cluster.facts['lbfd_port']}"


def write_plugstack(cluster):
    facts = cluster.facts
    text = facts["plugstack"]
    if facts["lbf"]:
        closed = readable_by_all(facts["lbf"])
        if closed:
            warn(f"ordinary users may not pass {closed}, so they cannot use this build; as root only")
        facts["lbfd_port"] = LBFD_PORT if facts["namespaces"] else free_port("127.0.0.1", LBFD_PORT)
        cluster.save()
        spool_dir = ("local", "spool-lbf") if facts["namespaces"] else ("nodes", "node1", "spool-lbf")
        arguments = {"lbfd": f"http://{lbfd_address(cluster)}", "spool_dir": cluster.path(*spool_dir),
                     "relay": f"{facts['lbf']}/bin/lbf-relay", "report": f"{facts['lbf']}/bin/lbf-report",
                     "capture": f"{facts['lbf']}/lib/liblbf_capture.so"}
        for argument in facts["plugin_args"].split():
            key, _, value = argument.partition("=")
            arguments[key] = value
        plugin = f"{facts['lbf']}/lib/lbf.so"
        if not os.path.exists(plugin):
            raise ClusterError(f"{plugin} does not exist; build it first: cmake --build --preset release")
        text += f"optional {plugin} " + " ".join(f"{key}={value}" for key, value in arguments.items()) + "\n"
    write_file(cluster.path("plugstack.conf"), text)


def write_lbfd_toml(cluster):
    networks = cluster.facts["networks"] or cluster.path("lbf", "networks.d")
    os.makedirs(networks, exist_ok=True)
    settings = {"listen": f'["unix:{cluster.path("run", "lbfd.sock")}", "tcp:{lbfd_address(cluster)}"]',
                "state_dir": f'"{cluster.path("lbf", "state")}"', "networks_dir": f'"{networks}"'}
    # The nodes share this machine's processors, so each one's ranks are other programs to the others.
    settings["outcome_others_percent"] = "100"
    if cluster.facts.get("network"):
        settings["network"] = f'"{cluster.facts["network"]}"'
    for setting in cluster.facts["lbfd_settings"]:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ClusterError(f"--lbfd-setting {setting}: write it as KEY=VALUE, as in lbfd.toml")
        settings[key.strip()] = value.strip()
    write_file(cluster.path("lbf", "lbfd.toml"), "# Written by tests/cluster/cluster.\n"
               + "".join(f"{key} = {value}\n" for key, value in settings.items()))


def lbfd_start(cluster):
    if cluster.daemon_pid("lbfd"):
        return
    if not cluster.facts["lbf"]:
        raise ClusterError(f"{cluster.name} was started without --lbf BUILD_DIR")
    write_lbfd_toml(cluster)
    os.makedirs(cluster.path("lbf", "state"), mode=0o700, exist_ok=True)
    with open(cluster.path("log", "lbfd.log"), "ab") as log:
        daemon = subprocess.Popen([f"{cluster.facts['lbf']}/bin/lbfd", "--config", cluster.path("lbf", "lbfd.toml")],
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=cluster.environment(),
                                  cwd="/", start_new_session=True)
    write_file(cluster.path("run", "lbfd.pid"), f"{daemon.pid}\n")
    address, port = cluster.controller_address(), cluster.facts["lbfd_port"]

    def answers():
        if daemon.poll() is not None:
            return True
        try:
            socket.create_connection((address, port), timeout=1).close()
            return True
        except OSError:
            return False

    if not wait_until(answers, 30) or daemon.poll() is not None:
        with open(cluster.path("log", "lbfd.log"), encoding="utf-8", errors="replace") as file:
            words = "".join(file.readlines()[-5:])
        raise ClusterError(f"lbfd does not answer on {address}:{port}:\n{words}")


def lbfd_stop(cluster, signal_number):
    pid = cluster.daemon_pid("lbfd")
    if pid is None:
        return False
    os.kill(pid, signal_number)
    if not wait_until(lambda: cluster.daemon_pid("lbfd") is None, 30):
        raise ClusterError(f"lbfd (process {pid}) does not end")
    return True


def job_environment(cluster):
    """What a user's shell needs: which cluster, and how Open MPI is to talk on nodes that share one machine."""
    values = {"SLURM_CONF": cluster.conf, "LBF_CLUSTER": cluster.name,
              "SLURM_MPI_TYPE": slurm.mpi_type(),
              # Nodes share the machine's cores: a rank that waits must let another one run.
              "OMPI_MCA_mpi_yield_when_idle": "1",
              # Between nodes TCP over eth0, within a node shared memory, as on a cluster of Ethernet nodes.
              "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader,tcp"}
    if os.getuid() == 0:
        values["OMPI_ALLOW_RUN_AS_ROOT"] = values["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    if cluster.facts["namespaces"]:
        values["OMPI_MCA_btl_tcp_if_include"] = f"{cluster.facts['subnet']}.0/24"
    if cluster.facts["lbf"]:
        values["LBF_SERVER"] = f"unix:{cluster.path('run', 'lbfd.sock')}"
    return values
