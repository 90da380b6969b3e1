"""The honest user of bench/abuse: every 100 ms a look at lbfd's health, a list, and a small step with its prediction.

A request is due at its time, whatever became of the one before: where one has to wait, those that were due meanwhile
have waited, too.
"""

import json
import math
import threading
import time

import client
import wire

PERIOD_S = 0.1
STEP_THREADS = 4
RANKS = 4
ROUNDS = 100
FIRST_JOB = 1_000_000
POLL_S = 0.05
GRACE_S = 3.0  # for what was begun
BEHIND_ONE = "was due while one failed"


def _ring(rank, rounds):
    """A rank that works, sends to its right and receives from its left."""
    section = wire.Section(rank)
    send = wire.shape(wire.SEND, peer=(rank + 1) % RANKS, tag=5, size=1000)
    receive = wire.shape(wire.RECV, peer=(rank - 1) % RANKS, tag=5, size=1000)
    for _ in range(rounds):
        section.add(send, process_ns=1_000_000, call_ns=1000)
        section.add(receive, call_ns=20_000)
    return section


def step_batches():
    ranks = range(RANKS)
    begin = [wire.Record(type="process", rank=rank, world_size=RANKS, pid=100 + rank, node_index=0, slurm_procid=rank,
                         library="Open MPI v4.1.4", executable="/bin/ring", build_id="gnu:0b", init_s=0.1) for rank in ranks]
    end = []
    for rank in ranks:
        end.append(_ring(rank, ROUNDS).add(wire.shape(wire.EXIT)))
        end.append(wire.Record(type="stats", rank=rank, elapsed_s=0.21, calls=[[1, 2 * ROUNDS, 0.004]], capture_s=0.001))
        end.append(wire.Record(type="process_end", rank=rank, how="finalized", elapsed_s=0.21))
    end.append(wire.Record(type="relay", node_index=0, cpu_s=0.01, bytes_sent=1, processes=RANKS))
    return [wire.batch(begin + [_ring(rank, ROUNDS) for rank in ranks], 1), wire.batch(end, 2)]


class Honest:
    """`people` and `relays`: addresses of lbfd for people's tools and for relays."""

    def __init__(self, people, relays, munge_socket, seconds, first_job=FIRST_JOB):
        self.people, self.relays, self.munge_socket = people, relays, munge_socket
        self.began = time.monotonic() + 0.2
        self.until = self.began + seconds
        self.first_job = first_job
        self.lock = threading.Lock()
        self.requests, self.predictions, self.failures = [], [], {}
        self.begun = self.whole = 0
        self.submit = None
        self.batches = [(body, wire.crc32c(body)) for body in step_batches()]

    def note(self, latency_s, failure=None):
        with self.lock:
            self.requests.append(math.inf if failure else latency_s)
            if failure:
                self.failures[failure] = self.failures.get(failure, 0) + 1

    def timed(self, user, method, target, body=b"", crc=None, since=None):
        """The answer's body; None: a failure."""
        began = time.monotonic() if since is None else since
        failure, out = None, b""
        try:
            status, out = user.ask(method, target, body, self.until + GRACE_S, crc)
            if status != 200:
                failure = f"{method}: {status} {out[:160].decode(errors='replace')}"
        except Exception as error:  # pylint: disable=broad-exception-caught
            failure = f"{method}: no answer" if isinstance(error, TimeoutError) else f"{method}: {error!r}"
        self.note(time.monotonic() - began, failure)
        return None if failure else out

    def look(self, target, munge_socket):
        """People's tools: a connection for each request."""
        user = client.User(self.people, munge_socket, keep="one request")
        due = self.began
        while due < self.until:
            time.sleep(max(due - time.monotonic(), 0))
            answer = self.timed(user, "GET", target, since=due)
            due += PERIOD_S
            while due < min(time.monotonic(), self.until):
                self.note(time.monotonic() - due, None if answer is not None else BEHIND_ONE)
                due += PERIOD_S

    def run_steps(self, number):
        due = self.began + number * PERIOD_S
        job = self.first_job + number
        while due < self.until:
            time.sleep(max(due - time.monotonic(), 0))
            self.run_step(job)
            job += STEP_THREADS
            due = max(due + STEP_THREADS * PERIOD_S, time.monotonic())

    def run_step(self, job):
        with self.lock:
            self.begun += 1
        relay = client.User(self.relays, self.munge_socket)
        path = client.step_path(job, self.submit)
        more = {"submit": self.submit} if self.submit else {}
        description = client.description(job, RANKS, task_ids=list(range(RANKS)), **more)
        try:
            if self.timed(relay, "PUT", path + "/streams/0", description) is None:
                return
            for number, (body, crc) in enumerate(self.batches, 1):
                if self.timed(relay, "POST", f"{path}/streams/0/batches/{number}", body, crc) is None:
                    return
            end = json.dumps({"last_sequence": len(self.batches)}).encode()
            if self.timed(relay, "POST", path + "/streams/0/end", end) is None:
                return
            ended = time.monotonic()
            while time.monotonic() < self.until + GRACE_S:
                answer = self.timed(relay, "GET", path)
                if answer is None:
                    return
                step = json.loads(answer)
                if step["state"] != "running":
                    self.take(step, time.monotonic() - ended)
                    return
                time.sleep(POLL_S)
        finally:
            relay.close()

    def take(self, step, waited_s):
        with self.lock:
            self.predictions.append(waited_s)
            if step["state"] == "complete" and step["predictions"] and step["predictions"][0]["predicted_s"]:
                self.whole += 1
            else:
                why = f"step: {step['state']}: {step['why_partial']}"
                self.failures[why] = self.failures.get(why, 0) + 1

    def cut_short(self, over):
        """Ends soon after the event `over`."""
        over.wait()
        self.until = min(self.until, time.monotonic() + 0.5)

    def find_out_keys(self):
        """Whether keys have the job's submit time: an lbfd without it knows no such parameter."""
        status, _ = client.User(self.people, self.munge_socket).ask("GET", "/v1/steps?submit=1", until=self.until)
        self.submit = int(time.time()) if status == 200 else None

    def run(self, over):
        self.find_out_keys()
        threading.Thread(target=self.cut_short, args=(over,), daemon=True).start()
        looks = (("/v1/health", None), ("/v1/steps?summary=1&limit=20", self.munge_socket))
        threads = [threading.Thread(target=self.look, args=look, daemon=True) for look in looks]
        threads += [threading.Thread(target=self.run_steps, args=(n,), daemon=True) for n in range(STEP_THREADS)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) and time.monotonic() < self.until + GRACE_S + 1:
            time.sleep(0.02)
        with self.lock:
            return {"requests": list(self.requests), "predictions": list(self.predictions), "begun": self.begun,
                    "whole": self.whole, "failures": dict(self.failures)}
