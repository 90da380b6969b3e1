"""What bench/cost/run runs, in its order."""

import dataclasses
import os
import random
import re

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
PARTS = ("overhead", "storms", "coverage", "search")
OPEN = 100.0  # a limit that nothing reaches: the capture is open all the time
LIMIT = 2.0   # the default
STORM_LIMITS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
STORM_S = 6.0
SILENT_S = 4.0
COVERAGE_S = 4.0  # storms; programs with windows take twice as long

PAIRS = 9      # of each program in Figs. 1 and 2: the second to the eighth of nine are a 96 % interval of their median
MORE_PAIRS = 8  # of storms under limits whose cost is below what two runs differ by, or that have single runs that are far off
MORE_OF = {"ping-pong": (0.1,), "all-to-all": (2.0, 10.0), "4 threads": (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)}

# The search: 8 ranks, so many calls a second and rank; a replay of all of a run takes a small part of the limit of 2 %, all
# hypotheses more than it.
SEARCH_RANKS = 8
SEARCH_S = 4.0  # on a processor of its own
SEARCH_CALLS_PER_S = (2000, 4000, 8000, 16000)

CLUSTER = """lbf_cluster = 1
[[node]]
name = "n[1-16]"
cores_per_socket = 4
"""


@dataclasses.dataclass
class Job:
    id: str
    part: str
    case: str
    words: list
    limit: float | None = None  # None: bare (a search: of a recorded run)
    ranks: int = 2
    data: str = ""
    keep: bool = False  # the data: later runs have them as their history, or search in them
    files: dict = dataclasses.field(default_factory=dict)
    guess_s: float = 4.0
    budget_share: float = 0.0  # a search: of the program's processor time; 0: no limit


def hpcc_input():
    """Debian's example, small enough for some seconds on two ranks."""
    text = open("/usr/share/doc/hpcc/examples/_hpccinf.txt", encoding="utf-8").read() \
        if os.path.exists("/usr/share/doc/hpcc/examples/_hpccinf.txt") else None
    if text is None:
        return HPCC_INPUT
    text = re.sub(r"^\d+(\s+Ns)", r"2500\1", text, flags=re.M)
    text = re.sub(r"^\d+(\s+Ps)", r"1\1", text, flags=re.M)
    return re.sub(r"^\d+(\s+Qs)", r"2\1", text, flags=re.M)


HPCC_INPUT = """HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
2500         Ns
1            # of NBs
80           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0                               Number of additional problem sizes for PTRANS
1200 10000 30000                values of N
0                               number of additional blocking sizes for PTRANS
40 9 8 13 13 20 16 32 64        values of NB
"""


def programs(options):
    """Name -> (words, files) of the programs whose overhead is timed."""
    accuracy = os.path.join(options.build, "bench/accuracy")
    found = {"start": ([os.path.join(options.build, "bench/cost/start")], {})}
    found |= {name: ([os.path.join(accuracy, name), size], {}) for name, size in (("is", "A"), ("mg", "A"), ("ft", "A"), ("spa", "W"))}
    lammps = ["lmp", "-in", "in.cost", "-log", "none", "-screen", "none", "-var", "steps", "150", "-var", "cells", "16"]
    with open(os.path.join(ROOT, "examples/lammps/in.liquid"), encoding="utf-8") as file:
        text = re.sub(r"^processors .*$", "processors 2 1 1", file.read(), flags=re.M)
    found["lammps"] = (lammps, {"in.cost": text})
    found["hpcc"] = (["hpcc"], {"hpccinf.txt": hpcc_input()})
    if options.quick:
        found = {name: found[name] for name in ("start", "lammps")}
    return found


def overhead_jobs(options):
    pairs = 1 if options.quick else PAIRS
    for pair in range(pairs):
        for name, (words, files) in programs(options).items():
            both = [Job(f"overhead.{name}.bare.{pair}", "overhead", name, words, files=files),
                    Job(f"overhead.{name}.captured.{pair}", "overhead", name, words, LIMIT, data=f"overhead-{name}", keep=True,
                        files=files, guess_s=6)]
            yield from both if pair % 2 == 0 else reversed(both)


