"""A small log directory with all features of the format, to be damaged.

    segment 0    cleaned: formats 0 and 1, alone and in wrappers, gaps, a delete horizon, an emptied batch
    segment 20   closed: each codec, headers, nulls, transactions that commit, abort and continue after it
    segment 37   the last one: their end, the next transactions of the producers that aborted, and one
                 transaction that stays open at 48

Producer ids 1, 2 and 3 differ by one bit, as do the types of the two end markers.
"""
from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from crc32c import crc32c

from tests.models.builder import Batch, PlainRecord, end_marker, legacy_entry, legacy_wrapper

__all__ = [
    "LAST_STABLE_OFFSET",
    "LOG_END_OFFSET",
    "MODES",
    "PARTITION",
    "ROOT",
    "SEGMENTS",
    "UNDECIDED_OR_ABORTED",
    "Piece",
    "image",
    "log",
]

ROOT, PARTITION = "/logs", "/logs/t-0"
LAST_STABLE_OFFSET, LOG_END_OFFSET = 48, 53
ABORT, COMMIT = 0, 1
MODES = ("clean", "killed", "copied", "bare")
# Offsets of records whose transactions were aborted or are open.
UNDECIDED_OR_ABORTED = {27, 28, 34, 35, 48, 51}
EPOCH = 5


class Piece(NamedTuple):
    """One batch at its place in the segment."""

    position: int
    content: bytes
    base_offset: int
    last_offset: int
    producer_id: int = -1
    kind: str = "data"

    @property
    def end(self) -> int:
        return self.position + len(self.content)


def _record(offset: int) -> PlainRecord:
    """Return a record whose value contains its offset; keys and headers are present, empty and null."""
    headers = [(b"h", b"x" * 9), (b"h", None), (b"", b"")] if offset % 3 == 0 else []
    return PlainRecord((None, b"", b"key")[offset % 3], b"value of %d" % offset, 1000 * offset, headers)


def _data(base_offset: int, count: int, **fields: Any) -> Piece:
    records = [_record(base_offset + i) for i in range(count)]
    batch = Batch(records=records, base_offset=base_offset, partition_leader_epoch=EPOCH, **fields)
    producer_id = batch.producer_id if batch.transactional else -1
    return Piece(0, batch.encode(), base_offset, base_offset + count - 1, producer_id)


def _transactional(base_offset: int, count: int, producer_id: int, epoch: int = 0, **fields: Any) -> Piece:
    return _data(
        base_offset,
        count,
        transactional=True,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        **fields,
    )


def _marker(base_offset: int, producer_id: int, control_type: int, epoch: int = 1) -> Piece:
    content = end_marker(
        control_type,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=epoch,
        partition_leader_epoch=EPOCH,
        timestamp=1000 * base_offset,
    )
    return Piece(0, content, base_offset, base_offset, producer_id, "commit" if control_type else "abort")


def _entries(first: int, magic: int, relative_to: int = 0) -> list[bytes]:
    """Return two entries of a wrapper; in format 1 their offsets are relative to the first."""
    return [
        legacy_entry(each - relative_to, b"k", b"value of %d" % each, magic=magic, timestamp=1000 * each)
        for each in (first, first + 1)
    ]


def _cleaned() -> Iterator[Piece]:
    yield Piece(0, legacy_entry(0, b"k", b"value of 0", magic=0), 0, 0)
    yield Piece(0, legacy_wrapper(_entries(1, 0), 2, codec=1, magic=0), 1, 2)
    yield Piece(0, legacy_entry(3, None, b"value of 3", timestamp=3000), 3, 3)
    yield Piece(0, legacy_wrapper(_entries(4, 1, 4), 5, codec=3, timestamp=5000), 4, 5)
    yield Piece(0, legacy_wrapper(_entries(6, 1, 6), 7, codec=2, timestamp=7000, log_append_time=True), 6, 7)
    kept = [_record(11)._replace(offset_delta=1), _record(13)._replace(offset_delta=3)]
    where = {"partition_leader_epoch": EPOCH, "delete_horizon": 99_000}
    yield Piece(0, Batch(records=kept, base_offset=10, last_offset_delta=4, **where).encode(), 10, 14)
    emptied = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 3, "last_offset_delta": 2}
    yield Piece(0, Batch(base_offset=15, partition_leader_epoch=EPOCH, **emptied).encode(), 15, 17)


def _closed() -> Iterator[Piece]:
    yield _data(20, 3)
    yield _data(23, 2, codec=1, producer_id=7, producer_epoch=0, base_sequence=6)
    yield _transactional(25, 2, 1, codec=2)
    yield _transactional(27, 2, 2, codec=3)
    yield _transactional(29, 1, 1, codec=4)
    yield _marker(30, 1, COMMIT)
    yield _data(31, 2, log_append_time=31_500)
    yield _marker(33, 2, ABORT)
    yield _transactional(34, 2, 3)
    yield _data(36, 1)


