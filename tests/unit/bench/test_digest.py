"""The digest that decides whether two sides read the same records."""

from __future__ import annotations

import struct

import pytest

from bench.digest import Digest, DigestBuilder
from bench.processes import cat_digest, dump_digest
from txnkafka._core.columns import RecordColumns
from txnkafka._core.crc32c import crc32c
from txnkafka._core.decode import decode_batches
from txnkafka._core.read_committed import select
from txnkafka._core.scan import scan

Pair = tuple[bytes | None, bytes | None]
RECORDS: list[Pair] = [(b"key", b"value"), (None, b""), (b"", None), (b"k" * 40, b"v" * 60)]


def varint(n: int) -> bytes:
    """Encode a small number in zigzag: one or two bytes."""
    twice = 2 * n
    return bytes([twice]) if twice < 0x80 else bytes([twice & 0x7F | 0x80, twice >> 7])


def field(content: bytes | None) -> bytes:
    return b"\x01" if content is None else varint(len(content)) + content


def batch(records: list[Pair]) -> bytes:
    bodies = [
        b"\0\0" + varint(i) + field(key) + field(value) + b"\0" for i, (key, value) in enumerate(records)
    ]
    content = b"".join(varint(len(body)) + body for body in bodies)
    tail = struct.pack(">hiqqqhii", 0, len(records) - 1, 1000, 1000, -1, -1, -1, len(records)) + content
    return struct.pack(">qiibI", 7, len(tail) + 9, 0, 2, crc32c(tail)) + tail


def of_columns(data: bytes, *, views: bool) -> Digest:
    index, columns, builder = scan(data), RecordColumns(views=views), DigestBuilder()
    decode_batches(data, index, select(index), 0, len(index), columns)
    if views:
        builder.add_views(columns, data)
    else:
        builder.add_copies(columns)
    return builder.digest()


def of_records(records: list[Pair]) -> Digest:
    builder = DigestBuilder()
    for i, (key, value) in enumerate(records):
        builder.add_record(7 + i, 1000, key, value)
    return builder.digest()


@pytest.mark.parametrize("views", [False, True])
def test_columns_and_records_agree(views: bool) -> None:
    assert of_columns(batch(RECORDS), views=views) == of_records(RECORDS)


@pytest.mark.parametrize(
    "other",
    [
        [(b"key", b"value"), (None, b""), (b"", b""), (b"k" * 40, b"v" * 60)],
        [(b"", b""), (None, b"value"), (b"key", None), (b"k" * 40, b"v" * 60)],
        [(b"ke", b"yvalue"), (None, b""), (b"", None), (b"k" * 41, b"v" * 59)],
        [(b"key", b"value"), (None, b""), (b"", None), (b"k" * 40, b"v" * 59 + b"w")],
        [(b"key", b"value"), (None, b""), (b"", None)],
    ],
)
def test_any_difference_shows(other: list[Pair]) -> None:
    assert of_records(other) != of_records(RECORDS)


def test_the_two_commands_outputs_are_read_alike() -> None:
    dumped = [
        "Dumping 00.log\n",
        "baseOffset: 7 lastOffset: 8 count: 2 baseSequence: -1 isvalid: true\n",
        "| offset: 7 CreateTime: 1000 keySize: 3 valueSize: 5 headerKeys: [] key: key payload: va ue\n",
        "| offset: 8 CreateTime: 1000 keySize: -1 valueSize: 1 sequence: -1 headerKeys: [] payload: v\n",
    ]
    printed = [
        '{"offset":7,"timestamp":1000,"key":"a2V5","value":"dmEgdWU="}\n',
        '{"offset":8,"timestamp":1000,"key":null,"value":"dg=="}\n',
    ]
    assert cat_digest(printed) == dump_digest(dumped) == of_records([(b"key", b"va ue"), (None, b"v")])
