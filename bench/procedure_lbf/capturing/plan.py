"""Programs, the versions that are run, and the order of the runs."""

import random
from typing import NamedTuple

NODES = 2  # of one pinned core each
LINKS = {"unshaped": "none"}  # for `cluster shape`
NETWORK = "unshaped"


class Modification(NamedTuple):
    """A version of a program in which a procedure was really moved; its name is the program's argument."""
    procedure: str
    to: str  # lbf-whatif --to


PROGRAMS = {
    "spa": (Modification("servBusy1", "receiver"), Modification("servBusy2", "receiver")),
    "reader": (Modification("decode", "sender"),),
    "pipeline": (Modification("transform", "receiver"),),
    "exchange": (Modification("pack", "receiver"),),
}
# SPA is a server and three clients (TR Sec. 3.2). With two processes each has a processor of its own, as TR's had.
CASES = (("spa", 4), ("reader", 4), ("reader", 2), ("pipeline", 4), ("pipeline", 2), ("exchange", 4), ("exchange", 2))
ORIGINAL, CAPTURED = "original", "captured"
GUESS_S = 3.0
START_S = 1.2  # what srun adds to a run


class Run(NamedTuple):
    program: str
    ranks: int
    version: str  # ORIGINAL, CAPTURED (the original, with --lbf-procedures), or a modification's procedure
    repeat: int

    @property
    def id(self):
        return f"{self.program}-{self.ranks}-{self.version}-{self.repeat}"


def node_of_rank(ranks):
    """As srun --distribution=cyclic lays them out: partners of a message are on different nodes, so that moving between
    them moves between processors."""
    return [rank % NODES for rank in range(ranks)]


def all_cases(programs):
    return [(program, ranks) for program, ranks in CASES if program in programs]


def all_runs(cases, repeats, seed):
    """Round by round every version of every case once, the versions of a case next to each other: what drifts on the machine
    hits what is compared alike. The orders are random ones that `seed` fixes."""
    runs = []
    for repeat in range(repeats):
        shuffle = random.Random(f"{seed} {repeat}")
        for program, ranks in shuffle.sample(cases, len(cases)):
            versions = [ORIGINAL, CAPTURED, *(one.procedure for one in PROGRAMS[program])]
            runs += [Run(program, ranks, version, repeat) for version in shuffle.sample(versions, len(versions))]
    return runs
