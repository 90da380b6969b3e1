"""What Eom & Hollingsworth measured and predicted (IEEE TSE, Figs. 7, 9, 10): seconds, IBM SP-2, PVM.

Their figures print measured minus predicted; here, as everywhere in lbf, an error is predicted minus measured.
"""

from typing import NamedTuple


class Prediction(NamedTuple):
    figure: str
    program: str
    target: str
    actual: str
    measured_s: float
    predicted_s: float

    @property
    def error_percent(self):
        return 100 * (self.predicted_s - self.measured_s) / self.measured_s


def _figure_7():
    for program, target, measured, actuals, predicted in (
            ("spa", "4/4", 158.7, ("4/4", "4/2", "4/1"), (159.0, 158.2, 158.5)),
            ("spa", "4/1", 240.2, ("4/4", "4/2", "4/1"), (235.5, 235.1, 236.2)),
            ("tsp", "4/4", 85.6, ("4/4", "4/2", "4/1"), (85.5, 85.8, 85.9)),
            ("tsp", "4/1", 199.2, ("4/4", "4/2", "4/1"), (197.1, 197.7, 198.9)),
            ("ep", "16/16", 258.2, ("16/16", "16/8", "16/4"), (255.6, 260.7, 267.4)),
            ("ft", "16/16", 140.9, ("16/16", "16/8", "16/4"), (139.2, 140.0, 144.0)),
            ("is", "16/16", 271.2, ("16/16", "16/8", "16/4"), (253.3, 254.7, 255.0)),
            ("mg", "16/16", 172.8, ("16/16", "16/8", "16/4"), (166.0, 168.5, 186.7))):
        for actual, seconds in zip(actuals, predicted):
            yield Prediction("Fig. 7", program, target, actual, measured, seconds)


NODES = list(_figure_7())
NETWORK = [Prediction("Fig. 9", *row) for row in (
    ("ep", "16/16 HPS", "16/16 Ethernet", 258.2, 262.3), ("ft", "16/16 HPS", "16/16 Ethernet", 140.9, 135.3),
    ("is", "16/16 HPS", "16/16 Ethernet", 271.2, 251.1), ("mg", "16/16 HPS", "16/16 Ethernet", 172.8, 174.0))]
BOTH = [Prediction("Fig. 10", *row) for row in (
    ("ep", "16/16 HPS", "16/8 Ethernet", 258.2, 259.9), ("ft", "16/16 HPS", "16/8 Ethernet", 140.9, 136.5),
    ("is", "16/16 HPS", "16/8 Ethernet", 271.2, 254.4), ("mg", "16/16 HPS", "16/8 Ethernet", 172.8, 174.1))]
