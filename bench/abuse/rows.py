"""What the hostile user of bench/abuse does: one class for each surface, with what it sends.

prepare() makes the bodies before the clock starts, play() sends them until `hostile.until`. They speak lbf's own protocol
to the lbfd that bench/abuse has started.
"""

import json
import threading
import time

import client
import honest
import wire

FIRST_JOB = 1000
FORGED = "2026-01-01T00:00:00.000 error forged by a user"


class Hostile:
    """One user with any number of threads. Counts what lbfd said."""

    def __init__(self, people, relays, munge_socket, until):
        self.people, self.relays, self.munge_socket, self.until = people, relays, munge_socket, until
        self.lock = threading.Lock()
        self.said = {}

    def is_time_left(self):
        return time.monotonic() < self.until

    def rest(self):
        while self.is_time_left():
            time.sleep(0.05)

    def count(self, what):
        with self.lock:
            self.said[what] = self.said.get(what, 0) + 1

    def user(self):
        # An address of its own, as another node has.
        return client.User(self.relays, self.munge_socket, source="127.0.0.2")

    def send(self, user, method, target, body=b"", crc=None):
        """Status; 0: no answer."""
        try:
            status, _ = user.ask(method, target, body, self.until, crc)
        except Exception:  # pylint: disable=broad-exception-caught
            status = 0
        self.count(f"{method} {status or 'without answer'}")
        return status

    def register(self, user, job, tasks, /, **more):
        return self.send(user, "PUT", client.step_path(job) + "/streams/0", client.description(job, tasks, **more))

    def post(self, user, job, sequence, body, crc=None):
        return self.send(user, "POST", f"{client.step_path(job)}/streams/0/batches/{sequence}", body, crc)

    def keep_alive(self, user, jobs, sequence):
        """As relays do: an empty batch says that more may come."""
        while self.is_time_left():
            body = wire.batch([], sequence)
            for job in jobs:
                self.post(user, job, sequence, body)
            sequence += 1
            time.sleep(0.5)

    def in_threads(self, count, work):
        threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(self.until + 1 - time.monotonic(), 0))


class Row:
    surface = "batch"
    first_honest_job = honest.FIRST_JOB

    def prepare(self):
        return None

    def play(self, hostile, prepared):
        raise NotImplementedError

    def what_is_wrong(self, user, log_lines):  # pylint: disable=unused-argument
        """What else must not be after the restart, in words. `user`: the hostile one."""
        return ""


class Batches(Row):
    """Steps of `tasks` ranks with as many batches each, which then stay open."""

    tasks, steps = 2, 1

    def parts(self):
        """Lists of sections and records; each is a step's."""
        raise NotImplementedError

    def prepare(self):
        return [[(body, wire.crc32c(body)) for body in wire.batches(parts)] for parts in self.parts()]

    def play(self, hostile, prepared):
        user = hostile.user()
        jobs = []
        for step in range(self.steps):
            for bodies in prepared:
                job = FIRST_JOB + len(jobs)
                jobs.append(job)
                hostile.register(user, job, self.tasks, tasks_per_node=[self.tasks])
        for step, job in enumerate(jobs):
            for sequence, (body, crc) in enumerate(prepared[step % len(prepared)], 1):
                hostile.post(user, job, sequence, body, crc)
        hostile.keep_alive(user, jobs, 1 + len(prepared[0]))


class Nobody(Row):
    """nothing: what the other rows are compared with"""

    surface = "-"

    def play(self, hostile, prepared):
        hostile.rest()


class Root(Batches):
    """a barrier with a root outside the communicator, MPICH's rules"""

    def parts(self):
        process = [wire.Record(type="process", rank=rank, world_size=2, pid=9 + rank, node_index=0, library="MPICH Version: 4.0.2")
                   for rank in (0, 1)]
        barrier = wire.shape(wire.COLLECTIVE, op=wire.BARRIER, root=1_000_000_000)
        return [process + [wire.Section(rank).add(barrier) for rank in (0, 1)]]


