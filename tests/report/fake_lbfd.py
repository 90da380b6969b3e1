"""An lbfd that answers what a test tells it to, and remembers what it was asked."""

import http.server
import json
import math
import os
import subprocess
import threading
import urllib.parse

BUILD = os.environ["LBF_BUILD_DIR"]
ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
TOKEN = "0123456789abcdef" * 4


def command(name):
    return os.path.join(BUILD, "bin", name)


def as_rows(steps, keys):
    """ROWS of docs/formats/http-v1.md: of whole STEPs."""
    def value(of, key):
        for name in key.split("."):
            of = (of or {}).get(name)
        return of

    of_step = [key for key in keys if not key.startswith("predictions.")]
    of_prediction = [key.removeprefix("predictions.") for key in keys if key.startswith("predictions.")]
    rows = []
    for one in steps:
        row = [value(one, key) for key in of_step]
        if of_prediction:
            row.append([[value(of, key) for key in of_prediction] for of in one.get("predictions", [])])
        rows.append(row)
    return {"keys": of_step, "prediction_keys": of_prediction, "rows": rows}


class FakeLbfd:
    """answers: function (path, query) -> (status, object)."""

    def __init__(self, answers):
        self.asked = []
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                query = {k: v[0] for k, v in urllib.parse.parse_qs(url.query, keep_blank_values=True).items()}
                if url.path != "/v1/health":  # asked before each table, for the clusters
                    fake.asked.append((url.path, query))
                status, body = answers(url.path, query)
                if "rows" in query and "steps" in body:
                    body = as_rows(body["steps"], query["rows"].split(","))
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def run(self, name, *arguments, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("LBF_", "SLURM", "NO_COLOR", "COLUMNS"))}
        environment.update(LBF_SERVER=f"http://127.0.0.1:{self.server.server_address[1]}", LBF_TOKEN=TOKEN, TZ="UTC",
                           LC_ALL="C.UTF-8", SLURM_CONF="/nonexistent")  # no Slurm of this machine
        environment.update(variables)
        return subprocess.run([command(name), *arguments], env=environment, capture_output=True, text=True, timeout=60,
                              check=False)


def prediction(nodes, network, kind, seconds, **more):
    return {"target": f"{nodes} node{'s' * (nodes > 1)}, block", "nodes": nodes, "cores": 8, "placement": "block",
            "network": network, "contention": "nic", "speed": 1.0, "kind": kind, "predicted_s": seconds, "why_stuck": "",
            "speedup": 100.0 / seconds, "self_error_percent": -1.4, "partial": False, "progress_s": seconds,
            "measured_at_progress_s": 100.0, **more}


def step(job=123, number=0, **more):
    predictions = [prediction(4, "lan-1g", "self", 98.6)]
    for nodes, seconds in ((1, 230.0), (2, 130.0), (8, 88.0), (16, 95.0)):
        predictions.append(prediction(nodes, "lan-1g", "LBF", seconds))
    for nodes, seconds in ((1, 229.0), (2, 121.0), (4, 71.0), (8, 46.0), (16, 34.0)):
        predictions.append(prediction(nodes, "hdr-100", "NF" if nodes == 4 else "LBF+NF", seconds, low_s=seconds * 0.93,
                                      high_s=seconds * 1.09))
    out = {"cluster": "c", "job": job, "step": number, "restart": 0, "array_job": None, "array_task": None, "het_job": None,
           "het_offset": None, "user": "alice", "uid": 1000, "account": "physics", "partition": "main", "job_name": "melt",
           "command": ["/usr/bin/lmp", "-in", "in.melt"], "command_cut": False, "state": "complete", "why_partial": "",
           "nodes": ["node1", "node2", "node3", "node4"], "ranks": 32, "node_of_rank": [r // 8 for r in range(32)],
           "network": "lan-1g", "start": 1700000000.0, "end": 1700000100.0, "measured_s": 100.0, "events": 120345,
           "messages": 50210, "collectives": 10, "bytes_on_wire": 1536, "bytes_stored": 3 * 1024 * 1024,
           "wildcard_receives": 0, "mpi_s": 1200.0, "unmodelled_s": 3.6, "unmodelled_calls": [], "notes": ["a note"],
           "calls": [["MPI_Send", 500, 0.4]], "capture_s": 8.0, "relay_cpu_s": 1.5, "lost_events": 0,
           "cost": {"limit_percent": 2.0, "corrected_percent": 0.31, "state": "kept", "direct_s": 8.0, "windows": 0},
           "predictions": predictions}
    out.update(more)
    return out


def running_step(measured, **more):
    return step(state="running", end=None, measured_s=measured, events=int(1000 * measured), **more)


def picture(ranks=32, columns=160, **more):
    """A stencil whose neighbours are far apart in the mapping that ran."""
    def matrix(node):
        rows = [[0] * ranks for _ in range(ranks)]
        inside = between = 0
        for i in range(ranks):
            for d in (1, -1, 8, -8):
                j = (i + d) % ranks
                amount = 10 ** 6 if abs(d) == 1 else 10 ** 4
                rows[i][j] += amount
                if node(i) == node(j):
                    inside += amount
                else:
                    between += amount
        return {"first_rank": list(range(ranks)), "node": [node(i) for i in range(ranks)], "bytes": rows,
                "bytes_inside_nodes": inside, "bytes_between_nodes": between}

    def timeline(share, used):
        computing = [[int(100 * share * (0.6 + 0.4 * math.sin(c / 9 + r))) for c in range(used)] for r in range(ranks)]
        blocked = [[8 if 20 < c < 26 else 0 for c in range(used)] for _ in range(ranks)]
        return {"columns": used, "computing": computing, "blocked": blocked,
                "mpi": [[100 - x - y for x, y in zip(a, b)] for a, b in zip(computing, blocked)]}

    out = {"target": 9, "ranks": ranks, "messages": 1000, "ranks_per_row": 1, "column_s": 100.0 / columns,
           "measured": timeline(0.7, columns), "predicted": timeline(0.95, int(columns * 0.46)),
           "matrix_ran": matrix(lambda r: r // 8), "matrix_target": matrix(lambda r: r // 16), "why_partial": ""}
    out.update(more)
    return out
