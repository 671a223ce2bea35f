"""Payloads that Kafka's readers accept or reject, one case for each known rule.

``content`` is the decompressed payload, None if it must be rejected. It consists of ``RECORD_COUNT`` records,
so that each case can be put into a batch and read by Kafka itself. This was done with Kafka 4.3.1 on Java 17;
its answer is the expected one everywhere except in ``STRICTER``: payloads that we refuse, and Kafka accepts
more by accident.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import cramjam

from tests.models.builder import PlainRecord, encode_record
from tests.models.framing import (
    XERIAL_HEADER,
    gzip_member,
    lz4_block,
    lz4_frame,
    xerial,
    zstd_frame,
    zstd_skippable,
)
from tests.models.snappy_block import store_block

__all__ = ["CASES", "CONTENT", "LARGE_CONTENT", "RECORD_COUNT", "STRICTER", "FramingCase"]

RECORD_COUNT = 2
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4


class FramingCase(NamedTuple):
    """One payload and its expected content."""

    name: str
    codec: int
    payload: bytes
    content: bytes | None
    magic: int = 2


def _content(size: int) -> bytes:
    records = [
        PlainRecord(b"key", b"a" * size, 1),
        PlainRecord(None, bytes(range(256)) * (size // 256 + 1), 2),
    ]
    return b"".join(encode_record(each, base_timestamp=1, offset_delta=i) for i, each in enumerate(records))


CONTENT = _content(32)
LARGE_CONTENT = _content(200_000)
FIRST, SECOND = CONTENT[:100], CONTENT[100:]


def _flipped(payload: bytes, position: int, bits: int = 1) -> bytes:
    changed = bytearray(payload)
    changed[position] ^= bits
    return bytes(changed)


def _gzip_cases() -> list[FramingCase]:
    member = gzip_member(CONTENT)
    all_fields = gzip_member(CONTENT, flags=0x1E, fields=b"\x03\0abc" + b"name\0" + b"comment\0")
    header = member[:10]
    accepted = {
        "one member": member,
        "levels and system byte of older JVMs": member[:9] + b"\0" + member[10:],
        "two members": gzip_member(FIRST) + gzip_member(SECOND),
        "an empty member in front": gzip_member(b"") + member,
        "an empty member behind": member + gzip_member(b""),
        "all optional fields": all_fields,
        "optional fields in the second member": gzip_member(FIRST)
        + gzip_member(SECOND, flags=8, fields=b"x\0"),
        "reserved flags": _flipped(member, 3, 0xE0),
        "garbage behind": member + b"garbage, and rather long garbage",
        "zeros behind": member + bytes(40),
        "a byte behind": member + b"\x1f",
        "a bare member header behind": member + header,
        "another method behind": member + _flipped(gzip_member(SECOND), 2),
        "a wrong header checksum behind": member + _flipped(gzip_member(SECOND, flags=2), 10),
    }
    rejected = {
        "empty payload": b"",
        "not gzip": b"\0" + member[1:],
        "another method": _flipped(member, 2),
        "wrong CRC": _flipped(member, -8),
        "wrong size": _flipped(member, -4),
        "wrong CRC in the second member": gzip_member(FIRST) + gzip_member(SECOND, crc=1),
        "cut trailer": member[:-1],
        "no trailer": member[:-8],
        "cut data": member[:30],
        "cut header": member[:9],
        "cut optional field": all_fields[:14],
        "cut header checksum": gzip_member(b"", flags=2)[:11],
        "wrong header checksum": _flipped(gzip_member(CONTENT, flags=2), 10),
        "bad block type": header + b"\xff" * 40,
        "a member header and junk behind": member + header + b"\xff" * 40,
    }
    return _cases(GZIP, accepted, rejected)


def _snappy_cases() -> list[FramingCase]:
    usual = xerial(CONTENT)
    real = bytes(cramjam.snappy.compress_raw(CONTENT))
    chunk = struct.pack(">i", len(real)) + real
    accepted = {
        "one chunk": usual,
        "a chunk with copies": XERIAL_HEADER + chunk,
        "many chunks": xerial(CONTENT, chunk_bytes=7),
        "version 0 and 9": XERIAL_HEADER[:8] + struct.pack(">ii", 0, 9) + usual[16:],
        "version 9 and 0": XERIAL_HEADER[:8] + struct.pack(">ii", 9, 0) + usual[16:],
        "a header between chunks": xerial(FIRST) + xerial(SECOND),
        "version 2 in a header between chunks": usual + XERIAL_HEADER[:8] + struct.pack(">ii", 2, 0),
        "two headers in front": XERIAL_HEADER + usual,
        "a header behind": usual + XERIAL_HEADER,
        "a byte behind": usual + b"\0",
        "three bytes behind": usual + b"\0\0\1",
        "an empty block between chunks": xerial(FIRST) + struct.pack(">i", 1) + b"\0" + xerial(SECOND),
        "a raw block": real,
        "a raw block of literals": store_block(CONTENT),
        "a broken header behind": usual + XERIAL_HEADER[:4] + bytes(12),
    }
    rejected = {
        "empty payload": b"",
        "magic without the rest of the header": XERIAL_HEADER[:15],
        "a chunk of length 0": usual + bytes(4),
        "a chunk of negative length": usual + struct.pack(">i", -5) + real,
        "a chunk past the end": XERIAL_HEADER + chunk[:-1],
        "a cut header between chunks": usual + XERIAL_HEADER[:9],
        "version 0 in a header between chunks": usual + XERIAL_HEADER[:8] + struct.pack(">ii", 0, 0),
        "version -1 in a header between chunks": usual + XERIAL_HEADER[:8] + struct.pack(">ii", -1, 1),
        "a raw block with a byte behind": real + b"\0",
        "a cut raw block": real[:-1],
        "a block longer than it says": XERIAL_HEADER + struct.pack(">i", len(real)) + _flipped(real, 0),
        "a block that says 4 GiB": b"\xff\xff\xff\xff\x0f" + real[2:],
        "a length of too many bytes": b"\xff\xff\xff\xff\xff\x0f" + real[2:],
        "a copy from before the beginning": b"\x0a\x00a\x15\x02",
    }
    return _cases(SNAPPY, accepted, rejected)


def _lz4_cases() -> list[FramingCase]:
    usual = lz4_frame(CONTENT)
    stored = [lz4_block(FIRST, stored=True), lz4_block(SECOND, stored=True)]
    summed = [lz4_block(FIRST, checksum=True), lz4_block(SECOND, checksum=True, stored=True)]
    accepted = {
        "one block": usual,
        "two blocks": lz4_frame([lz4_block(FIRST), lz4_block(SECOND)]),
        "stored blocks": lz4_frame(stored),
        "block checksums": lz4_frame(summed, flags=0x70),
        "a content checksum, unverified": lz4_frame(CONTENT, flags=0x64, end=bytes(4) + b"\1\2\3\4"),
        "a content size, unverified": lz4_frame(CONTENT, flags=0x68, content_size=1),
        "everything at once": lz4_frame(summed, flags=0x7C, content_size=3, end=bytes(8)),
        "an end mark with the top bit": lz4_frame(CONTENT, end=b"\0\0\0\x80"),
        "bytes behind the end mark": usual + b"\1\2\3",
        "a second frame, not read": usual + usual,
        "empty blocks at the end": lz4_frame([lz4_block(CONTENT), lz4_block(b""), lz4_block(b"")]),
    }
    rejected = {
        "empty payload": b"",
        "another magic": b"\x02" + usual[1:],
        "a skippable frame in front": zstd_skippable(b"abc") + usual,
        "version 0": lz4_frame(CONTENT, flags=0x20),
        "version 2": lz4_frame(CONTENT, flags=0xA0),
        "linked blocks": lz4_frame(CONTENT, flags=0x40),
        "a dictionary": lz4_frame(CONTENT, flags=0x61),
        "the reserved flag": lz4_frame(CONTENT, flags=0x62),
        "the reserved top bit of the descriptor": lz4_frame([lz4_block(CONTENT)], descriptor=0xC0),
        "reserved low bits of the descriptor": lz4_frame([lz4_block(CONTENT)], descriptor=0x41),
        "block maximum 3": lz4_frame([lz4_block(CONTENT)], descriptor=0x30),
        "wrong header checksum": _flipped(usual, 6),
        "the header checksum of magic 0": lz4_frame(CONTENT, magic=0),
        "wrong block checksum": lz4_frame([_flipped(summed[0], -1), summed[1]], flags=0x70),
        "cut block checksum": lz4_frame(summed, flags=0x70, end=b"")[:-2],
        "no content checksum": lz4_frame(CONTENT, flags=0x64),
        "no end mark": lz4_frame(CONTENT, end=b""),
        "cut end mark": usual[:-1],
        "cut block": usual[:-10],
        "cut header": usual[:6],
        "cut content size": lz4_frame(b"", flags=0x68, content_size=1)[:12],
        "a stored block larger than the block maximum": lz4_frame([lz4_block(bytes(65537), stored=True)]),
        "a block that becomes larger than the block maximum": lz4_frame([lz4_block(bytes(65537))]),
        "an empty block in the middle": lz4_frame([lz4_block(FIRST), lz4_block(b""), lz4_block(SECOND)]),
        "a broken block": lz4_frame([_flipped(lz4_block(CONTENT), 4, 0xF0)]),
    }
    large = [
        FramingCase(f"lz4 block maximum {d >> 4}", LZ4, lz4_frame(LARGE_CONTENT, descriptor=d), LARGE_CONTENT)
        for d in (0x40, 0x50, 0x60, 0x70)
    ]
    return _cases(LZ4, accepted, rejected) + large


def _zstd_cases() -> list[FramingCase]:
    usual = zstd_frame(CONTENT)
    summed = zstd_frame(CONTENT, checksum=True)
    window = usual[:5] + b"%c" + usual[6:]
    accepted = {
        "one frame": usual,
        "a content size": zstd_frame(CONTENT, content_size=True),
        "a checksum": summed,
        "two frames": zstd_frame(FIRST) + zstd_frame(SECOND, checksum=True, content_size=True),
        "an empty frame between": zstd_frame(FIRST) + zstd_frame(b"") + zstd_frame(SECOND),
        "skippable frames": zstd_skippable(b"x")
        + zstd_frame(FIRST)
        + zstd_skippable(b"", 15)
        + zstd_frame(SECOND),
        "a skippable frame behind": usual + zstd_skippable(b"abc", 7),
        "a window of 128 MiB": window.replace(b"%c", b"\x88"),
        "the smallest window": window.replace(b"%c", b"\0"),
    }
    rejected = {
        "empty payload": b"",
        "another magic": b"\0" + usual[1:],
        "wrong checksum": _flipped(summed, -1),
        "a window above 128 MiB": window.replace(b"%c", b"\x89"),
        "a window of 256 MiB": window.replace(b"%c", b"\x90"),
        "the reserved header bit": _flipped(usual, 4, 0x08),
        "a dictionary that is not there": usual[:4] + b"\x01" + usual[5:6] + b"\7" + usual[6:],
        "the reserved block type": _flipped(usual, 6, 0x06),
        "cut header": usual[:5],
        "cut block": usual[:-1],
        "cut checksum": summed[:-1],
        "cut second frame": zstd_frame(FIRST) + zstd_frame(SECOND)[:-3],
        "cut header of a second frame": usual + zstd_frame(SECOND)[:5],
        # a frame that declares 1 byte and has an empty raw block
        "a content size of an empty frame": b"\x28\xb5\x2f\xfd\x20\x01\x01\x00\x00",
        "another content size of an empty frame": b"\x28\xb5\x2f\xfd\x20\xee\x01\x00\x00",
        "cut skippable frame": usual + zstd_skippable(b"abc")[:-1],
        "a byte behind": usual + b"\0",
        "garbage behind": usual + b"garbage behind",
    }
    large = [
        FramingCase("zstd large", ZSTD, zstd_frame(LARGE_CONTENT), LARGE_CONTENT),
        FramingCase("zstd level 22", ZSTD, zstd_frame(LARGE_CONTENT, level=22), LARGE_CONTENT),
    ]
    return _cases(ZSTD, accepted, rejected) + large


def _cases(codec: int, accepted: dict[str, bytes], rejected: dict[str, bytes]) -> list[FramingCase]:
    codec_name = ("none", "gzip", "snappy", "lz4", "zstd")[codec]
    cases = [
        FramingCase(f"{codec_name} {name}", codec, payload, CONTENT) for name, payload in accepted.items()
    ]
    return cases + [
        FramingCase(f"{codec_name} {name}", codec, payload, None) for name, payload in rejected.items()
    ]


# zstd-jni does not detect a missing end of a later frame as long as that frame has no content yet.
STRICTER = frozenset({"zstd cut skippable frame", "zstd cut header of a second frame"})

CASES = _gzip_cases() + _snappy_cases() + _lz4_cases() + _zstd_cases()
