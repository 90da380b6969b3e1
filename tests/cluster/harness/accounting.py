"""slurmdbd and its database, with `up --accounting`: what sacct shows is kept there."""

import glob
import os
import shutil
import subprocess

from .shell import ClusterError, free_port, run, wait_until, write_file

DATABASE = "127.0.0.1"


def require_commands():
    for command, package in (("mariadbd", "mariadb-server-core"), ("slurmdbd", "slurmdbd")):
        if shutil.which(command) is None:
            raise ClusterError(f"--accounting: {command} is not installed (package {package})")


def settings(cluster):
    """Lines of slurm.conf."""
    cluster.facts["slurmdbd_port"] = free_port(cluster.controller_address(), 6819)
    cluster.save()
    return f"""AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={cluster.controller_address()}
AccountingStoragePort={cluster.facts['slurmdbd_port']}
AccountingStoreFlags=job_comment"""


def start(cluster):
    """REQUIRES: slurm.conf. Empty when the cluster starts, and gone with it."""
    data = cluster.path("mariadb")
    port = free_port(DATABASE, 23306)
    os.makedirs(data, mode=0o700)
    shutil.chown(data, "nobody")  # who is the database's root without a password writes no files of root's
    server = ["mariadbd", "--no-defaults", "--user=nobody", f"--datadir={data}", "--skip-name-resolve",
              "--innodb-flush-log-at-trx-commit=0"]
    # As mariadb-install-db does, which wants the client's package.
    system = "create database mysql;\nuse mysql;\n"
    for what in ("tables", "tables_data"):
        with open(max(glob.glob(f"/usr/share/m*/*_system_{what}.sql")), encoding="utf-8") as file:
            system += file.read()
    with open(cluster.path("log", "mariadb.log"), "ab") as log:
        subprocess.run([*server, "--bootstrap"], input=system.encode(), stdout=log, stderr=log, check=False, timeout=60)
        subprocess.Popen([*server, f"--socket={data}/socket", f"--bind-address={DATABASE}", f"--port={port}"],
                         stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=cluster.environment(), cwd="/",
                         start_new_session=True)
    if not wait_until(lambda: os.path.exists(f"{data}/socket"), 30):
        raise ClusterError(f"mariadbd does not start; see {cluster.path('log', 'mariadb.log')}")
    write_file(cluster.path("slurmdbd.conf"), f"""AuthType=auth/munge
DbdHost=localhost
DbdAddr={cluster.controller_address()}
DbdPort={cluster.facts['slurmdbd_port']}
SlurmUser=root
PidFile={cluster.path('run', 'slurmdbd.pid')}
LogFile={cluster.path('log', 'slurmdbd.log')}
StorageType=accounting_storage/mysql
StorageHost={DATABASE}
StoragePort={port}
StorageUser=root
""", 0o600)
    run("slurmdbd", env=cluster.environment())
    if not wait_until(lambda: cluster.slurm("sacctmgr", "--noheader", "show", "qos", check=False), 30):
        raise ClusterError(f"slurmdbd does not answer; see {cluster.path('log', 'slurmdbd.log')}")
    cluster.slurm("sacctmgr", "--immediate", "add", "cluster", cluster.name)