class Bodies(Row):
    """17 announced bodies of 16 MiB that never come, without a credential"""

    surface = "HTTP"
    connections = 17

    def head(self, number):
        return (f"POST {client.step_path(FIRST_JOB)}/streams/0/batches/{number + 1} HTTP/1.1\r\nHost: localhost\r\n"
                "Authorization: Munge none\r\nContent-Type: application/x-lbf-batch\r\nContent-Length: 16777216\r\n\r\n").encode()

    def play(self, hostile, prepared):
        def hold(number):
            # Every second one on the socket of people's tools, the others as from another node.
            address, source = (hostile.people, None) if number % 2 else (hostile.relays, "127.0.0.2")
            while hostile.is_time_left():
                try:
                    sock = client.open_socket(address, hostile.until - time.monotonic(), source)
                except OSError:
                    hostile.count("not connected")
                    time.sleep(0.1)
                    continue
                with sock:
                    hostile.count("connected")
                    try:
                        sock.sendall(self.head(number))
                        while sock.recv(4096):
                            pass
                    except OSError:
                        pass
        hostile.in_threads(self.connections, hold)


class Connections(Bodies):
    """1,024 silent connections"""

    connections = 1024

    def head(self, number):
        return b""


class NonBlocking(Batches):
    """a rank starts 12 million non-blocking collectives and never waits"""

    def parts(self):
        start = wire.shape(wire.ICOLLECTIVE, flags=wire.HAS_REQUEST, op=wire.ALLREDUCE, size=8)
        return [[wire.Section(0).repeat(start, 12_000_000)]]


class Skipped(Batches):
    """two ranks say that they left out 2^31 - 1 collectives each; three steps"""

    steps = 3

    def parts(self):
        skipped = wire.shape(wire.SKIPPED, op=wire.SKIPPED_COLLECTIVES, size=(1 << 31) - 1)
        return [[wire.Section(rank).add(skipped) for rank in (0, 1)]]


class ProcedureNames(Batches):
    """60,000 procedure names of 4,000 bytes"""

    surface = "control"

    def parts(self):
        return [[wire.Record(type="procedure", rank=0, id=number, name=f"{number:08}" + "n" * 3992) for number in range(60_000)]]


class Ranks(Batches):
    """two steps of 2^20 announced ranks, then `stats` of each"""

    surface = "description"
    tasks, steps = 1 << 20, 2

    def parts(self):
        return [[wire.Record(type="stats", rank=rank, calls=[]) for rank in range(self.tasks)]]


class Intercommunicator(Batches):
    """reduce of 16 TiB on an intercommunicator, network with [local]"""

    tasks = 3

    def parts(self):
        out = []
        for rank, groups, root in ((0, (0, 1, 2), wire.ROOT_IS_ME), (1, (1, 2, 0), 0), (2, (1, 2, 0), 0)):
            local = 1 if rank == 0 else 2
            create = wire.shape(wire.COMM_CREATE, comm=1, values=wire.differences((77, local) + groups), count=5)
            reduce = wire.shape(wire.COLLECTIVE, op=wire.REDUCE, comm=1, root=root, size=1 << 44)
            out.append(wire.Section(rank).add(create).repeat(reduce, 20_000))
        return [out]


class Wildcards(Batches):
    """200,000 wildcard receives that never end, then receives that look at them; three steps"""

    steps = 3

    def parts(self):
        any_source = wire.shape(wire.START_RECV, flags=wire.HAS_REQUEST | wire.WILDCARD_SOURCE, tag=5)
        other_tag = wire.shape(wire.START_RECV, flags=wire.HAS_REQUEST, peer=1, tag=6)
        return [[wire.Section(0).repeat(any_source, 200_000).repeat(other_tag, 2_000_000)]]


class Cancels(Batches):
    """cancelled sends and receives, each behind all others of its channel; two steps of each"""

    steps = 2

    def parts(self):
        count = 300_000
        send = wire.shape(wire.ISEND, flags=wire.HAS_REQUEST, peer=1, tag=5, size=8)
        receive = wire.shape(wire.START_RECV, flags=wire.HAS_REQUEST, peer=1, tag=5)
        cancel = wire.shape(wire.CANCEL, flags=wire.HAS_REQUEST)
        # From the last send to the first: the list is as long as can be. Receives from the first on: all others move up.
        return [[wire.Section(0).repeat(send, count).repeat(cancel, count, count - 1, -2)],
                [wire.Section(0).repeat(receive, count).repeat(cancel, count)]]


class Candidates(Batches):
    """procedure candidates of 65,536 ranks, three times; two steps"""

    surface = "control"
    tasks, steps = 1 << 16, 2

    def parts(self):
        return [[wire.Record(type="procedure_candidate", rank=rank, number=0, of=0) for rank in range(self.tasks)] * 3]


