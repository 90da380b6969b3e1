"""OpenMetrics 1.0, text format, read strictly: what its ABNF and its MUSTs refuse is an error here.

https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md
"""

import re

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r"([a-zA-Z_][a-zA-Z0-9_]*)=\"((?:[^\"\\\n]|\\[\"\\n])*)\""
NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?[Ii]nf(?:inity)?|[Nn]a[Nn]"
SAMPLE = re.compile(rf"({NAME})(?:\{{(|{LABEL}(?:,{LABEL})*)\}})? ({NUMBER})(?: ({NUMBER}))?")
# What samples of a type add to the family's name; types that lbfd has no use for are not read.
SUFFIXES = {"gauge": ("",), "counter": ("_total", "_created"), "info": ("_info",), "unknown": ("",)}


class Family:
    def __init__(self, name):
        self.name = name
        self.type = None
        self.unit = ""
        self.help = None
        self.samples = {}  # (name, ((label, value), ...)): number


def parse(text):
    """{name: Family}. ValueError, with the line, where the text is not OpenMetrics."""
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    if not text.endswith("# EOF\n"):
        raise ValueError("the last line is not # EOF with a line end")
    lines = text.split("\n")[:-2]
    families, current = {}, None
    for number, line in enumerate(lines, 1):
        def wrong(what):
            return ValueError(f"line {number}: {what}: {line!r}")  # noqa: B023
        meta = re.fullmatch(rf"# (TYPE|UNIT|HELP) ({NAME})(?: (.*))?", line)
        if meta:
            kind, name, rest = meta[1], meta[2], meta[3] or ""
            if current is None or current.name != name:
                if name in families:
                    raise wrong("the family stands in two places")
                current = families[name] = Family(name)
            if current.samples:
                raise wrong("metadata after samples")
            if kind == "TYPE":
                if current.type is not None or rest not in SUFFIXES:
                    raise wrong("a second or unknown type")
                current.type = rest
            elif kind == "UNIT":
                if current.unit or not rest or not name.endswith("_" + rest):
                    raise wrong("the name does not end in the unit")
                current.unit = rest
            else:
                if current.help is not None or re.search(r"\\(?![\\n\"])", rest):
                    raise wrong("a second help, or a broken escape in it")
                current.help = rest
            continue
        sample = SAMPLE.fullmatch(line)
        if not sample:
            raise wrong("neither metadata nor a sample")
        name, labels, value = sample[1], sample[2] or "", float(sample[7])
        if current is None or name not in [current.name + suffix for suffix in SUFFIXES[current.type or "unknown"]]:
            raise wrong("the sample is not of the family above it")
        pairs = tuple(sorted(re.findall(LABEL, labels)))
        if len({label for label, _ in pairs}) != len(pairs):
            raise wrong("a label stands there twice")
        if (name, pairs) in current.samples:
            raise wrong("the sample stands there twice")
        if current.type == "counter" and not value >= 0:
            raise wrong("a counter below 0")
        if current.type == "info" and (value != 1 or current.unit):
            raise wrong("an info is 1, without a unit")
        current.samples[name, pairs] = value
    for family in families.values():
        if family.type is None or not family.help or not family.samples:
            raise ValueError(f"{family.name}: type, help or samples are missing")
    clash = [a for a in families for b in families for s in SUFFIXES[families[b].type] if s and a == b + s]
    if clash:
        raise ValueError(f"{clash}: the name of a family is that of another one's sample")
    return families


def value(families, sample, **labels):
    """The number of a sample, by its full name."""
    for family in families.values():
        if (sample, tuple(sorted(labels.items()))) in family.samples:
            return family.samples[sample, tuple(sorted(labels.items()))]
    raise KeyError(f"{sample} {labels}")


def sample_names(families):
    return {name for family in families.values() for name, _ in family.samples}


def as_text_format(exposition):
    """The same in Prometheus' older text format (0.0.4), which promtool reads: there a counter's family is its sample."""
    counters = re.findall(r"^# TYPE (\S+) counter$", exposition, re.M)
    infos = re.findall(r"^# TYPE (\S+) info$", exposition, re.M)
    out = []
    for line in exposition.split("\n"):
        words = line.split(" ", 3)
        if line == "# EOF" or line.startswith("# UNIT"):
            continue
        if line.startswith("# ") and words[2] in counters:
            line = line.replace(words[2], words[2] + "_total", 1)
        if line.startswith("# ") and words[2] in infos:
            line = line.replace(words[2], words[2] + "_info", 1).replace(" info", " gauge")
        out.append(line)
    return "\n".join(out)
