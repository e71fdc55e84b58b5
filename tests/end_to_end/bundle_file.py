"""Changes a bundle's header or structure and makes its hashes right again, so that what lies behind the hashes is
reached. The hash is that of schemas/bundle_hash.h, the header that of schemas/bundle.fbs."""
import struct

MASK = (1 << 64) - 1
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
HEADER = "<4I6Q"  # identifier, byte order, schema, runtime; features, structure offset, bytes, hash; file bytes; hash
SCHEMA, RUNTIME, FEATURES, STRUCTURE_OFFSET, STRUCTURE_BYTES, STRUCTURE_HASH, FILE_BYTES, HEADER_HASH = range(2, 10)


def hash_round(lane, word):
    v = (lane + word * P2) & MASK
    return ((v << 31 | v >> 33) & MASK) * P1 & MASK


def bundle_hash(data):
    lanes = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
    whole = len(data) // 32 * 32
    words = struct.unpack(f"<{whole // 8}Q", data[:whole])
    for i, word in enumerate(words):
        lanes[i % 4] = hash_round(lanes[i % 4], word)
    h = (P3 + len(data)) & MASK
    for lane in lanes:
        h = hash_round(h, lane)
    tail = data[whole:]
    for i in range(0, len(tail), 8):
        h = hash_round(h, int.from_bytes(tail[i:i + 8], "little"))
    h ^= h >> 33
    h = h * P2 & MASK
    h ^= h >> 29
    h = h * P3 & MASK
    return h ^ h >> 32


def header(data):
    return list(struct.unpack_from(HEADER, data))


def with_header(data, fields):
    """The file with other header fields and a header hash that fits them."""
    packed = struct.pack(HEADER, *fields[:-1], 0)[:56]
    return packed + struct.pack("<Q", bundle_hash(packed)) + data[64:]


def with_field(data, field, value):
    fields = header(data)
    fields[field] = value
    return with_header(data, fields)


def structure_range(data):
    fields = header(data)
    return fields[STRUCTURE_OFFSET], fields[STRUCTURE_OFFSET] + fields[STRUCTURE_BYTES]


def with_structure(data, structure):
    """The file with another structure of the same length and hashes that fit it."""
    begin, end = structure_range(data)
    assert len(structure) == end - begin
    return with_field(data[:begin] + structure + data[end:], STRUCTURE_HASH, bundle_hash(structure))
