"""Ends a cluster and removes everything that it made, also after a crash."""

import os
import shutil

from . import network
from .processes import end_processes
from .shell import ClusterError, run, wait_until, warn, write_file


def remove(cluster):
    """Ends every process of the cluster and removes everything it made. Fine when there is nothing."""
    if os.path.isdir(cluster.dir) and os.stat(cluster.dir).st_uid == 0 and os.getuid() != 0:
        raise ClusterError(f"{cluster.name} is root's: as root, cluster down {cluster.name}")
    if cluster.facts and cluster.daemon_pid("slurmctld") and not cluster.facts["namespaces"]:
        # Without a network namespace a step's processes are found only through their slurmstepd.
        cluster.slurm("scancel", "--state=RUNNING,PENDING", check=False)
        wait_until(lambda: not cluster.slurm("squeue", "--noheader", check=False).strip(), 10, 0.3)
    for folder, _, files in os.walk(cluster.cgroup()):
        if "freezer.state" in files:  # a suspended step's processes would not end
            write_file(os.path.join(folder, "freezer.state"), "THAWED")
    end_processes(cluster.own_pids)
    network.remove_links(cluster)
    for folder, _, _ in os.walk(cluster.cgroup(), topdown=False):
        try:
            os.rmdir(folder)
        except OSError as error:
            warn(f"{folder} is left over: {error.strerror}")
    if os.path.isdir(cluster.dir):
        with open("/proc/self/mounts", encoding="utf-8") as file:
            stale = [line.split()[1] for line in file if line.split()[1].startswith(cluster.dir + "/")]
        for mount_point in sorted(stale, reverse=True):
            run("umount", "--lazy", mount_point)
        shutil.rmtree(cluster.dir)
    cluster.facts = None
