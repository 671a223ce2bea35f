"""Changes to a segment that get past its door: the lengths and the CRC are made right again, mostly.

A log is split into its batches by their length fields, as bytes; what cannot be split is the last piece.
Compressed records are decompressed, changed and compressed again, in entries of old formats as well.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from random import Random

from tests.fuzz.mutations import Field, change_bytes, put_number, resize_bytes, splice, tricky_varint
from tests.models.builder import compress
from tests.models.codecs import CodecError, decompress
from tests.models.varint import VarintError, read_varint, read_varlong
from txnkafka._core.crc32c import crc32c

__all__ = ["batches_of", "mutate_log", "sealed"]

LOG_OVERHEAD, HEADER_SIZE, CRC_BEGIN, LEGACY_CRC_BEGIN = 12, 61, 21, 16
CODEC_BITS = 7
# base offset, length, leader epoch, magic, CRC; then what the CRC covers
OUTSIDE_CRC: Sequence[Field] = ((0, 8), (8, 4), (12, 4), (16, 1), (17, 4))
COVERED: Sequence[Field] = ((21, 2), (22, 1), (23, 4), (27, 8), (35, 8), (43, 8), (51, 2), (53, 4), (57, 4))
LEGACY_FIELDS: Sequence[Field] = (
    (0, 8), (8, 4), (12, 4), (16, 1), (17, 1), (18, 8), (18, 4), (22, 4), (26, 4),
)  # fmt: skip
SEALED = 0.92  # of all changes


def batches_of(log: bytes) -> list[bytes]:
    """The batches and entries by their lengths, and what is left behind them."""
    pieces = []
    position = 0
    while len(log) - position > LEGACY_CRC_BEGIN:
        (length,) = struct.unpack_from(">i", log, position + 8)
        size = LOG_OVERHEAD + length
        if size <= LEGACY_CRC_BEGIN or size > len(log) - position:
            break
        pieces.append(log[position : position + size])
        position += size
    return [*pieces, log[position:]] if position < len(log) else pieces


def sealed(batch: bytes) -> bytes:
    """The batch with the length and the CRC that its bytes demand."""
    if len(batch) <= LEGACY_CRC_BEGIN:
        return batch
    length = struct.pack(">i", len(batch) - LOG_OVERHEAD)
    if batch[LEGACY_CRC_BEGIN] < 2:
        crc = struct.pack(">I", zlib.crc32(batch[LEGACY_CRC_BEGIN:]))
        return batch[:8] + length + crc + batch[LEGACY_CRC_BEGIN:]
    if len(batch) < CRC_BEGIN:
        return batch
    crc = struct.pack(">I", crc32c(batch[CRC_BEGIN:]))
    return batch[:8] + length + batch[12:17] + crc + batch[CRC_BEGIN:]


def mutate_log(random: Random, log: bytes, pool: Sequence[bytes]) -> bytes:
    """One change to a log."""
    kind = random.random()
    if kind < 0.04:
        return resize_bytes(random, log)
    if kind < 0.08:
        return _tail(random, log)
    if kind < 0.20:
        return _rearranged(random, log, pool)
    pieces = batches_of(log)
    if not pieces:
        return splice(random, log, pool)
    number = random.randrange(len(pieces))
    pieces[number] = _changed_batch(random, pieces[number])
    return b"".join(pieces)


def _tail(random: Random, log: bytes) -> bytes:
    tails = (bytes(random.choice((1, 11, 12, 16, 17, 61, 200))), b"\xff" * 20, random.randbytes(30))
    return log + random.choice(tails) if random.random() < 0.7 else log[: -random.randint(1, 70)]


def _rearranged(random: Random, log: bytes, pool: Sequence[bytes]) -> bytes:
    pieces = batches_of(log)
    others = batches_of(random.choice(pool)) or [b""]
    place = random.randint(0, len(pieces))
    kind = random.randrange(4)
    if kind == 0:
        pieces.insert(place, random.choice(others))
    elif kind == 1 and pieces:
        del pieces[random.randrange(len(pieces))]
    elif kind == 2:
        pieces[place:] = others[random.randrange(len(others)) :]
    else:
        random.shuffle(pieces)
    return b"".join(pieces)


def _changed_batch(random: Random, batch: bytes) -> bytes:
    if len(batch) < LEGACY_CRC_BEGIN + 2:
        return resize_bytes(random, batch)
    if batch[LEGACY_CRC_BEGIN] < 2:
        changed = _changed_entry(random, batch)
    elif len(batch) < HEADER_SIZE or random.random() < 0.3:
        changed = _changed_header(random, batch)
    else:
        changed = batch[:HEADER_SIZE] + _changed_content(random, batch[22] & CODEC_BITS, batch[HEADER_SIZE:])
    return sealed(changed) if random.random() < SEALED else changed


def _changed_header(random: Random, batch: bytes) -> bytes:
    if random.random() < 0.2:
        return put_number(random, batch, random.choice(OUTSIDE_CRC))
    if random.random() < 0.2 and len(batch) > 22:  # one bit of the attributes
        return batch[:22] + bytes([batch[22] ^ 1 << random.randrange(8)]) + batch[23:]
    return put_number(random, batch, random.choice(COVERED))


def _changed_content(random: Random, codec: int, content: bytes, magic: int = 2) -> bytes:
    """Records, compressed or not; with a codec either the frame is changed or what is in it."""
    change: Callable[[Random, bytes], bytes] = _changed_records if magic == 2 else _changed_entries
    if codec == 0:
        return change(random, content)
    if random.random() < 0.5:
        return resize_bytes(random, content)
    try:
        return compress(codec, change(random, decompress(codec, content, magic))[: 1 << 16], magic)
    except (CodecError, ValueError):
        return change_bytes(random, content)


def _changed_records(random: Random, records: bytes) -> bytes:
    kind = random.random()
    if kind < 0.2:
        return change_bytes(random, records)
    if kind < 0.4:
        return resize_bytes(random, records)
    return _changed_varint(random, records)


def _changed_varint(random: Random, records: bytes) -> bytes:
    """Another varint in the place of one; the record's own length follows, mostly."""
    spans = varints_of(records)
    if not spans:
        return resize_bytes(random, records)
    record = random.choice(spans)
    begin, end = random.choice(record)
    varint = tricky_varint(random) if random.random() < 0.7 else bytes([random.randrange(128)])
    changed = records[:begin] + varint + records[end:]
    length_begin, length_end = record[0]
    if begin == length_begin or random.random() < 0.2:
        return changed
    length, _ = read_varint(records, length_begin)
    return changed[:length_begin] + _zigzag(length + len(varint) - (end - begin)) + changed[length_end:]


