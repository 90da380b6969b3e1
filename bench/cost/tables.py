"""The tables of bench/cost/run, from its rows."""

import math
import statistics

from jobs import LIMIT, OPEN, SEARCH_CALLS_PER_S, SEARCH_RANKS, SILENT_S, STORM_LIMITS, STORM_S

FROM_S = 2.0  # the limit is promised from here on
TWO_SPEEDS = 1.2  # so far apart are a machine's two speeds, with no slice of a bare run between them ...
LEAST_SLICES = 4  # ... and so many of each


def percent(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def table(head, rows):
    return [" | ".join(["", *head, ""]).strip(), "|" + "---|" * len(head), *(" | ".join(["", *row, ""]).strip() for row in rows)]


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def spread(values):
    """Half the range around the median, in percent of it: what two runs of the same differ by."""
    return 100 * (max(values) - min(values)) / 2 / statistics.median(values) if len(values) > 1 else None


def median_interval(values):
    """The narrowest interval of order statistics that has the median of the population in it with 93 % or more; two values
    and their confidence in percent. Without any assumption about the distribution. Fewer than 5 values: nothing."""
    ordered, count = sorted(values), len(values)
    for skipped in range((count - 1) // 2, -1, -1):
        outside = 2 * sum(math.comb(count, k) for k in range(skipped + 1)) / 2**count
        if outside <= 0.07:
            return ordered[skipped], ordered[count - 1 - skipped], 100 * (1 - outside)
    return None


def cost_of(row):
    return row["step"]["cost"]


def once_s_of(row, part):
    return cost_of(row).get(f"once_{part}_s") or 0.0


def observed_s(row):
    """Processor seconds that the run is said to have cost: with C_obs_low, with C_obs_high; what was spent once among them."""
    cost = cost_of(row)
    low_s = cost["direct_s"] + (cost.get("relay_cpu_s") or 0.0) + once_s_of(row, "capture") + once_s_of(row, "relay")
    return low_s, low_s + max(cost["direct_s"] - cost["ideal_s"], 0.0)


def pairs_of(rows, case):
    """(bare, captured) of a program."""
    of_case = {row["id"].split(".", 2)[2]: row for row in rows if row["case"] == case}
    return [(of_case[f"bare.{n}"], of_case[f"captured.{n}"]) for n in range(100)
            if f"bare.{n}" in of_case and f"captured.{n}" in of_case]


def added_s_of(pairs):
    """Processor seconds that the captured run of each pair took more, the relay's among them."""
    return [c["cpu_s"] + (cost_of(c).get("relay_cpu_s") or 0) + once_s_of(c, "relay") - b["cpu_s"] for b, c in pairs]


def verdict_of(timed, interval, low, high, held_up):
    """Where the timed overhead lies, all in percent of the bare run's time."""
    if low <= timed <= high:
        return "inside"
    if interval is None:
        return "one run"
    least, most, _ = interval
    if least <= high and most >= low:
        return "inside, within the noise"
    return "inside with what was held up" if low <= most and least <= high + held_up else "outside"


def overhead(rows):
    """Figs. 1 and 2: the processor time that pairs differ by, against what was observed; Fig. 3: predicted against observed."""
    timed, forecast, confidence = [], [], None
    for case in dict.fromkeys(row["case"] for row in rows):
        pairs = pairs_of(rows, case)
        if not pairs:
            continue
        bare_s = median(b["cpu_s"] for b, _ in pairs)
        added_s = added_s_of(pairs)
        added = [100 * more_s / b["cpu_s"] for more_s, (b, _) in zip(added_s, pairs)]
        low, high = (100 * median(observed_s(c)[end] for _, c in pairs) / bare_s for end in (0, 1))
        # While the relay or lbfd has a processor its rank waits, and the other one polls.
        held_up = 100 * median((cost_of(c).get("relay_cpu_s") or 0) + (c["step"].get("lbfd_cpu_s") or 0) for _, c in pairs) / bare_s
        interval = median_interval(added)
        if interval:
            confidence = interval[2]
        once = [1e3 * (once_s_of(c, "capture") + once_s_of(c, "relay")) for _, c in pairs]
        timed.append([case, percent(bare_s), f"{percent(low)} to {percent(high)}", percent(median(once), 1), percent(median(added)),
                      f"{percent(interval[0])} to {percent(interval[1])}" if interval else "-", f"{1e3 * median(added_s):.0f}",
                      percent(spread([b["cpu_s"] for b, _ in pairs])), percent(held_up),
                      verdict_of(median(added), interval, low, high, held_up)])
        # In the order in which they ran: the first has no history.
        in_time = sorted((c for _, c in pairs), key=lambda row: row["started"])
        first, later = cost_of(in_time[0]), cost_of(in_time[-1]) if len(in_time) > 1 else {}
        forecast.append([case, percent(first.get("predicted_percent")), percent(later.get("predicted_percent")),
                         percent(median(cost_of(c).get("corrected_percent") for _, c in pairs)),
                         *(percent(median(cost_of(c).get(f"{end}_percent") for _, c in pairs)) for end in ("low", "high")),
                         percent(median(100 * (cost_of(c).get("seen_share") or 0) for _, c in pairs), 0)])
    return ["### Timed and observed overhead (Figs. 1 and 2)", "",
            f"Two ranks, limit {LIMIT:g} %, pairs of runs, bare and captured in turn. Percent of the bare run's processor time. Timed: user "
            "and system of the ranks, as the shell times them, and the relay's; the median of the pairs, and the interval of order "
            f"statistics that has it with {percent(confidence, 0)} % certainty. Observed: C_obs_low and C_obs_high with the relay, and what is "
            "spent once. Noise: half the range of the bare runs. Held up, at most: processor time of the relay and of lbfd, which runs on the "
            "same processors here: so long one rank may have polled for the other. *start* does nothing between MPI_Init and MPI_Finalize.",
            "",
            *table(["program", "bare, CPU s", "observed low to high", "of it once, ms", "timed, median", "its interval", "timed, ms", "noise",
                    "held up, at most", "timed is"], timed), "",
            "### Predicted and observed cost (Fig. 3)", "",
            "Percent of the program's processor time, of the same parts: recorded calls and the relay. Predicted before the first call, of "
            "recording every call, with no history and with that of the runs before; corrected: the same by what was seen. Observed: of what "
            "was done under the limit.", "",
            *table(["program", "predicted, no history", "predicted, history", "corrected", "observed low", "observed high", "seen"],
                   forecast), ""]


def rounds_in(row, from_s, to_s):
    """How many rounds were done between the two moments (half seconds since the start)."""
    at = {0.0: 0, **{mark[0]: mark[1] for mark in row["rounds"]}}
    latest = max((t for t in at if t <= to_s), default=0.0)
    if latest <= from_s:
        return None
    return at[latest] - at.get(from_s, 0), latest - from_s


def slowdown(rows, bare, from_s, to_s, all_s):
    """Of each row: percent by which the program took longer from FROM_S on than the bare runs of its own repeat, the storm being
    part of ALL_S seconds; and the noise of the bare runs."""
    rates = {}
    for row in bare:
        if done := rounds_in(row, from_s, to_s):
            rates.setdefault(row["id"].rsplit(".", 1)[1], []).append(done[0] / done[1])
    out = []
    for row in rows:
        done, usual = rounds_in(row, from_s, to_s), rates.get(row["id"].rsplit(".", 1)[1])
        if done and usual:
            out.append(100 * (statistics.median(usual) / (done[0] / done[1]) - 1) * done[1] / all_s)
    return out, spread([rate for of_repeat in rates.values() for rate in of_repeat])


def slices_of(row, from_s, to_s):
    """Of each half second between the two moments: rounds a second, and the bounces before and after it (ns; None: not taken)."""
    at = [mark for mark in row["rounds"] if from_s <= mark[0] <= to_s]
    return [((mark[1] - before[1]) / (mark[0] - before[0]), before[2], mark[2])
            for before, mark in zip(at, at[1:]) if mark[0] > before[0] and mark[1] > before[1]]


class Speeds:
    """A machine whose host moves its processors runs some half seconds of the same program so many times faster than others. How
    long a cache line takes from one rank's processor to the other's and back says which, whatever is captured: the widest gap
    among all bounces, bare and captured, is the border. A slice is compared with the bare slices of its speed; slices in which the speed
    changed, and those of a speed that no bare run had, are compared with nothing."""

    def __init__(self, bare, captured, from_s, to_s):
        self.from_s, self.to_s = from_s, to_s
        of_bare = [slice_ for row in bare for slice_ in slices_of(row, from_s, to_s)]
        of_all = of_bare + [slice_ for row in captured for slice_ in slices_of(row, from_s, to_s)]
        bounces = sorted(ns for _, before, after in of_all for ns in (before, after) if ns)
        self.border = None
        if len(bounces) >= 2 * LEAST_SLICES:
            at = max(range(LEAST_SLICES, len(bounces) - LEAST_SLICES + 1), key=lambda i: bounces[i] / bounces[i - 1])
            if bounces[at] / bounces[at - 1] > TWO_SPEEDS:
                self.border = (bounces[at] * bounces[at - 1]) ** 0.5
        self.rates = {}
        for slice_ in of_bare:
            self.rates.setdefault(self.speed_of(slice_), []).append(slice_[0])
        self.rates.pop(None, None)
        self.usual = {speed: statistics.median(rates) for speed, rates in self.rates.items() if len(rates) >= LEAST_SLICES}

    def are_two(self):
        return self.border is not None

    def speed_of(self, slice_):
        """0: the only or the fast one, 1: the slow one; None: it changed."""
        _, before, after = slice_
        if self.border is None or not before or not after:
            return 0 if self.border is None else None
        return int(before > self.border) if (before > self.border) == (after > self.border) else None

    def noise(self):
        """Half the range of the middle nine tenths of bare slices around the median of their speed."""
        off = sorted(100 * (self.usual[speed] / rate - 1) for speed in self.usual for rate in self.rates[speed])
        cut = len(off) // 20
        off = off[cut:len(off) - cut]
        return (off[-1] - off[0]) / 2 if len(off) > 1 else None

    def slowdown(self, rows, all_s):
        """Of each row with anything to compare: percent by which its slices took longer than bare ones of the same speed, in the
        median; and the share of all slices that were compared."""
        out, compared, slices = [], 0, 0
        for row in rows:
            of_row = slices_of(row, self.from_s, self.to_s)
            off = [100 * (self.usual[self.speed_of(slice_)] / slice_[0] - 1) for slice_ in of_row if self.speed_of(slice_) in self.usual]
            slices += len(of_row)
            compared += len(off)
            if off:
                out.append(statistics.median(off) * (self.to_s - self.from_s) / all_s)
        return out, compared / slices if slices else None


def storms(rows):
    lines = ["### Storms of calls", "",
             f"Two ranks, {STORM_S:g} s of as many calls as the machine makes, after {SILENT_S:g} s without one in the last case. Timed: "
             f"by how much rounds took longer than in the bare runs of the same repeat, from {FROM_S:g} s after the start on (median of the "
             "runs, their range in brackets; where there was silence first, in percent of all the time since then). Noise: half the range of "
             "bare runs. *Two speeds*: a cache line went from one rank's processor to the other's in two distinct times (timed by the program itself "
             "every half second, without MPI); half seconds are then compared with bare ones of the same speed (median of each run; *compared*: how "
             "many of them had one), and the noise is half the range of the middle nine tenths of bare ones. Observed: the range for the whole "
             "run. lbfd: its processor time, which is in neither, on the same processors. *4 threads*: of each rank, in MPI_THREAD_MULTIPLE, "
             "each with messages to itself on a communicator of its own.", ""]
    out = []
    for case in dict.fromkeys(row["case"] for row in rows):
        of_case = [row for row in rows if row["case"] == case]
        silent = case.startswith("silence")
        bare = [row for row in of_case if row["limit"] is None]
        end_s = STORM_S + (SILENT_S if silent else 0)
        from_s = SILENT_S if silent else FROM_S
        speeds = Speeds(bare, [row for row in of_case if row["limit"] is not None], from_s, end_s)
        for limit in STORM_LIMITS:
            runs = [row for row in of_case if row["limit"] == limit]
            if not runs or not bare:
                continue
            if speeds.are_two():
                (slower, compared), noise = speeds.slowdown(runs, end_s - FROM_S), speeds.noise()
            else:
                (slower, noise), compared = slowdown(runs, bare, from_s, end_s, end_s - FROM_S), 1
            timed = median(slower)
            selfs = [next((p for p in row["step"]["predictions"] if p["kind"] == "self"), {}) for row in runs]
            span = f"{percent(timed, 1)} ({percent(min(slower), 1)} to {percent(max(slower), 1)})" if slower else "-"
            holds = "-" if timed is None else "yes" if timed <= limit + (noise or 0) else "no"
            out.append([case + (", two speeds" if speeds.are_two() else ""), f"{limit:g}", span,
                        f"{100 * compared:.0f}" if compared is not None else "-", percent(noise, 1), holds,
                        f"{percent(median(cost_of(r).get('low_percent') for r in runs))} to "
                        f"{percent(median(cost_of(r).get('high_percent') for r in runs))}",
                        "/".join(sorted({cost_of(r).get("state", "-") for r in runs})),
                        percent(median(100 * cost_of(r)["seen_share"] for r in runs if cost_of(r).get("seen_share") is not None), 1),
                        percent(median(100 * (r["step"].get("lbfd_cpu_s") or 0) / r["cpu_s"] for r in runs), 1),
                        "/".join(sorted({r["step"]["state"] for r in runs})),
                        f"{sum(1 for p in selfs if p.get('predicted_s') and p.get('high_s'))} of {len(runs)}"])
    return lines + table(["storm", "limit, %", "timed, %", "compared, %", "noise, %", "timed <= limit + noise", "observed, %", "capture", "seen, %",
                          "lbfd, %", "step", "prediction with interval"], out) + [""]


def per_round(row, seconds):
    """Runs of a fixed time differ in what they do: predictions are compared per round."""
    return seconds / row["rounds"][-1][1] if row["rounds"] else seconds


def coverage(rows):
    by_id = {row["id"]: row for row in rows}
    out, covered, asked = [], 0, 0
    for case in dict.fromkeys(row["case"] for row in rows):
        limited, whole = by_id.get(f"coverage.{case}.limited"), by_id.get(f"coverage.{case}.open")
        if limited is None or whole is None:
            continue
        truth = {(p["target"], p["network"]): p for p in whole["step"]["predictions"]}
        # Itself, and the target that differs most.
        chosen = [p for p in limited["step"]["predictions"] if p["kind"] == "self"][:1]
        chosen += [p for p in limited["step"]["predictions"] if p["kind"] == "LBF+NF"][:1] or \
                  [p for p in limited["step"]["predictions"] if p["kind"] != "self"][:1]
        for prediction in chosen:
            real = truth.get((prediction["target"], prediction["network"]))
            if real is None or real["predicted_s"] is None or prediction["predicted_s"] is None:
                continue
            asked += 1
            wanted = per_round(whole, real["predicted_s"])
            value = per_round(limited, prediction["predicted_s"])
            low, high = prediction["low_s"], prediction["high_s"]
            # Everything was seen: a number, no interval; within what two runs differ by.
            if high is None and prediction["seen_share"] >= 0.9995:
                inside, interval = abs(value / wanted - 1) <= 0.05, "all seen"
            elif high is None:
                inside, interval = False, "none"
            else:
                low, high = per_round(limited, low), per_round(limited, high)
                inside, interval = low <= wanted <= high, f"{100 * (low / wanted - 1):+.0f} to {100 * (high / wanted - 1):+.0f}"
            covered += inside
            out.append([case, f"{limited['limit']:g}", cost_of(limited).get("state", "-"), percent(100 * prediction["seen_share"], 1),
                        prediction["kind"] if prediction["kind"] == "self" else f"{prediction['target']} on {prediction['network']}",
                        f"{100 * (value / wanted - 1):+.1f}", interval, "yes" if inside else "no"])
    return ["### Intervals and the truth", "",
            f"Each case once under its limit and once fully open (limit {OPEN:g} %), whose prediction is the truth (times per round, where a "
            "run lasts a fixed time). Error and interval in percent of it.", "",
            f"**Covered: {covered} of {asked}.**", "",
            *table(["program", "limit, %", "capture", "seen, %", "target", "error", "interval", "covers"], out), ""]


def search(rows):
    lines = ["### The search (Fig. 4)", "",
             f"lbf-advise on {len(SEARCH_CALLS_PER_S)} recorded runs (*phases*) of {SEARCH_RANKS} ranks with {SEARCH_CALLS_PER_S[0]:,} to "
             f"{SEARCH_CALLS_PER_S[-1]:,} calls a second and rank, a cluster of 16 nodes of 4 cores and three networks. Under the limit: "
             f"{LIMIT:g} % of the program's processor time (one pass is always made); a fixed number: two node counts, block and cyclic, one "
             "network. Cost: processor time of the search in percent of the program's; over all programs.", ""]
    policies = {"limit": f"limit of {LIMIT:g} %", "fixed": "a fixed number", "unlimited": "unlimited"}
    out = []
    for policy, name in policies.items():
        runs = [row for row in rows if row["id"].endswith(f".{policy}")]
        if not runs:
            continue
        costs = [100 * row["search_cpu_s"] / row["program_cpu_s"] for row in runs]
        replayed = sum(row["verdicts"].get("replayed", 0) for row in runs)
        deferred = sum(row["verdicts"].get("deferred", 0) for row in runs)
        best = []
        for row in runs:
            least = min((other["best_s"] for other in rows if other["case"] == row["case"] and other.get("best_s")), default=None)
            if least and row["best_s"]:
                best.append(100 * (row["best_s"] / least - 1))
        out.append([name, str(sum(row["hypotheses"] for row in runs)), str(replayed), str(deferred),
                    f"{statistics.mean(row['wall_s'] for row in runs):.2f}", f"{statistics.mean(costs):.2f}", f"{max(costs):.2f}",
                    f"{statistics.pstdev(costs):.2f}", f"{statistics.mean(best):+.1f}" if best else "-"])
    return lines + table(["policy", "hypotheses", "replayed", "deferred", "time to the advice, s", "cost, mean %", "max %", "deviation",
                          "best found, % above the best of all"], out) + [""]


def lines(rows, facts):
    rows = list(rows)
    out = [f"*{facts}.*", ""]
    for part, make in (("overhead", overhead), ("storms", storms), ("coverage", coverage), ("search", search)):
        of_part = [row for row in rows if row["part"] == part]
        if of_part:
            out += make(of_part)
    return out
