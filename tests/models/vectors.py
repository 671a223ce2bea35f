"""Batches that Kafka's own classes wrote, with their content.

Source: MemoryRecordsBuilder of Apache Kafka 4.3.1, magic 0 and 1 through its legacy builder. The codec
vectors have two records, (key, 32 a) at 1 and (null, 32 a) at 2.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.models.record_batch import Record

__all__ = ["VECTORS", "Vector"]

T0 = 1_700_000_000_000


class Vector(NamedTuple):
    """One or more batches; ``records`` are all records in them, control records too."""

    log: bytes
    records: list[Record]


def _vector(text: str, *records: Record) -> Vector:
    return Vector(bytes.fromhex(text.replace("\n", "").replace(" ", "")), list(records))


def _record(
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    *,
    kind: int = 0,
    epoch: int | None = None,
) -> Record:
    return Record(offset, timestamp, kind, key, value, [], epoch)


A32 = b"a" * 32
_CODEC_RECORDS = (_record(0, 1, b"key", A32), _record(1, 2, None, A32))

VECTORS = {
    "plain": _vector(
        """
        0000000000000005000000480000000302c0b8a67200000000000200000000000003e800000000000003ebffffffffff
        ffffffffffffffffff0000000310000000026b0276000c0003020100000c000604000100
        """,
        _record(5, 1000, b"k", b"v", epoch=3),
        _record(6, 998, None, b"", epoch=3),
        _record(7, 1003, b"", None, epoch=3),
    ),
    "headers": _vector(
        """
        000000000000000000000043ffffffff021409eecb00000000000000000000000000010000000000000001ffffffffff
        ffffffffffffffffff0000000122000000026b027606026802780001026800
        """,
        Record(0, 1, 0, b"k", b"v", [("h", b"x"), ("", None), ("h", b"")], None),
    ),
    "transactional": _vector(
        """
        000000000000000a00000043000000000277cd122f0010000000010000018bcfe568000000018bcfe568010000000000
        000fa000077fffffff00000002100000000261023100100002020262023200
        """,
        _record(10, T0, b"a", b"1", epoch=0),
        _record(11, T0 + 1, b"b", b"2", epoch=0),
    ),
    "commit": _vector(
        """
        000000000000000c000000420000000002607a04a50030000000000000018bcfe568020000018bcfe568020000000000
        000fa00007ffffffff000000012000000008000000010c00000000002a00
        """,
        _record(12, T0 + 2, bytes.fromhex("00000001"), bytes.fromhex("00000000002a"), epoch=0),
    ),
    "abort": _vector(
        """
        000000000000000c0000004200000000029444d2ed0030000000000000018bcfe568020000018bcfe568020000000000
        000fa00007ffffffff000000012000000008000000000c00000000002a00
        """,
        _record(12, T0 + 2, bytes.fromhex("00000000"), bytes.fromhex("00000000002a"), epoch=0),
    ),
    "log append time": _vector(
        """
        000000000000000000000043ffffffff02f8cf278a00080000000100000000000000010000000000001e61ffffffffff
        ffffffffffffffffff0000000210000000026b02760010000202026b027700
        """,
        _record(0, 7777, b"k", b"v", kind=1),
        _record(1, 7777, b"k", b"w", kind=1),
    ),
    "delete horizon": _vector(
        """
        00000000000000000000003a00000000021e9f4b38004000000000000000000000138800000000000003e8ffffffffff
        ffffffffffffffffff000000011000bf3e00026b0100
        """,
        _record(0, 1000, b"k", None, epoch=0),
    ),
    "retained empty": _vector(
        """
        000000000000000a000000310000000002ff7ec7df001000000004ffffffffffffffff0000018bcfe568000000000000
        000fa000070000001400000000
        """,
    ),
    "gzip": _vector(
        """
        000000000000000000000059ffffffff0284848baf00010000000100000000000000010000000000000002ffffffffff
        ffffffffffffffffff000000021f8b08000000000000ff0b62606060cb4ead74482400187c18989818092b03006002d6
        b051000000
        """,
        *_CODEC_RECORDS,
    ),
    "snappy": _vector(
        """
        00000000000000000000005effffffff0208a6d9a200020000000100000000000000010000000000000002ffffffffff
        ffffffffffffffffff0000000282534e4150505900000000010000000100000019512452000000066b657940617a0100
        14004c00020201862700
        """,
        *_CODEC_RECORDS,
    ),
    "lz4": _vector(
        """
        00000000000000000000005effffffff02b7e9125100030000000100000000000000010000000000000002ffffffffff
        ffffffffffffffffff0000000204224d186040821e000000af52000000066b6579406101000c6f004c0002020127000a
        50616161610000000000
        """,
        *_CODEC_RECORDS,
    ),
    "zstd": _vector(
        """
        000000000000000000000055ffffffff0275d7320c00040000000100000000000000010000000000000002ffffffffff
        ffffffffffffffffff0000000228b52ffd0058c400008052000000066b65794061004c0002020102004a39a501480100
        00
        """,
        *_CODEC_RECORDS,
    ),
    "magic 0": _vector(
        """
        0000000000000003000000101fecd70a0000000000016b000000017600000000000000040000000fa50b8f630000ffff
        ffff0000000177
        """,
        _record(3, -1, b"k", b"v", kind=-1),
        _record(4, -1, None, b"w", kind=-1),
    ),
    "magic 1": _vector(
        """
        000000000000000300000018e4e321bc010000000000000003e8000000016b0000000176000000000000000400000017
        a4fabc97010000000000000003e9000000016bffffffff
        """,
        _record(3, 1000, b"k", b"v"),
        _record(4, 1001, b"k", None),
    ),
    "magic 1 lz4 wrapper": _vector(
        """
        0000000000000004000000611d59ef18010300000000000003edffffffff0000004b04224d186040823c000000160001
        00632727c06294011000cb03e8000000016b00000010610100032200002a0050262bb2f21209000002006b03edffffff
        ff320050616161616100000000
        """,
        _record(3, 1000, b"k", b"a" * 16),
        _record(4, 1005, None, b"a" * 16),
    ),
    "magic 0 lz4 wrapper": _vector(
        """
        00000000000000040000005530ef38440003ffffffff0000004704224d1860401a380000001200010091030000001f04
        ab6f320f007b016b00000010610100011b00fb020000040000001ec7ee31100000ffffffff2a00506161616161000000
        00
        """,
        _record(3, -1, b"k", b"a" * 16, kind=-1),
        _record(4, -1, None, b"a" * 16, kind=-1),
    ),
}