def _zigzag(value: int) -> bytes:
    rest = (value << 1 ^ value >> 31) & 0xFFFFFFFF
    encoded = bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])


def varints_of(records: bytes) -> list[list[tuple[int, int]]]:
    """For each record, as far as they can be walked: begin and end of each varint, its length first."""
    found: list[list[tuple[int, int]]] = []
    position = 0
    while position < len(records):
        try:
            length, behind = read_varint(records, position)
            found.append([(position, behind), *_fields_of(records, behind + 1, behind + length)])
        except VarintError:
            break
        if length <= 0:
            break
        position = behind + length
    return found


def _fields_of(records: bytes, position: int, end: int) -> list[tuple[int, int]]:
    spans = []
    _, behind = read_varlong(records, position)
    spans.append((position, behind))
    _, position = read_varint(records, behind)
    spans.append((behind, position))
    for _ in range(2):  # key and value
        length, behind = read_varint(records, position)
        spans.append((position, behind))
        position = behind + max(length, 0)
    while position < end and len(spans) < 20:  # the header count, and lengths of header keys and values
        length, behind = read_varint(records, position)
        spans.append((position, behind))
        position = behind + (max(length, 0) if len(spans) > 5 else 0)
    return spans


def _changed_entry(random: Random, entry: bytes) -> bytes:
    """An entry of magic 0 or 1: its fields, or the content of its wrapper."""
    magic, codec = entry[LEGACY_CRC_BEGIN], entry[17] & CODEC_BITS
    value_at = 26 if magic == 0 else 34
    if codec and len(entry) > value_at and random.random() < 0.6:
        value = _changed_content(random, codec, entry[value_at:], magic)
        return entry[: value_at - 4] + struct.pack(">i", len(value)) + value
    if random.random() < 0.5:
        return put_number(random, entry, random.choice(LEGACY_FIELDS))
    return resize_bytes(random, entry)


def _changed_entries(random: Random, entries: bytes) -> bytes:
    pieces = batches_of(entries)
    if not pieces or random.random() < 0.1:
        return resize_bytes(random, entries)
    number = random.randrange(len(pieces))
    piece = pieces[number]
    if len(piece) > 17:
        pieces[number] = _changed_entry(random, piece)
        if random.random() < SEALED:
            pieces[number] = sealed(pieces[number])
    return b"".join(pieces)
