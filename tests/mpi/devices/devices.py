"""What devices.c waited for its stand-in device, as the capture saw it: devices.py SIGNATURES OUTPUT LIBRARY, where
SIGNATURES are ring_dump's and OUTPUT is the program's. LIBRARY: cuda, hip.

No time is asserted, but what one is to another: a wait is as long as the program says, in ticks of one length.
"""
import sys

FIRST = 10  # the stage of an MPI_Pcontrol is above it
TIMED = (1, 2, 3, 8, 9, 10)
# By stage. The stand-in's copy of rows is several of the driver.
CALLS = {1: 1, 2: 2, 3: 1, 4: 100000, 5: 0, 6: 0, 7: 0, 8: 4, 9: 1, 10: 1}


def read(path):
    """(rank, stage) -> [calls, busy, wall] of its waits, of each time that the stage came."""
    stages, pending = {}, {}
    with open(path, encoding='utf-8') as file:
        for line in file:
            words = line.split()
            if not words or words[0] != 'sig':
                continue
            rank, kind = int(words[1]), words[2]
            if kind == 'device':
                values = next(i for i, word in enumerate(words) if word.startswith('bytes=')) + 1
                pending[rank] = [int(word) for word in words[values:]]
            elif kind == 'phase':
                tag = next(int(word[4:]) for word in words if word.startswith('tag='))
                stages.setdefault((rank, tag - FIRST), []).append(pending.pop(rank, None))
    return stages


def waited(path):
    times = {}
    with open(path, encoding='utf-8') as file:
        for line in file:
            if line.startswith('waited '):
                _, rank, stage, ms = line.split()
                times.setdefault((int(rank), int(stage)), []).append(float(ms))
    return times


def mistakes_of(rank, stages):
    last = {stage: stages.get((rank, stage), [None])[-1] for stage in CALLS}
    for stage, number in CALLS.items():
        found = last[stage]
        seen = 0 if found is None else found[0]
        if seen != number:
            yield f'stage {stage}: {seen} calls, wanted {number}'
        elif found is not None and found[1] > found[2]:
            yield f'stage {stage}: busy {found[1]} of {found[2]}'


def times_that_differ(ranks, stages, own):
    """Of each stage the rank whose wait is nearest to the program's own time: a busy machine takes a rank off its processor
    between the two. What the program measured has the wait in it, so the longest tick rate is the true one."""
    rates = {}
    for stage in TIMED:
        for rank in ranks:
            seen = stages.get((rank, stage), [None])[-1]
            if seen:
                rates[stage] = max(rates.get(stage, 0), seen[2] / own[rank, stage][-1])
    for stage, rate in rates.items():
        if rate < 0.8 * max(rates.values()):
            yield f'stage {stage}: {rate} ticks a ms, {max(rates.values())} elsewhere'


def main():
    stages, own = read(sys.argv[1]), waited(sys.argv[2])
    ranks = sorted({rank for rank, _ in stages})
    mistakes = [f'rank {rank}, {mistake}' for rank in ranks for mistake in mistakes_of(rank, stages)]
    mistakes += times_that_differ(ranks, stages, own)
    if sys.argv[3] == 'cuda':
        for rank in ranks:
            spins, sleeps = stages[rank, 1][-1], stages[rank, 9][-1]
            if spins and sleeps and spins[1] < 3 * sleeps[1]:
                mistakes.append(f'rank {rank}: spinning used {spins[1]}, sleeping {sleeps[1]} ticks of the processor')
    sys.exit('\n'.join(mistakes) or (0 if ranks else 'no rank'))


if __name__ == '__main__':
    main()
