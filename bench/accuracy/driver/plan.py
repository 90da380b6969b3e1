"""What is run: programs in configurations N/M (N processes on M nodes, as the papers write it) on networks."""

import random
from typing import NamedTuple

PROGRAMS = ("spa", "tsp", "ep", "ft", "is", "mg")  # in the papers' order
# Rates for `cluster shape`; the first is the link as it is.
NETWORKS = {"unshaped": "none", "100mbit": "100mbit", "10mbit": "10mbit"}
PAPER_NODES = 16
# Roughly how long a run of size W takes on two nodes, for the first estimate only.
GUESS_S = {"unshaped": 3.0, "100mbit": 6.0, "10mbit": 30.0}
START_S = 1.0  # what srun adds to a run


class Case(NamedTuple):
    """A program in one configuration. On one node no message uses the network: such a case is on `unshaped` only."""
    program: str
    ranks: int
    nodes: int
    network: str

    def __str__(self):
        network = f" {self.network}" if self.nodes > 1 else ""
        return f"{self.program} {self.ranks}/{self.nodes}{network}"


class Run(NamedTuple):
    case: Case
    captured: bool
    repeat: int

    @property
    def id(self):
        kind = "captured" if self.captured else "bare"
        case = self.case
        return f"{case.program}-{case.ranks}-{case.nodes}-{case.network}-{kind}-{self.repeat}"


def node_counts(ranks, nodes_available):
    """1, 2, 4 ... nodes, as many as there are, each with the same number of ranks."""
    counts, count = [], 1
    while count <= min(ranks, nodes_available):
        if ranks % count == 0:
            counts.append(count)
        count *= 2
    return counts


def all_cases(programs, ranks_list, nodes_available, networks):
    cases = []
    for program in programs:
        for ranks in ranks_list:
            for nodes in node_counts(ranks, nodes_available):
                for network in networks if nodes > 1 else networks[:1]:
                    cases.append(Case(program, ranks, nodes, network))
    return cases


def all_runs(cases, repeats, seed):
    """Round by round every case once bare and once captured, next to each other, all in a random order that `seed` fixes.

    So what drifts on the machine hits all cases, and both kinds, alike; and after an interruption whole rounds are there.
    """
    runs = []
    for repeat in range(repeats):
        shuffle = random.Random(f"{seed} {repeat}")
        for case in shuffle.sample(cases, len(cases)):
            first_captured = shuffle.random() < 0.5
            runs += [Run(case, first_captured, repeat), Run(case, not first_captured, repeat)]
    return runs
