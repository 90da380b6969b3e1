"""What a measurement was made with, and its dated file in bench/results (bench/results/README.md)."""

import os
import platform
import shlex
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
HELP = "write the tables into bench/results/DATE-NAME.txt"


def machine():
    """As "2 x AMD EPYC, Linux 6.18"."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}"


def commit():
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "no commit"


def facts_of(script, program=None):
    """Date, machine, versions and command of the measurement that `script` (its path from the root) makes; `program` is
    asked for its version."""
    versions = f"{commit()} checked out"
    if program:
        version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        versions = f"{version} ({versions})"
    return {"date": time.strftime("%F"), "machine": machine(), "versions": versions,
            "command": shlex.join([script, *sys.argv[1:]]).replace(ROOT + "/", "")}


def write_results(name, facts, lines, folder=os.path.join(ROOT, "bench/results")):
    """Writes bench/results/DATE-NAME.txt, of today, and returns its path. A file does not change: a second one of a day is
    DATE-NAME-2."""
    first = path = os.path.join(folder, f"{time.strftime('%F')}-{name}")
    number = 1
    while os.path.exists(path + ".txt"):
        number += 1
        path = f"{first}-{number}"
    path += ".txt"
    with open(path, "x", encoding="utf-8") as file:
        file.write(f"command: {facts['command']}\ndate:    {facts['date']}\ncommit:  {facts['versions']}\n"
                   f"machine: {facts['machine']}\n\n" + "\n".join(lines).rstrip() + "\n")
    print(f"written: {os.path.relpath(path, ROOT)}", file=sys.stderr)
    return path
