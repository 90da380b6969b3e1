"""What is run: programs, skeletons of them, and the paper's five sharing scenarios (SKEL Sec. 5.3)."""

from typing import NamedTuple

RANKS = 4                           # one on each of four nodes, as in the paper
DEDICATED_RATE = "100mbit"          # of every link where nothing is shared
LIMITED_RATE = "10mbit"
TIMES_S = (10.0, 5.0, 2.0, 1.0, 0.5)
START_S = 1.5                       # what srun adds to a run
# A skeleton that takes more than this share of its application is no skeleton.
LARGEST_SHARE = 0.5


class Scenario(NamedTuple):
    name: str
    text: str
    busy: tuple     # nodes with a competing process
    limited: tuple  # nodes whose link is limited
    slowdown: float  # a guess, for the first estimate only


ALL = tuple(range(1, RANKS + 1))
DEDICATED = Scenario("dedicated", "nothing shared", (), (), 1.0)
SCENARIOS = (Scenario("cpu-one", "one node busy", (1,), (), 1.6),
             Scenario("cpu-all", "every node busy", ALL, (), 2.0),
             Scenario("link-one", "one link 10 Mbit/s", (), (2,), 6.0),
             Scenario("link-all", "every link 10 Mbit/s", (), ALL, 8.0),
             Scenario("both", "one node busy, one link 10 Mbit/s", (1,), (2,), 7.0))
FIGURE_7 = "both"


class Program(NamedTuple):
    """`large`, `small`: the command's words for the run that is predicted, and for a small input (Fig. 7; none: it has none)."""
    name: str
    large: tuple
    small: tuple
    guess_s: float
    hpcc_sizes: tuple = ()  # HPL's N, PTRANS's N

    @property
    def inputs(self):
        return ("app", "small") if self.small else ("app",)


def all_programs(program_dir, examples):
    def own(name, size, guess_s, long="", repeats=()):
        path = f"{program_dir}/{name}"
        return Program(name + long, (path, size, *repeats), (path, "S"), guess_s)

    liquid = ("lmp", "-in", f"{examples}/lammps/in.liquid", "-log", "none", "-screen", "none", "-var")
    return {program.name: program for program in (
        own("mg", "W", 7.0), own("ft", "W", 5.0), own("is", "W", 2.5), own("ep", "A", 3.5), own("spa", "A", 6.0),
        own("tsp", "A", 8.0),
        # Long enough for skeletons of 10 and 5 s; guesses, not measured.
        own("ep", "A", 24.0, "-long", ("8",)), own("spa", "A", 25.0, "-long", ("3",)),
        own("mg", "A", 40.0, "-long"), own("ft", "A", 40.0, "-long"), own("is", "A", 25.0, "-long"),
        Program("lammps-long", (*liquid, "steps", "400", "-var", "cells", "20"), (*liquid, "steps", "20", "-var", "cells", "8"), 26.0),
        Program("lammps", (*liquid, "steps", "250", "-var", "cells", "20"), (*liquid, "steps", "20", "-var", "cells", "8"), 6.0),
        # No small input: nearly all of its time it measures latency and bandwidth, whatever the sizes of the others.
        Program("hpcc", ("hpcc",), (), 135.0, (800, 400)))}


NAMES = ("is", "ft", "ep", "spa", "tsp", "lammps", "mg", "ep-long", "spa-long", "lammps-long", "is-long", "ft-long", "mg-long", "hpcc")


class Run(NamedTuple):
    program: str
    scenario: str
    what: str     # "app", "small", or "skeleton-5" of seconds
    repeat: int

    @property
    def id(self):
        return f"{self.program}/{self.scenario}/{self.what}/{self.repeat}"


def what_of(time_s):
    return f"skeleton-{time_s:g}"


def runs_of(program, scenario, times_s, repeats):
    """Round by round the application, its small input and its skeletons, side by side."""
    return [Run(program.name, scenario, what, repeat) for repeat in range(repeats)
            for what in (*program.inputs, *map(what_of, times_s))]
