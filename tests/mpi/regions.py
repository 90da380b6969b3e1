"""What regions.c and pool.c did, as the capture saw it: regions.py SIGNATURES RUNTIME, where SIGNATURES are ring_dump's.
RUNTIME: gnu, llvm, or of pool.c: pool, helper.

No time is asserted, but what one is to another: threads that work side by side are more work than the longest of them.
"""
import sys

# Stage of regions.c: regions, threads, least work and most work by the longest thread's. Where the threads take what
# there is, one may take it all. None: no region.
STAGES = {
    1: (1, 2, 1.2, 2.01), 2: (1, 2, 1.0, 2.01), 3: (1, 2, 1.0, 2.01), 4: (1, 2, 1.0, 2.01), 5: (1, 2, 1.2, 2.01),
    6: (1, 2, 1.0, 2.01), 7: (1, 2, 1.0, 2.01), 8: (1, 2, 1.0, 4.01), 9: (1, 2, 1.0, 2.01), 10: None,
    12: (1, 2, 1.0, 1.5), 13: (10000, 2, 1.0, 2.01), 14: (1, 2, 1.0, 2.01), 15: (1, 2, 1.0, 2.01),
    16: (1, 2, 1.0, 1.5)}
# LLVM's runtime runs tasks inside barriers, where they are not seen.
LLVM = {6: (1, 2, 0.9, 2.01), 9: (1, 2, 0.9, 2.01)}


def read(path):
    """(rank, stage) -> values of its regions, of each time that the stage came."""
    stages, pending = {}, {}
    with open(path, encoding='utf-8') as file:
        for line in file:
            words = line.split()
            if not words or words[0] != 'sig':
                continue
            rank, kind = int(words[1]), words[2]
            if kind == 'regions':
                values = next(i for i, word in enumerate(words) if word.startswith('bytes=')) + 1
                pending[rank] = [int(word) for word in words[values:]]
            elif kind == 'phase':
                tag = next(int(word[4:]) for word in words if word.startswith('tag='))
                stages.setdefault((rank, tag), []).append(pending.pop(rank, None))
    return stages


def wrong(values, wanted):
    if wanted is None or values is None:
        return None if values == wanted else f'found {values}, wanted {wanted}'
    regions, threads, work, critical, _, wall = values
    if (regions, threads) != wanted[:2]:
        return f'{regions} regions of {threads} threads, wanted {wanted[:2]}'
    if not 0 < critical <= wall or not wanted[2] <= work / critical <= wanted[3]:
        return f'work {work}, critical {critical}, wall {wall}: not {wanted[2:]}'
    return None


def check_helper(stages):
    """A thread that spins all the time is no pool, once a call has told."""
    seen = [values for seen in stages.values() for values in seen]
    pools = sum(values is not None for values in seen)
    if len(seen) < 20 or pools * 4 > len(seen):
        sys.exit(f'{pools} of {len(seen)} gaps have a pool')


def check_pool(stages):
    """The first gap has no time before it to compare with."""
    gaps = [values for seen in stages.values() for values in seen[1:] if values is not None]
    if len(gaps) < 3 or any(values[0] != 1 or values[1] < 2 or values[2] * 10 < values[5] for values in gaps):
        sys.exit(f'gaps with a pool: {gaps}')


def main():
    stages = read(sys.argv[1])
    if sys.argv[2] == 'pool':
        return check_pool(stages)
    if sys.argv[2] == 'helper':
        return check_helper(stages)
    expected = {**STAGES, **(LLVM if sys.argv[2] != 'gnu' else {})}
    ranks = {rank for rank, _ in stages}
    mistakes = []
    for rank in sorted(ranks):
        for stage, wanted in expected.items():
            seen = stages.get((rank, stage), [])
            if len(seen) != 2:
                mistakes.append(f'rank {rank}, stage {stage}: came {len(seen)} times')
            elif message := wrong(seen[1], wanted):
                mistakes.append(f'rank {rank}, stage {stage}: {message}')
    if not ranks:
        mistakes.append('no rank')
    sys.exit('\n'.join(mistakes) or 0)


if __name__ == '__main__':
    main()