def storm_kinds(options):
    storm = os.path.join(options.build, "bench/cost/storm")
    kinds = {"ping-pong": [storm, "pingpong", f"{STORM_S}"], "all-to-all": [storm, "alltoall", f"{STORM_S}"],
             "communicators": [storm, "comms", f"{STORM_S}"], "used communicators": [storm, "used", f"{STORM_S}"],
             "4 threads": [storm, "threads", f"{STORM_S}"],  # of each of two ranks, each with messages to itself
             "silence, then ping-pong": [storm, "pingpong", f"{STORM_S + SILENT_S}", f"{SILENT_S}"]}
    if options.quick:
        kinds.pop("all-to-all")
    return kinds


def storm_jobs(options):
    repeats = 1 if options.quick else 2
    limits = (0.5, 2.0) if options.quick else STORM_LIMITS
    shuffled = random.Random(1)
    for repeat in range(repeats):
        for kind, words in storm_kinds(options).items():
            last_s = float(words[2])
            round_of = [Job(f"storms.{kind}.bare{n}.{repeat}", "storms", kind, words, guess_s=last_s + 1) for n in range(2)]
            round_of += [Job(f"storms.{kind}.{limit:g}.{repeat}", "storms", kind, words, limit, data=f"storm-{kind}-{limit:g}-{repeat}",
                             guess_s=last_s + 3) for limit in limits]
            shuffled.shuffle(round_of)
            yield from round_of
    for more in range(0 if options.quick else MORE_PAIRS):
        for kind, lowest in MORE_OF.items():
            words, number = storm_kinds(options)[kind], repeats + more
            round_of = [Job(f"storms.{kind}.bare0.{number}", "storms", kind, words, guess_s=STORM_S + 1)]
            round_of += [Job(f"storms.{kind}.{limit:g}.{number}", "storms", kind, words, limit, data=f"storm-{kind}-{limit:g}-{number}",
                             guess_s=STORM_S + 3) for limit in lowest]
            yield from round_of if more % 2 == 0 else reversed(round_of)


def coverage_jobs(options):
    """Each case once limited and once fully open; 20 in all."""
    phases, storm = (os.path.join(options.build, "bench/cost", name) for name in ("phases", "storm"))
    cases = [(f"phases {seed}", [phases, str(seed), f"{2 * COVERAGE_S}", "200000"], limit)
             for seed, limit in zip(range(1, 13), (0.5, 1.0, 2.0, 0.5, 1.0, 2.0) * 2)]
    cases += [(f"ping-pong {n}", [storm, "pingpong", f"{COVERAGE_S}"], limit)
              for n, limit in enumerate((0.5, 1.0, 2.0, 5.0), start=1)]
    cases += [(f"all-to-all {n}", [storm, "alltoall", f"{COVERAGE_S}"], limit)
              for n, limit in enumerate((0.5, 1.0, 2.0, 5.0), start=1)]
    if options.quick:
        cases = [cases[0], cases[13]]
    for case, words, limit in cases:
        both = [Job(f"coverage.{case}.limited", "coverage", case, words, limit, data=f"coverage-{case}-limited", guess_s=9),
                Job(f"coverage.{case}.open", "coverage", case, words, OPEN, data=f"coverage-{case}-open", guess_s=10)]
        yield from both


def search_jobs(options):
    phases = os.path.join(options.build, "bench/cost/phases")
    for seed, calls_per_s in enumerate(SEARCH_CALLS_PER_S[-1:] if options.quick else SEARCH_CALLS_PER_S, start=1):
        name = f"phases {calls_per_s}"
        seconds = SEARCH_S / 8 if options.quick else SEARCH_S
        yield Job(f"search.{name}.recorded", "search", name, [phases, str(seed), f"{seconds:g}", str(calls_per_s)], OPEN,
                  ranks=SEARCH_RANKS, data=f"search-{name}", keep=True, guess_s=seconds * SEARCH_RANKS / 2 + 15)
        networks = ["--network", "nominal-1gbe,nominal-10gbe,nominal-100gbe"]
        for policy, words, share in (("limit", networks, LIMIT / 100), ("fixed", ["--nodes", "4,8", "--placement", "block,cyclic"], 0.0),
                                     ("unlimited", networks, 0.0)):
            yield Job(f"search.{name}.{policy}", "search", name, words, data=f"search-{name}", budget_share=share, guess_s=6)


def plan(options):
    makers = {"overhead": overhead_jobs, "storms": storm_jobs, "coverage": coverage_jobs, "search": search_jobs}
    jobs = [job for part in options.parts for job in makers[part](options)]
    return [job for job in jobs if re.search(options.cases, job.case)]
