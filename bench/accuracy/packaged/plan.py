"""What is run: programs in configurations, N ranks on M nodes of P processors, on networks."""

import random
from typing import NamedTuple

# Rates for `cluster shape`; the first is the link as it is.
NETWORKS = {"unshaped": "none", "1gbit": "1gbit", "100mbit": "100mbit"}
QUICK = ("liquid", "pw", "cavity")
CALM_PERCENT = 5   # the bare runs around a captured one differ by at most so much
BARE, CAPTURED = ("bare-1", "bare-2"), "captured"
PARTS = (BARE[0], CAPTURED, BARE[1])
GUESS_S = 6.0
START_S = 2.0      # what srun, and lbfd after a captured run, add


class Case(NamedTuple):
    """On one node no message uses the network: such a case is on the first network only."""
    program: str
    ranks: int
    nodes: int
    processors: int  # of a node
    network: str

    @property
    def kind(self):
        return "dedicated" if self.ranks <= self.nodes * self.processors else "oversubscribed"

    @property
    def where(self):
        network = f" {self.network}" if self.nodes > 1 else ""
        return f"{self.ranks} on {self.nodes}x{self.processors}{network}"

    def __str__(self):
        return f"{self.program} {self.where}"

    @property
    def id(self):
        return f"{self.program}-{self.ranks}-{self.nodes}x{self.processors}-{self.network}"


def cases_of(program, is_quick=False):
    """Dedicated: a rank has its processor. Oversubscribed: a node has one processor (the papers' experiment). A prediction is for
    another case of as many ranks."""
    def on(ranks, nodes, processors, *networks):
        return [Case(program, ranks, nodes, processors, network) for network in networks]

    if is_quick:
        return [*on(2, 1, 2, "unshaped"), *on(2, 2, 1, "unshaped", "100mbit"), *on(4, 1, 1, "unshaped"), *on(4, 2, 1, "unshaped")]
    return [*on(2, 1, 2, "unshaped"), *on(2, 2, 1, *NETWORKS), *on(4, 1, 1, "unshaped"), *on(4, 2, 1, "unshaped", "100mbit"),
            *on(8, 2, 1, "unshaped", "100mbit")]


def in_order(cases, number, seed):
    """In a random order that `seed` and the round fix: what drifts on the machine hits all alike."""
    return random.Random(f"{seed} {number}").sample(cases, len(cases))
