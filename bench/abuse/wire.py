"""Batches of events as docs/formats/wire-v1.md says them: what bench/abuse sends.

Not the encoder of the relay: this one also writes what no relay writes. A shape is defined in each event that is not a
repetition, so a batch is longer than the relay's.
"""

import ctypes
import json
import struct

COMPUTE, SEND, ISEND, START_RECV, RECV, WAIT, COLLECTIVE, ICOLLECTIVE = 0, 1, 2, 3, 5, 6, 8, 9
COMM_CREATE, CANCEL, PHASE, EXIT, SKIPPED = 15, 17, 19, 21, 27
WILDCARD_SOURCE, HAS_REQUEST = 1, 8
BARRIER, REDUCE, ALLREDUCE, ALLTOALL = 0, 2, 3, 7
SKIPPED_COLLECTIVES = 2
ROOT_IS_ME = -4

EXPLICIT_SHAPE, EXPLICIT_REQUEST = 64, 128
LONGEST_RAW = 1 << 24


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC = _crc_table()


def crc32c(data):
    table, crc = _CRC, 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def compress(raw):
    """One zstd frame, by the library that lbfd uses."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_compressBound.restype = zstd.ZSTD_compress.restype = ctypes.c_size_t
    zstd.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    zstd.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    room = ctypes.create_string_buffer(zstd.ZSTD_compressBound(len(raw)))
    size = zstd.ZSTD_compress(room, len(room), raw, len(raw), 3)
    if size > len(room):
        raise ValueError("zstd does not compress")
    return room.raw[:size]


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def svarint(value):
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def shape(kind, flags=0, op=0, peer=-1, tag=-1, comm=0, root=0, size=0, values=b"", count=0):
    """A shape. `values`: `count` values as the wire has them, see differences()."""
    fields, rest = 0, b""
    for bit, present, coded in ((2, op, struct.pack("B", op)), (4, peer != -1, svarint(peer)), (8, tag != -1, svarint(tag)),
                                (16, comm, varint(comm)), (32, root, svarint(root)), (64, size, varint(size)),
                                (128, count, varint(count) + values)):
        if present:
            fields |= bit
            rest += coded
    return struct.pack("BBB", kind, flags, fields) + rest


def differences(values):
    """Values as the wire has them."""
    before, out = 0, []
    for value in values:
        out.append(svarint(value - before))
        before = value
    return b"".join(out)


def run_of_ranks(first, count):
    """differences() of `count` ranks that follow `first`, the value before them."""
    return svarint(1) * count if count else svarint(first)


class Section:
    """Events of one rank."""

    def __init__(self, rank):
        self.rank, self.control, self.data, self.shapes = rank, [], [], 0

    def add(self, one, process_ns=0, call_ns=0):
        """An event whose shape is for itself."""
        process, call = _time(process_ns), _time(call_ns)
        self.control.append(bytes([len(process) | len(call) << 3 | EXPLICIT_SHAPE]))
        self.data.append(process + call + varint(1) + one)
        return self

    def repeat(self, one, count, first_request=None, further_requests=0):
        """`count` events of a shape, at least 3, without time. `first_request`: the first one's difference;
        `further_requests`: that of each later one."""
        self.shapes += 1
        again = varint(self.shapes + 1)
        if first_request is None:
            self.control.append(bytes([EXPLICIT_SHAPE, EXPLICIT_SHAPE]))
            self.data.append(varint(0) + one + again)
        else:
            self.control.append(bytes([EXPLICIT_SHAPE | EXPLICIT_REQUEST] * 2))
            self.data.append(varint(0) + one + svarint(first_request) + again + svarint(further_requests))
        self.control.append(bytes(count - 2))
        return self

    def block(self):
        control, data = b"".join(self.control), b"".join(self.data)
        return b"\1" + varint(self.rank) + varint(len(control)) + varint(len(data)) + control + data

    def events(self):
        return sum(map(len, self.control))


def _time(nanoseconds):
    return nanoseconds.to_bytes((nanoseconds.bit_length() + 7) // 8, "little")


class Record:
    """A control record."""

    def __init__(self, **members):
        self.text = json.dumps(members, separators=(",", ":")).encode()

    def block(self):
        return b"\2" + varint(len(self.text)) + self.text

    def events(self):
        return 0


def batch(parts, sequence=1, stream=0):
    """Sections and records as one batch."""
    raw = b"".join(part.block() for part in parts)
    if len(raw) > LONGEST_RAW:
        raise ValueError(f"a batch of {len(raw)} bytes")
    payload = compress(raw)
    header = struct.pack("<8sHHIQIIIII", b"LBFBATCH", 1, 0, stream, sequence, len(raw), len(payload),
                         sum(part.events() for part in parts), 0, crc32c(payload))
    return header + struct.pack("<I", crc32c(header)) + payload


def batches(parts, stream=0):
    """Sections and records as few batches as hold them."""
    out, held, size = [], [], 0
    for part in parts:
        length = len(part.block())
        if held and size + length > LONGEST_RAW:
            out.append(batch(held, len(out) + 1, stream))
            held, size = [], 0
        held.append(part)
        size += length
    return out + [batch(held, len(out) + 1, stream)]