class Communicators(Batches):
    """60 communicators of 2^20 members"""

    tasks = 1 << 20

    def parts(self):
        members = wire.run_of_ranks(0, self.tasks - 1)
        return [[wire.Section(0).add(wire.shape(wire.COMM_CREATE, comm=number, count=self.tasks + 2,
                                                values=wire.differences((1000 + number, 0, 0)) + members))
                 for number in range(1, 61)]]


class AllToAll(Batches):
    """an all-to-all on 2^18 ranks, as every rank does it"""

    tasks = 1 << 18

    def parts(self):
        exchange = wire.shape(wire.COLLECTIVE, op=wire.ALLTOALL, size=8)
        return [[wire.Section(rank).add(exchange) for rank in range(self.tasks)]]


class Waits(Row):
    """one wait for 4 million requests, 500 times in a batch; four streams of such batches"""

    def prepare(self):
        count = 4 << 20
        wait = wire.shape(wire.WAIT, values=wire.svarint(1) * (count - 1), count=count)
        out = []
        for sequence in range(1, 41):
            body = wire.batch([wire.Section(0).repeat(wait, 500)], sequence)
            out.append((body, wire.crc32c(body)))
        return out

    def play(self, hostile, prepared):
        def stream(number):
            user = hostile.user()
            job = FIRST_JOB + number
            hostile.register(user, job, 2)
            for sequence, (body, crc) in enumerate(prepared, 1):
                if not hostile.is_time_left():
                    break
                hostile.post(user, job, sequence, body, crc)
        hostile.in_threads(4, stream)


class Steps(Row):
    """steps without end"""

    surface = "description"

    def play(self, hostile, prepared):
        def register(number):
            user = hostile.user()
            job = FIRST_JOB + number
            while hostile.is_time_left():
                if hostile.register(user, job, 2) != 200:
                    time.sleep(0.02)
                job += 8
        hostile.in_threads(8, register)


class Keys(Row):
    """keys that are taken before their owner comes, some of steps that are over"""

    surface = "description"
    keys = 160

    def prepare(self):
        return honest.FIRST_JOB

    def play(self, hostile, prepared):
        # Steps of a year ago: a job number comes again when numbers wrap, or when slurmctld forgets its state.
        user = hostile.user()
        for job in range(prepared, prepared + self.keys):
            hostile.register(user, job, honest.RANKS, start_realtime_ns=time.time_ns() - 365 * 86400 * 10**9)
            if job % 2:
                hostile.send(user, "POST", client.step_path(job) + "/streams/0/end", json.dumps({"last_sequence": 0}).encode())
        hostile.rest()


class Numbers(Row):
    """7.5 MB of numbers that are longer when they are written again"""

    surface = "description"

    def prepare(self):
        numbers = "[" + ",".join(["1e9"] * 1_870_000) + "]"
        body = client.description(FIRST_JOB, 2, x=0).replace(b'"x":0', f'"x":{numbers}'.encode())
        return body, wire.crc32c(body)

    def play(self, hostile, prepared):
        user = hostile.user()
        hostile.send(user, "PUT", client.step_path(FIRST_JOB) + "/streams/0", *prepared)
        hostile.keep_alive(user, [FIRST_JOB], 1)

    def what_is_wrong(self, user, log_lines):
        status, answer = user.ask("POST", f"{client.step_path(FIRST_JOB)}/streams/0/batches/1", wire.batch([]))
        return f"step unreadable: {status} {answer[:120].decode(errors='replace')}" if status >= 500 else ""


class LogLines(Row):
    """user and node names with line ends and escapes"""

    surface = "description"

    def play(self, hostile, prepared):
        user = hostile.user()
        name = f"user\n{FORGED}\x1b[31m"
        for job in range(FIRST_JOB, FIRST_JOB + 20):
            hostile.register(user, job, 2, user=name, nodes=[f"n1\n{FORGED}"])
        hostile.keep_alive(user, range(FIRST_JOB, FIRST_JOB + 20), 1)

    def what_is_wrong(self, user, log_lines):
        forged = sum(line.startswith(FORGED) for line in log_lines)
        return f"{forged} forged log lines" if forged else ""


ROWS = {"nobody": Nobody, "root": Root, "bodies": Bodies, "connections": Connections, "nonblocking": NonBlocking, "skipped": Skipped,
        "procedure-names": ProcedureNames, "ranks": Ranks, "intercommunicator": Intercommunicator, "wildcards": Wildcards,
        "cancels": Cancels, "candidates": Candidates, "communicators": Communicators, "all-to-all": AllToAll, "waits": Waits,
        "steps": Steps, "keys": Keys, "numbers": Numbers, "log": LogLines}
