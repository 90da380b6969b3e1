"""A throw-away copy of this machine: an overlay over its root whose upper layer is a tmpfs, in a mount namespace of one
shell's own. What packages do in there is gone when the shell ends; nothing of the machine changes, and no daemon starts."""

import os
import subprocess
import tempfile

ENTER = r"""
set -e
folder=$1
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
root=$folder/root
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mkdir -p "$root/tmp/packages"
mount --bind "$2" "$root/tmp/packages"
mkdir "$root/tmp/changes"
mount --bind "$folder/upper" "$root/tmp/changes"
rm -f "$root/usr/sbin/policy-rc.d"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 0755 "$root/usr/sbin/policy-rc.d"
echo ready
exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh
"""
END = "--- end of command, status"


class Overlay:
    """One shell in the copy. `packages` is at /tmp/packages in there."""

    def __init__(self, packages):
        self.folder = tempfile.TemporaryDirectory(prefix="lbf-overlay-")
        self.shell = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh", self.folder.name,
                                       packages], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, start_new_session=True)
        first = self.shell.stdout.readline()
        if first.strip() != "ready":
            rest = first + self.shell.stdout.read()
            self.close()
            raise OSError(rest.strip())

    def run(self, command):
        """(exit status, stdout and stderr) of a line of shell."""
        self.shell.stdin.write(f"( {command}\n) </dev/null; status=$?; echo; echo '{END}' $status\n")
        self.shell.stdin.flush()
        lines = []
        while True:
            line = self.shell.stdout.readline()
            if not line:
                raise AssertionError(f"the shell in the overlay ended: {''.join(lines)[-2000:]}")
            if line.startswith(END):
                return int(line.split()[-1]), "".join(lines).strip()
            lines.append(line)

    def changes(self):
        """{(what, path)}: what differs from the machine's own root; "new", "changed" or "gone"."""
        status, listing = self.run("find /tmp/changes -mindepth 1 -printf '%y %P\\n'")
        if status != 0:
            raise AssertionError(listing)
        found = set()
        for line in listing.splitlines():
            kind, path = line[0], "/" + line[2:]
            # The upper layer has a character device where something of the machine is gone, and copies of folders.
            if kind == "c":
                found.add(("gone", path))
            elif not os.path.lexists(path):
                found.add(("new", path))
            elif kind != "d":
                found.add(("changed", path))
        return found

    def close(self):
        self.shell.stdin.close()
        self.shell.wait(60)
        self.shell.stdout.close()
        self.folder.cleanup()


def may_be_skipped():
    """Why there can be no overlay here, or ''."""
    if os.getuid() != 0:
        return "needs root: packages are installed in an overlay over the machine's root"
    with tempfile.TemporaryDirectory() as empty:
        try:
            Overlay(empty).close()
        except OSError as error:
            return f"no overlay over the root can be mounted here: {error}"
    return ""
