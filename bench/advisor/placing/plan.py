"""Programs, the links that they run on, and every placement that is feasible for each."""

import random
from typing import NamedTuple

RANKS = 8
# Name: the link between the nodes (as in bench/accuracy/driver/plan.py), and what it is an example of.
PROGRAMS = {
    "master": ("unshaped", "unbalanced master and workers"),
    "stencil": ("100mbit", "stencil, numbered so that no distribution suits a slow link"),
    "alltoall": ("100mbit", "all-to-all, bound by bandwidth"),
    "independent": ("unshaped", "embarrassingly parallel"),
}
LINKS = {"unshaped": "none", "100mbit": "100mbit"}
RANDOM_MAPPINGS = 2
START_S = 1.2  # what srun adds to a run
GUESS_S = {"S": 0.8, "W": 2.5, "A": 6.0}


class Placement(NamedTuple):
    """Which rank is on which node. `name`: block, cyclic, plane=K, computed or random-I, behind the number of nodes."""
    name: str
    nodes: tuple  # of each rank, by number, in the order of their first ranks

    @property
    def count(self):
        return max(self.nodes) + 1


class Run(NamedTuple):
    program: str
    placement: str  # its name
    repeat: int

    @property
    def id(self):
        return f"{self.program} {self.placement} {self.repeat}"


def in_order(nodes):
    """The same mapping with nodes numbered by their first ranks: alike nodes have no names."""
    numbers = {}
    return tuple(numbers.setdefault(node, len(numbers)) for node in nodes)


def placed(placement, ranks, count):
    """As srun lays ranks out on nodes that are alike; None: a node would get none."""
    if placement == "block":
        nodes = [rank * count // ranks for rank in range(ranks)]
    elif placement == "cyclic":
        nodes = [rank % count for rank in range(ranks)]
    else:
        size = int(placement.removeprefix("plane="))
        nodes = [rank // size % count for rank in range(ranks)]
    return in_order(nodes) if len(set(nodes)) == count else None


def name_of(kind, count):
    nodes = f"{count} node{'s' if count > 1 else ''}"
    return nodes if count == 1 else f"{nodes}, {kind}"


def all_placements(nodes_available, advice, seed, ranks=RANKS):
    """Every distribution on every node count that divides the ranks, every mapping that the advisor computed, and some at
    random: what the advisor does not look at, either. No two alike."""
    found = {}

    def add(kind, nodes):
        if nodes is not None and nodes not in found:
            found[nodes] = Placement(name_of(kind, max(nodes) + 1), nodes)

    for count in range(1, nodes_available + 1):
        if ranks % count:
            continue
        kinds = ["block", "cyclic"]
        size = 2
        while size < ranks // count:
            kinds.append(f"plane={size}")
            size *= 2
        for kind in kinds:
            add(kind, placed(kind, ranks, count))
    for number, candidate in enumerate(one for one in advice["candidates"] if one.get("hosts")):
        add(f"computed {chr(ord('A') + number)}", in_order(candidate["hosts"]))
    # On a node count that does not divide the ranks, for example.
    add("first choice", advised_nodes(advice))
    shuffle = random.Random(seed)
    for number in range(RANDOM_MAPPINGS if nodes_available > 1 else 0):
        nodes = list(placed("block", ranks, nodes_available))
        shuffle.shuffle(nodes)
        add(f"random {number + 1}", in_order(nodes))
    return list(found.values())


def ran(nodes_available, ranks=RANKS):
    """What is captured: blocks on all nodes, as a user types it who thinks that more nodes are faster."""
    return Placement(name_of("block", nodes_available), placed("block", ranks, nodes_available))


def advised_nodes(advice):
    """The mapping of the first choice; what ran, where nothing is advised."""
    if advice["advice"] is None:
        return None
    candidate = advice["candidates"][advice["advice"]["candidate"]]
    if candidate.get("hosts"):
        return in_order(candidate["hosts"])
    return placed(candidate["placement"], RANKS, candidate["nodes"])


def all_runs(placements, repeats, seed):
    """Round by round every placement of every program once; programs and placements of a round in a random order."""
    runs = []
    for repeat in range(repeats):
        shuffle = random.Random(f"{seed} {repeat}")
        for program in shuffle.sample(list(placements), len(placements)):
            names = [placement.name for placement in placements[program]]
            runs += [Run(program, name, repeat) for name in shuffle.sample(names, len(names))]
    return runs
