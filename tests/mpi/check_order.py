#!/usr/bin/env python3
"""check_order.py COLLECTED PROGRAM_OUTPUT: the events of threads_busy, threads_handover or threads_cross, merged by the relay.

Counts are those that the program printed; a blocking call that other threads ran beside comes as its begin and its end,
and counts once. Each thread's messages are in its own order. And the sequences of the two ranks can be executed one
event after the other, as the replay does: a receive never stands before something that its sender needs first, a
synchronous send never ends before its receive was posted, and a collective never before its begin on the other rank.
"""
import collections
import sys

FIELDS = ('kind', 'function', 'comm', 'peer', 'tag', 'bytes', 'request', 'process_ns', 'call_ns')
SELF_TAG = 50
FIRST_RELAY_REQUEST = 1 << 31  # of calls that the relay has parted
WHOLE = {'isend': 'send', 'endRecv': 'recv', 'icoll': 'coll'}


def read(path):
    events = collections.defaultdict(list)
    for line in open(path, encoding='utf-8'):
        words = line.split()
        if words and words[0] == 'event':
            events[words[1]].append(dict(zip(FIELDS, words[2:])))
        assert words[0] != 'refused', line
    return events


def whole_kind(event):
    """What the program did: a begin and an end that the relay made of one call are that call, at one of the two."""
    if int(event['request']) < FIRST_RELAY_REQUEST:
        return event['kind']
    return WHOLE.get(event['kind'])


def check_counts(events, told):
    expected = [line.split()[2:] for line in told if line.startswith('expect events')]
    assert len(expected) >= 12, expected
    for rank, kind, count in expected:
        found = sum(whole_kind(e) == kind for e in events[rank])
        assert found == int(count), f'rank {rank}: {found} {kind} events, the program made {count}'


def check_threads(events, rounds, tags):
    for rank, own in events.items():
        for tag in range(tags):
            for kind in 'send', 'recv':
                sizes = [int(e['bytes']) for e in own if whole_kind(e) == kind and int(e['tag']) == tag]
                assert sizes == list(range(1, rounds + 1)), f'rank {rank}, thread {tag}: {kind} events out of order'


def check_collectives(events, told):
    """All of them are there: what ended as it began counts once."""
    for rank, own in events.items():
        found = sum(e['kind'] in ('coll', 'icoll') for e in own)
        assert found == told, f'rank {rank}: {found} collectives, the program made {told}'


class Execution:
    """Both ranks' events, one after the other. Two ranks are in each communicator but rank's own."""

    def __init__(self):
        self.begun = collections.Counter()  # collectives by (rank, communicator)
        self.sent = collections.Counter()   # messages by (source, destination, communicator, tag)
        self.posted = collections.Counter()  # receives likewise
        self.sizes = collections.defaultdict(list)  # of the messages of a channel
        self.requests = {}  # (rank, request) -> what its end waits for

    def begin(self, rank, e):
        """Begins the event; what its end waits for: (counters, keys, count), or None."""
        kind, comm = e['kind'], e['comm']
        if kind in ('send', 'isend'):
            channel = rank, e['peer'], comm, e['tag']
            self.sent[channel] += 1
            self.sizes[channel].append(e['bytes'])
            is_synchronous = e['function'] == 'MPI_Ssend'
            waits = (self.posted, [channel], self.sent[channel]) if is_synchronous else None
        elif kind in ('startRecv', 'recv'):
            channel = e['peer'], rank, comm, e['tag']
            self.posted[channel] += 1
            waits = self.sent, [channel], self.posted[channel]
        elif kind in ('coll', 'icoll'):
            self.begun[rank, comm] += 1
            # MPI_Comm_dup of a communicator that was made of MPI_COMM_SELF, and of that itself
            alone = e['tag'] == str(SELF_TAG) or e['function'] == 'MPI_Comm_dup' and comm != '0'
            waits = None if alone else (self.begun, [(r, comm) for r in '01'], self.begun[rank, comm])
        elif kind in ('wait', 'endRecv'):
            waits = self.requests.get((rank, e['request']))
        else:
            waits = None
        if kind in ('isend', 'startRecv', 'icoll'):
            self.requests[rank, e['request']] = waits
            return None
        return waits

    def end(self, e, waits):
        """What it waited for is there: a receive takes its own channel's message."""
        if e['kind'] in ('recv', 'endRecv'):
            _, (channel,), number = waits
            assert self.sizes[channel][number - 1] == e['bytes'], (channel, number, e)


def check_executable(events):
    """Both sequences must come to their ends."""
    at = {rank: 0 for rank in events}
    waits = {rank: None for rank in events}
    defined = {rank: {'0'} for rank in events}
    execution = Execution()
    moved = True
    while moved:
        moved = False
        for rank, own in events.items():
            while at[rank] < len(own):
                e = own[at[rank]]
                if not e.get('begun'):
                    e['begun'] = True
                    if e['kind'] == 'commCreate':
                        defined[rank].add(e['comm'])
                    assert e['comm'] in defined[rank], (rank, at[rank], e)
                    waits[rank] = execution.begin(rank, e)
                    moved = True
                if waits[rank] and any(waits[rank][0][key] < waits[rank][2] for key in waits[rank][1]):
                    break
                execution.end(e, waits[rank])
                at[rank] += 1
                moved = True
    for rank, own in events.items():
        assert at[rank] == len(own), f'rank {rank} stands still at event {at[rank]} of {len(own)}: {own[at[rank]]}'
    assert execution.sent == execution.posted, 'sends without receive'


def main():
    events = read(sys.argv[1])
    told = open(sys.argv[2], encoding='utf-8').read().splitlines()
    say = dict(line.split() for line in told if line.startswith(('rounds ', 'tags ', 'collectives ')))
    check_counts(events, told)
    if 'rounds' in say:
        check_threads(events, int(say['rounds']), int(say['tags']))
    if 'collectives' in say:
        check_collectives(events, int(say['collectives']))
    check_executable(events)


if __name__ == '__main__':
    main()