def _last() -> Iterator[Piece]:
    yield _data(37, 2, codec=4)
    yield _marker(39, 3, ABORT)
    yield _transactional(40, 2, 1, epoch=1)
    yield _data(42, 1)
    yield _marker(43, 1, COMMIT, epoch=2)
    for producer_id, first in ((2, 44), (3, 46)):
        yield _transactional(first, 1, producer_id, epoch=1)
        yield _marker(first + 1, producer_id, COMMIT, epoch=2)
    yield _transactional(48, 1, 4)
    yield _data(49, 2, codec=2)
    yield _transactional(51, 1, 5)
    yield _marker(52, 5, ABORT)


def _placed(pieces: Iterator[Piece]) -> list[Piece]:
    placed: list[Piece] = []
    for piece in pieces:
        placed.append(piece._replace(position=placed[-1].end if placed else 0))
    return placed


SEGMENTS = {0: _placed(_cleaned()), 20: _placed(_closed()), 37: _placed(_last())}


def log(base_offset: int) -> bytes:
    """Return the content of one segment."""
    return b"".join(piece.content for piece in SEGMENTS[base_offset])


def _offset_index(base_offset: int) -> bytes:
    return b"".join(
        struct.pack(">ii", piece.last_offset - base_offset, piece.position)
        for piece in SEGMENTS[base_offset][1::3]
    )


def _time_index(base_offset: int) -> bytes:
    return b"".join(
        struct.pack(">qi", 1000 * piece.last_offset, piece.last_offset - base_offset)
        for piece in SEGMENTS[base_offset]
        if piece.kind != "data"
    )


def _txn_index(*entries: tuple[int, int, int, int]) -> bytes:
    return b"".join(struct.pack(">hqqqq", 0, *entry) for entry in entries)


def _snapshot(*entries: tuple[int, int, int, int, int, int, int, int]) -> bytes:
    """Encode a snapshot from producer id, epoch, last sequence and offset, offset delta, time, coordinator
    epoch, first offset."""
    content = struct.pack(">i", len(entries)) + b"".join(
        struct.pack(">qhiqiqiq", *entry) for entry in entries
    )
    return struct.pack(">hI", 1, crc32c(content)) + content


IDLE, NO_BATCH = -1, (-1, -1, 0)
SNAPSHOTS = {
    20: _snapshot((7, 0, 5, 17, 2, 17_000, -1, IDLE)),
    37: _snapshot(
        (1, 1, *NO_BATCH, 30_000, 0, IDLE),
        (2, 1, *NO_BATCH, 33_000, 0, IDLE),
        (3, 0, 1, 35, 1, 34_001, -1, 34),
    ),
    53: _snapshot(
        (1, 2, *NO_BATCH, 43_000, 0, IDLE),
        (2, 2, *NO_BATCH, 45_000, 0, IDLE),
        (3, 2, *NO_BATCH, 47_000, 0, IDLE),
        (4, 0, 0, 48, 0, 48_000, -1, 48),
        (5, 1, *NO_BATCH, 52_000, 0, IDLE),
    ),
}
TXN_INDEXES = {20: _txn_index((2, 27, 33, 34)), 37: _txn_index((3, 34, 39, 40), (5, 51, 52, 48))}


def image(mode: str) -> dict[str, bytes]:
    """Return all files of the directory.

    ``clean``: after a clean stop; ``killed``: to be recovered from 20 on; ``copied``: the partition's
    directory alone; ``bare``: its segments alone.
    """
    files = {
        "leader-epoch-checkpoint": b"0\n1\n5 10\n",
        "partition.metadata": b"version: 0\ntopic_id: N4tB6Z2CT0OOSL8ncYwsKQ",
    }
    for base_offset in SEGMENTS:
        files[f"{base_offset:020}.log"] = log(base_offset)
        files[f"{base_offset:020}.index"] = _offset_index(base_offset)
        files[f"{base_offset:020}.timeindex"] = _time_index(base_offset)
    files |= {f"{base_offset:020}.txnindex": content for base_offset, content in TXN_INDEXES.items()}
    files |= {f"{offset:020}.snapshot": content for offset, content in SNAPSHOTS.items()}
    if mode != "clean":
        del files[f"{LOG_END_OFFSET:020}.snapshot"]
    found = {f"{PARTITION}/{name}": content for name, content in files.items()}
    if mode == "bare":
        return {name: content for name, content in found.items() if name.endswith(".log")}
    if mode != "copied":
        recovery_point = LOG_END_OFFSET if mode == "clean" else 20
        found[f"{ROOT}/recovery-point-offset-checkpoint"] = b"0\n1\nt 0 %d\n" % recovery_point
        found[f"{ROOT}/replication-offset-checkpoint"] = b"0\n1\nt 0 %d\n" % LOG_END_OFFSET
        found[f"{ROOT}/meta.properties"] = b"version=1\ncluster.id=A\nnode.id=1\n"
    if mode == "clean":
        found[f"{ROOT}/.kafka_cleanshutdown"] = b'{"version":0,"brokerEpoch":1}'
    return found
