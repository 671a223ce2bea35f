"""The codec targets: what a payload becomes, or that it is refused, with C functions and with
Python's bindings, against readers of other libraries."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import cramjam
import xxhash

from tests.fuzz.engine import Target, require
from tests.fuzz.guard import guarded
from tests.fuzz.mutations import resize_bytes, splice
from tests.models.codecs import CodecError, decompress
from tests.models.framing import gzip_member, lz4_block, lz4_frame, xerial, zstd_frame, zstd_skippable
from txnkafka.errors import CorruptRecordError
from txnkafka.record.compression import Decompressor

__all__ = ["CODECS", "GZIP", "LZ4", "SNAPPY", "ZSTD"]

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
# A frame of zstd may ask for a window of 128 MiB, and the model makes it.
ITERATIONS = {"gzip": 3000, "snappy": 4000, "lz4": 3000, "zstd": 300}
READERS = ("functions", "bindings")  # the values of TXNKAFKA_CODECS
BEFORE = b"what was there before"


def mutate_payload(codec: int, random: Random, content: bytes, pool: Sequence[bytes]) -> bytes:
    """The first byte says the magic; the rest is the payload. Some are written anew, in many framings."""
    kind = random.random()
    if kind < 0.15:
        fresh = random.randbytes(random.randrange(9)) * random.randrange(60)
        return content[:1] + REFRAMED[codec](random, fresh)
    if kind < 0.25 and codec == CODECS["lz4"]:
        return _lz4_sealed(content)
    if random.random() < 0.1:
        return content[:1] + splice(random, content[1:], [each[1:] for each in pool])
    if random.random() < 0.02:
        return bytes([random.randrange(3)]) + content[1:]
    return content[:1] + resize_bytes(random, content[1:])


def _gzip(random: Random, content: bytes) -> bytes:
    flags = random.choice((0, 0, 2, 8, 16, 0x1A, 0xE0))
    fields = b"name\0" * (bool(flags & 8) + bool(flags & 16))
    return gzip_member(content, flags=flags, fields=fields) * random.choice((1, 1, 2))


def _snappy(random: Random, content: bytes) -> bytes:
    if random.random() < 0.3:
        return bytes(cramjam.snappy.compress_raw(content))
    return xerial(content, chunk_bytes=random.choice((1, 7, 100, 1 << 15))) * random.choice((1, 1, 2))


def _lz4(random: Random, content: bytes) -> bytes:
    summed = random.random() < 0.4
    stored = [random.random() < 0.3 for _ in range(random.randrange(3))]
    blocks = [lz4_block(content, stored=each, checksum=summed) for each in stored]
    flags = 0x60 | 0x10 * summed | random.choice((0, 0, 4, 8, 12))
    size = random.randrange(1 << 64) if flags & 8 else None
    descriptor = random.choice((0x40, 0x50, 0x60, 0x70))
    end = bytes(8 if flags & 4 else 4)
    return lz4_frame(blocks, flags=flags, descriptor=descriptor, content_size=size, end=end)


def _zstd(random: Random, content: bytes) -> bytes:
    level = random.choice((1, 3, 19))
    told, summed = random.random() < 0.5, random.random() < 0.5
    frame = zstd_frame(content, level=level, content_size=told, checksum=summed)
    return frame + random.choice((b"", b"", zstd_skippable(content[:9]), frame))


REFRAMED: dict[int, Callable[[Random, bytes], bytes]] = {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}


def _lz4_sealed(content: bytes) -> bytes:
    """With the header checksum that the header demands."""
    if len(content) < 8:
        return content
    at = 15 if content[5] & 8 else 7
    checksum = xxhash.xxh32(content[5:at]).intdigest() >> 8 & 0xFF
    return content[:at] + bytes([checksum]) + content[at + 1 :]


def check_payload(codec: int, content: bytes) -> str:
    """Compare the readers with the model, and their refusals with each other."""
    magic, payload = (content[0] % 3, content[1:]) if content else (2, b"")
    results = []
    for reader in READERS:
        os.environ["TXNKAFKA_CODECS"] = reader
        results.append(_read(codec, payload, magic))
    found, refusal = results[0]
    require(results[1] == results[0], f"{READERS[1]}: {results[1]}, {READERS[0]}: {results[0]}")
    try:
        expected = decompress(codec, payload, magic)
    except CodecError as error:
        require(refusal, f"the model refuses ({error}) what was read as {len(found)} bytes")
        return f"refused: {refusal[:50]}"
    assert not refusal, f"refused ({refusal}), but the model reads {len(expected)} bytes"
    assert found == expected, f"{len(found)} bytes {found[:60]!r}, expected {len(expected)} {expected[:60]!r}"
    return f"accepted: {len(found).bit_length()} bits of length"


def _read(codec: int, payload: bytes, magic: int) -> tuple[bytes, str]:
    """Return the content and the reason of a refusal; one of them is empty, as the content may be. A refusal
    leaves the buffer as it was."""
    decompressor = Decompressor()
    decompressor.append(0, BEFORE)
    refusal, found = "", b""
    try:
        begin, end = decompressor.append(codec, guarded(payload), magic=magic)
        assert (begin, end) == (len(BEFORE), decompressor.end)
        found = bytes(decompressor.buffer[begin:end])
    except CorruptRecordError as error:
        refusal = error.reason
        require(decompressor.end == len(BEFORE), "a refusal moved the end")
    assert bytes(decompressor.buffer[: len(BEFORE)]) == BEFORE
    return found, refusal


GZIP, SNAPPY, LZ4, ZSTD = (
    Target(name, partial(check_payload, codec), partial(mutate_payload, codec), iterations=ITERATIONS[name])
    for name, codec in CODECS.items()
)
