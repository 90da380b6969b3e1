"""extend_read_only.py FROM TO: a copy of a shared library whose part that is read-only after the start ends where .data
begins, in the middle of a page: as pages do that are larger than the linker assumed."""
import struct
import sys

PT_GNU_RELRO = 0x6474E552

library = bytearray(open(sys.argv[1], "rb").read())
segments, sections = struct.unpack_from("<QQ", library, 32)
segment_count, section_bytes, section_count, names = struct.unpack_from("<HHHH", library, 56)


def section(number):
    name, _, _, address, offset = struct.unpack_from("<IIQQQ", library, sections + section_bytes * number)
    return name, address, offset


names_at = section(names)[2]
data = next(address for name, address, _ in map(section, range(section_count))
            if library[names_at + name:].startswith(b".data\0"))
for at in range(segments, segments + 56 * segment_count, 56):
    if struct.unpack_from("<I", library, at)[0] == PT_GNU_RELRO:
        begin = struct.unpack_from("<Q", library, at + 16)[0]
        struct.pack_into("<Q", library, at + 40, data - begin)
open(sys.argv[2], "wb").write(library)
