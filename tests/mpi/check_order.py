#!/usr/bin/env python3
"""check_order.py COLLECTED PROGRAM_OUTPUT: the events of threads_busy or threads_handover, merged by the relay.

Counts are those that the program printed. Each thread's messages are in its own order. And the sequences of the two
ranks can be executed one event after the other, as the replay does: a receive never stands before something that its
sender needs first, and the end of a collective never before its begin on the other rank.
"""
import collections
import sys

FIELDS = ('kind', 'function', 'comm', 'peer', 'tag', 'bytes', 'request', 'process_ns', 'call_ns')
SELF_TAG = 50


def read(path):
    events = collections.defaultdict(list)
    for line in open(path, encoding='utf-8'):
        words = line.split()
        if words and words[0] == 'event':
            events[words[1]].append(dict(zip(FIELDS, words[2:])))
        assert words[0] != 'refused', line
    return events


def check_counts(events, told):
    expected = [line.split()[2:] for line in told if line.startswith('expect events')]
    assert len(expected) >= 12, expected
    for rank, kind, count in expected:
        found = sum(e['kind'] == kind for e in events[rank])
        assert found == int(count), f'rank {rank}: {found} {kind} events, the program made {count}'


def check_threads(events, rounds, tags):
    for rank, own in events.items():
        for tag in range(tags):
            for kind in 'send', 'recv':
                sizes = [int(e['bytes']) for e in own if e['kind'] == kind and int(e['tag']) == tag]
                assert sizes == list(range(1, rounds + 1)), f'rank {rank}, thread {tag}: {kind} events out of order'


def check_collectives(events, told):
    """All of them are there: what ended as it began counts once."""
    for rank, own in events.items():
        found = sum(e['kind'] in ('coll', 'icoll') for e in own)
        assert found == told, f'rank {rank}: {found} collectives, the program made {told}'


def check_executable(events):
    """Sends do not block; a receive waits for its message, the end of a collective for all begins (two ranks are in
    each communicator but rank's own). Both sequences must come to their ends."""
    at = {rank: 0 for rank in events}
    begun = collections.Counter()  # (rank, communicator)
    waits = {}  # (rank, request) -> communicator, number
    sent = collections.Counter()
    defined = {rank: {'0'} for rank in events}
    moved = True
    while moved:
        moved = False
        for rank, own in events.items():
            while at[rank] < len(own):
                e = own[at[rank]]
                if e['kind'] == 'commCreate':
                    defined[rank].add(e['comm'])
                assert e['comm'] in defined[rank], (rank, at[rank], e)
                alone = e['tag'] == str(SELF_TAG) or e['function'] == 'MPI_Comm_dup' and e['comm'] != '0'
                if e['kind'] in ('coll', 'icoll') and not alone:
                    if e['kind'] == 'coll' and not e.get('begun'):
                        e['begun'] = True
                        begun[rank, e['comm']] += 1
                    elif e['kind'] == 'icoll':
                        begun[rank, e['comm']] += 1
                        waits[rank, e['request']] = e['comm'], begun[rank, e['comm']]
                    if e['kind'] == 'coll' and any(begun[r, e['comm']] < begun[rank, e['comm']] for r in events):
                        break
                elif e['kind'] == 'wait' and (rank, e['request']) in waits:
                    comm, number = waits[rank, e['request']]
                    if any(begun[r, comm] < number for r in events):
                        break
                if e['kind'] in ('send', 'isend'):
                    sent[rank, e['peer'], e['comm'], e['tag'], e['bytes']] += 1
                elif e['kind'] in ('recv', 'endRecv'):
                    message = (e['peer'], rank, e['comm'], e['tag'], e['bytes'])
                    if not sent[message]:
                        break
                    sent[message] -= 1
                at[rank] += 1
                moved = True
    for rank, own in events.items():
        assert at[rank] == len(own), f'rank {rank} stands still at event {at[rank]} of {len(own)}: {own[at[rank]]}'
    assert not +sent, 'sends without receive'


def main():
    events = read(sys.argv[1])
    told = open(sys.argv[2], encoding='utf-8').read().splitlines()
    say = dict(line.split() for line in told if line.startswith(('rounds ', 'tags ', 'collectives ')))
    check_counts(events, told)
    if 'rounds' in say:
        check_threads(events, int(say['rounds']), int(say['tags']))
    else:
        check_collectives(events, int(say['collectives']))
    check_executable(events)


if __name__ == '__main__':
    main()
