"""Rows of bench/abuse that are one command: rings that break what ring.h says, files for tools, and a report.

Each is a function of the Place that gives a Result.
"""

import dataclasses
import mmap
import os
import re
import signal
import struct
import subprocess
import time

import client
import service

MEMORY_LIMIT_MIB = 3072
# spank_plugin/capture/ring.h, version 8.
RING_VERSION, HEADER_BYTES, RING_HEAD, RING_TAIL = 8, 16384, 640, 704
RECORD_BYTES = 48
PAD, COLLECTIVE, PHASE = 255, 8, 19
RUNNING = 1
MONOTONIC = 1


@dataclasses.dataclass
class Place:
    """Where a command runs: `lbfd` answers, `folder` is the user's."""

    build: str
    folder: str
    lbfd: service.Lbfd
    uid: int
    limit_s: float

    def environment(self):
        return dict(os.environ, LBF_SERVER=f"unix:{self.lbfd.unix}", LBF_MUNGE_SOCKET=self.lbfd.munge_socket)

    def program(self, name):
        return os.path.join(self.build, "bin", name)

    def file(self, name, content=b""):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as out:
            out.write(content)
        os.chown(path, self.uid, self.uid)
        return path


@dataclasses.dataclass
class Result:
    took_s: float
    peak_mib: float
    ended: str
    said: str


def watch(place, words, until_ended=None, **more):
    """Runs a command for `limit_s` at most. `until_ended` is called when it has been started."""
    out = open(os.path.join(place.folder, "out"), "w+b")  # pylint: disable=consider-using-with
    with out:
        watched = service.Watched(words, MEMORY_LIMIT_MIB, stdout=out, stderr=out, user=place.uid, group=place.uid, extra_groups=[],
                                  env=place.environment(), **more)
        if until_ended:
            until_ended(watched)
        try:
            watched.child.wait(place.limit_s)
        except subprocess.TimeoutExpired:
            watched.child.kill()
            watched.child.wait()
            ended = f"not done after {place.limit_s:.0f} s"
        else:
            watched.watch.join()
            ended = watched.ending() or "exit status 0"
        watched.watch.join()
        out.seek(0)
        text = out.read(1 << 20).decode(errors="replace")
    return Result(watched.ended_after_s, watched.peak_kib / 1024, ended, text)


def first_line(result):
    line = next((line for line in result.said.splitlines() if line.strip()), "nothing")
    result.said = line if len(line) <= 160 else line[:160] + "..."
    return result


# --- rings

def ring_header(capacity, pid, tid, head):
    header = bytearray(HEADER_BYTES)
    now = time.monotonic_ns()
    struct.pack_into("<8sIIQiiIIiiiIQQQQ", header, 0, b"BLFRING1", RING_VERSION, HEADER_BYTES, capacity, pid, tid, MONOTONIC, 0, 0, 0,
                     1, RUNNING, now, now, time.time_ns(), now)
    header[152:161] = b"/bin/ring"
    header[408:422] = b"Open MPI v4.1."
    struct.pack_into("<Q", header, RING_HEAD, head)
    return bytes(header)


def record(words, kind):
    return struct.pack("<IBBHQQiiIIQ", words, kind, 0, 0, 0, 0, -1, 1, 0, 0, 0)


def relay_words(place, job):
    step = place.file("step.json", client.description(job, 1, task_ids=[0]))
    rings = os.path.join(place.folder, f"rings-{job}")
    os.mkdir(rings, 0o700)
    os.chown(rings, place.uid, place.uid)
    return rings, [place.program("lbf-relay"), "--ring-dir", rings, "--server", f"unix:{place.lbfd.unix}", "--step-file", step]


def ended_process():
    child = subprocess.Popen(["true"])  # pylint: disable=consider-using-with
    child.wait()
    return child.pid


