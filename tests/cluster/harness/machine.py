"""What this machine must have and may do: commands, rights, kernel, munge, users."""

import os
import pwd
import shutil
import sys

from .shell import ClusterError, run, succeeds, wait_until
from .state import FREEZER

HARNESS = os.path.dirname(os.path.realpath(__file__))
PROGRAM = os.path.join(os.path.dirname(HARNESS), "cluster")
CHECKOUT = os.path.abspath(os.path.join(HARNESS, "../../.."))
TEST_USERS = ("lbftest1", "lbftest2")


def missing_for_namespaces():
    """Why nodes cannot be namespaces here, in a few words; '' where they can."""
    if os.environ.get("LBF_CLUSTER_NO_NAMESPACES", "0") not in ("", "0"):
        return "LBF_CLUSTER_NO_NAMESPACES is set"
    if os.getuid() != 0:
        return "not root (namespaces, bridges and veth pairs need CAP_SYS_ADMIN and CAP_NET_ADMIN)"
    if not succeeds("unshare", "--net", "--mount", "--uts", "--ipc", "true"):
        return "the kernel or this container refuses unshare of net, mount, uts and ipc namespaces"
    probe = f"lbfp{os.getpid()}"
    netns = f"lbf-probe-{os.getpid()}"
    steps = (
        ("a named network namespace", ("ip", "netns", "add", netns)),
        ("a bridge (CONFIG_BRIDGE)", ("ip", "link", "add", probe, "type", "bridge")),
        ("a veth pair (CONFIG_VETH)",
         ("ip", "link", "add", f"{probe}v", "type", "veth", "peer", "name", "eth0", "netns", netns)),
        ("a tmpfs mount in a mount namespace", ("unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm")),
    )
    try:
        for what, command in steps:
            if not succeeds(*command):
                return f"no right or no kernel support for {what}"
    finally:
        for command in (("ip", "link", "del", f"{probe}v"), ("ip", "link", "del", probe),
                        ("ip", "netns", "del", netns)):
            succeeds(*command)
    return ""


def missing_for_cgroups():
    """Why Slurm cannot keep jobs in cgroups here, in a few words; '' where it can."""
    if missing_for_namespaces():
        return "it needs nodes with namespaces of their own"
    if not os.path.exists(f"{FREEZER}/cgroup.procs"):
        return f"{FREEZER} is not mounted (cgroup version 1 is what this was written for)"
    probe = f"{FREEZER}/lbf-probe-{os.getpid()}"
    try:
        os.mkdir(probe)
        os.rmdir(probe)
    except OSError as error:
        return f"no cgroup can be made in {FREEZER}: {error.strerror}"
    return ""


def require_commands():
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
    for command, package in (("slurmctld", "slurmctld"), ("slurmd", "slurmd"), ("srun", "slurm-client"),
                             ("munge", "munge"), ("ip", "iproute2"), ("unshare", "util-linux"),
                             ("taskset", "util-linux")):
        if shutil.which(command) is None:
            raise ClusterError(f"{command} is missing: apt-get install {package} (etc/debian-packages has all)")


def start_munge():
    """A munged that answers on the default socket; started if absent (it is shared by all clusters and stays)."""
    if succeeds("sh", "-c", "munge -n | unmunge"):
        return
    if os.getuid() != 0:
        raise ClusterError("no munged answers, and only root can start it: start it with `systemctl start munge`")
    for folder in ("/etc/munge", "/run/munge", "/var/log/munge", "/var/lib/munge"):
        os.makedirs(folder, mode=0o755 if folder == "/run/munge" else 0o700, exist_ok=True)
        shutil.chown(folder, "munge", "munge")
    if not os.path.exists("/etc/munge/munge.key"):
        run("mungekey", "--create")
    shutil.chown("/etc/munge/munge.key", "munge", "munge")
    run("runuser", "-u", "munge", "--", "/usr/sbin/munged")
    if not wait_until(lambda: succeeds("sh", "-c", "munge -n | unmunge"), 10):
        raise ClusterError("munged was started and does not answer; see /var/log/munge/munged.log")


def create_test_users():
    if os.getuid() != 0:
        raise ClusterError("--users: only root can create users")
    for user in TEST_USERS:
        try:
            pwd.getpwnam(user)
        except KeyError:
            run("useradd", "--no-create-home", "--home-dir", "/tmp", "--shell", "/bin/sh",
                "--comment", "ordinary user of the lbf cluster tests", user)


def readable_by_all(path):
    """The first folder on the way to `path` that an ordinary user may not pass, or ''."""
    path = os.path.realpath(path)
    while True:
        if not os.stat(path).st_mode & 0o001:
            return path
        if path == "/":
            return ""
        path = os.path.dirname(path)


def become_root():
    """Continues as root where sudo allows it without a question: an ordinary user with sudo gets a whole cluster."""
    if os.getuid() == 0 or os.environ.get("LBF_CLUSTER_NO_NAMESPACES", "0") not in ("", "0"):
        return
    if shutil.which("sudo") and succeeds("sudo", "--non-interactive", "true"):
        settings = [f"{key}={value}" for key, value in os.environ.items() if key.startswith("LBF_CLUSTER_")]
        os.execvp("sudo", ["sudo", "--non-interactive", "env", *settings, PROGRAM, *sys.argv[1:]])