def ring_goes_on(place):
    """a dead process's ring that another one goes on writing"""
    rings, words = relay_words(place, 1)
    capacity, pid = 1 << 26, ended_process()  # takes longer to read than to write an index
    path = os.path.join(rings, f"{pid}.{pid}.ring")
    records = capacity // RECORD_BYTES
    pad = (capacity - records * RECORD_BYTES) // 8
    with open(path, "w+b") as ring:
        ring.write(ring_header(capacity, pid, pid, 0))
        ring.write(record(RECORD_BYTES // 8, PHASE) * records + struct.pack("<IB", pad, PAD).ljust(8 * pad, b"\0"))
        os.chown(path, place.uid, place.uid)
        ring.flush()
        words_of_header = memoryview(mmap.mmap(ring.fileno(), HEADER_BYTES)).cast("Q")
    writer = os.fork()
    if writer == 0:
        os.nice(-15)  # faster than the relay, whatever else runs here
    while writer == 0:
        words_of_header[RING_HEAD // 8] = words_of_header[RING_TAIL // 8] + capacity
    ends = os.pipe()
    try:
        result = watch(place, words + ["--end-fd", str(ends[0])], lambda _: (time.sleep(1), os.close(ends[1])), pass_fds=(ends[0],))
    finally:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        os.close(ends[0])
    return first_line(result)


def rings_of_holes(place):
    """8 rings with one record of 128 MiB in holes"""
    rings, words = relay_words(place, 2)
    capacity, longest = 1 << 28, (1 << 24) - 1
    owner = subprocess.Popen(["sleep", "600"], user=place.uid)  # pylint: disable=consider-using-with
    try:
        for number in range(8):
            tid = owner.pid + number
            path = os.path.join(rings, f"{owner.pid}.{tid}.ring")
            with open(path, "wb") as ring:
                ring.truncate(HEADER_BYTES + capacity)
                ring.write(ring_header(capacity, owner.pid, tid, 8 * longest))
                ring.write(record(longest, COLLECTIVE))
            os.chown(path, place.uid, place.uid)
        ends = os.pipe()
        try:
            return first_line(watch(place, words + ["--end-fd", str(ends[0])], lambda _: (time.sleep(2), os.close(ends[1])),
                                    pass_fds=(ends[0],)))
        finally:
            os.close(ends[0])
    finally:
        owner.terminate()
        owner.wait()


# --- files for tools

def many_ranks(place):
    """lbf-whatif: 2^24 ranks in 36 bytes"""
    path = place.file("ranks.lbf", b"lbf-trace 1\nranks 16777216\n0 exit 0\n")
    return first_line(watch(place, [place.program("lbf-whatif"), path, "--nodes", "1"]))


def many_ranks_looked_at(place):
    """lbf-trace: the same"""
    path = place.file("ranks.lbf", b"lbf-trace 1\nranks 16777216\n0 exit 0\n")
    return first_line(watch(place, [place.program("lbf-trace"), "info", path]))


def long_line(place):
    """lbf-whatif: one line of 300 MiB"""
    path = place.file("line.lbf")
    with open(path, "wb") as out:
        out.write(b"lbf-trace 1\nranks 2\n")
        for _ in range(300):
            out.write(b"7" * (1 << 20))
    return first_line(watch(place, [place.program("lbf-whatif"), path, "--nodes", "1"]))


def long_times(place):
    """lbf-whatif: times of 1e308 in a network file"""
    trace = place.file("pair.lbf", b"lbf-trace 1\nranks 2\n0 send 1 to=1 tag=1 bytes=8\n0 exit 0\n"
                                   b"1 startRecv 1 from=0 tag=1\n1 endRecv 0 from=0 tag=1 bytes=8\n1 exit 0\n")
    network = place.file("long.toml", b'name = "long"\n[[path]]\nlocality = "remote"\ntable = [[0, 1e308], [100, 1e308]]\n')
    result = watch(place, [place.program("lbf-whatif"), trace, "--nodes", "2", "--network", network])
    longest = max((len(digits) for digits in re.findall(r"\d+", result.said)), default=0)
    first_line(result)
    if longest > 40:
        result.said = f"a number of {longest} digits"
    return result


def delimiter(place):
    """lbf-report -P: the delimiter inside a job's name"""
    job = 3
    process = os.fork()
    if process == 0:
        try:
            client.become(place.uid)
            user = client.User(place.lbfd.unix, place.lbfd.munge_socket)
            body = client.description(job, 2, job_name="name|COMPLETE|1|2|3")
            status, _ = user.ask("PUT", client.step_path(job) + "/streams/0", body)
            os._exit(0 if status == 200 else 1)
        except BaseException:  # pylint: disable=broad-exception-caught
            os._exit(1)
    os.waitpid(process, 0)
    result = watch(place, [place.program("lbf-report"), "-P", "-j", str(job), "-o", "JobID,JobName,State"])
    columns = [line.count("|") + 1 for line in result.said.splitlines()]
    result.said = f"lines of {', '.join(map(str, columns)) or 'no'} columns"
    return result


COMMANDS = {"ring-goes-on": ring_goes_on, "rings-of-holes": rings_of_holes, "tool-ranks": many_ranks,
            "tool-ranks-trace": many_ranks_looked_at, "tool-line": long_line, "tool-times": long_times, "report": delimiter}
