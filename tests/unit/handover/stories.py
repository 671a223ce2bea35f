"""A data directory with closed segments, and lies that its derived files can tell: each file passes the
checks that Apache Kafka makes after a clean stop, and contradicts the log."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import pairwise

from crc32c import crc32c

from tests.unit.broker.node import NOW, Node, Producer
from txnkafka._core.encode import encode_batch
from txnkafka.env import DataFiles
from txnkafka.error_codes import ErrorCode

__all__ = [
    "COMMITTED_VALUES",
    "LIES",
    "PARTITION",
    "SMALL",
    "Lie",
    "contents",
    "damaged",
    "replaced",
    "story",
    "told",
    "write_story",
]

PARTITION = "t-0"
ROUNDS = 12
SMALL = {"segment.bytes": "700", "index.interval.bytes": "80"}
COMMITTED_VALUES = [value for i in range(ROUNDS) for value in (b"plain-%d" % i, b"committed-%d" % i)]
INDEX, TIME, TXN = struct.Struct(">ii"), struct.Struct(">qi"), struct.Struct(">hqqqq")
SNAPSHOT_HEADER, SNAPSHOT_ENTRY = struct.Struct(">hIi"), struct.Struct(">qhiqiqiq")
NONE = ErrorCode.NONE


def write_story(node: Node, partition: int = 0) -> Producer:
    """Write to a partition of ``t``: plain, committed and aborted records in turn, with growing timestamps;
    at last a transaction that stays open, whose producer is returned."""
    name = f" {partition}" if partition else ""
    kept, dropped = Producer(node, f"kept{name}"), Producer(node, f"dropped{name}")
    for i in range(ROUNDS):
        node.append(memoryview(encode_batch([(None, b"plain-%d" % i, NOW + 1000 * i)])), partition)
        assert dropped.send(b"aborted-%d" % i, partition) == [NONE]
        assert kept.send(b"committed-%d" % i, partition) == [NONE]
        assert dropped.end(commit=False) == NONE
        assert kept.end() == NONE
    left_open = Producer(node, f"open{name}")
    assert left_open.send(b"undecided", partition) == [NONE]
    return left_open


def story(files: DataFiles, path: str = "/data", *, partitions: int = 1, **configs: int) -> None:
    """The directory, with the same in each partition, stopped cleanly."""
    node = Node(files, path, topic_defaults=SMALL, **configs)
    assert node.create("t", partitions, retention_ms="-1") == NONE
    for partition in range(partitions):
        write_story(node, partition)
    node.close()


def contents(files: DataFiles, path: str = "/data") -> dict[str, bytes]:
    """All files below a path, by name; the lines of checkpoints, whose order means nothing, are sorted."""
    found: dict[str, bytes] = {}
    for entry in files.list(path):
        full = files.join(path, entry.name)
        if entry.is_directory:
            found.update(contents(files, full))
        else:
            content = files.read(full, 1 << 24)
            is_checkpoint = entry.name.endswith("offset-checkpoint")
            found[full] = b"".join(sorted(content.splitlines(keepends=True))) if is_checkpoint else content
    return found


def replaced(files: DataFiles, path: str, content: bytes | None) -> None:
    """Put another content into a file; None removes it."""
    files.remove(path)
    if content is not None:
        file = files.create(path)
        file.write(0, [content])
        file.close()


# Of index files


def positions_of_the_next_entry(content: bytes) -> bytes:
    """Each entry leads to a later batch: what lies between is skipped."""
    entries = list(INDEX.iter_unpack(content))
    return b"".join(INDEX.pack(offset, position) for (offset, _), (_, position) in pairwise(entries))


def timestamps_too_small(content: bytes) -> bytes:
    """A lookup of a later time skips records that have it."""
    return b"".join(TIME.pack(timestamp - 900, offset) for timestamp, offset in TIME.iter_unpack(content))


def without_the_last_entry(content: bytes) -> bytes:
    """The segment seems to end earlier in time, and is not searched."""
    return content[: -TIME.size]


def empty(content: bytes) -> bytes:
    return b""


def nothing(content: bytes) -> None:
    return None


# Of transaction indexes


def without_the_first_abort(content: bytes) -> bytes:
    """Its records are shown."""
    return content[TXN.size :]


def begins_later(content: bytes) -> bytes:
    """Its first records are shown."""
    return _changed(content, lambda row: (*row[:2], row[2] + 1, *row[3:]))


def begins_earlier(content: bytes) -> bytes:
    """Committed records of the same producer may be hidden."""
    return _changed(content, lambda row: (*row[:2], max(0, row[2] - 3), *row[3:]))


def of_another_producer(content: bytes) -> bytes:
    """Committed records are hidden, and aborted ones shown."""
    return _changed(content, lambda row: (row[0], row[1] + 1, *row[2:]))


def _changed(content: bytes, change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> bytes:
    first, *rest = TXN.iter_unpack(content)
    return b"".join(TXN.pack(*row) for row in (change(first), *rest))


# Of snapshots


def _snapshot(entries: list[tuple[int, ...]]) -> bytes:
    body = struct.pack(">i", len(entries)) + b"".join(SNAPSHOT_ENTRY.pack(*entry) for entry in entries)
    return struct.pack(">hI", 1, crc32c(body)) + body


def _entries(content: bytes) -> list[tuple[int, ...]]:
    return list(SNAPSHOT_ENTRY.iter_unpack(content[SNAPSHOT_HEADER.size :]))


def without_producers(content: bytes) -> bytes:
    """The open transaction is forgotten, its records are shown."""
    return _snapshot([])


def without_transactions(content: bytes) -> bytes:
    """The same, with its producers."""
    return _snapshot([(*entry[:7], -1) for entry in _entries(content)])


def later_transaction(content: bytes) -> bytes:
    """The first records of the open transaction are shown."""
    return _snapshot([(*entry[:7], entry[7] if entry[7] < 0 else 0) for entry in _entries(content)])


# Of leader epochs


def later_epochs(content: bytes) -> bytes:
    """A consumer is told that the log was truncated."""
    return b"0\n2\n0 0\n7 9\n"


Lie = tuple[str, Callable[[bytes], bytes | None]]
LIES: list[Lie] = [
    (".index", positions_of_the_next_entry),
    (".timeindex", timestamps_too_small),
    (".timeindex", without_the_last_entry),
    (".timeindex", empty),
    (".timeindex", nothing),
    (".txnindex", without_the_first_abort),
    (".txnindex", begins_later),
    (".txnindex", begins_earlier),
    (".txnindex", of_another_producer),
    (".txnindex", empty),
    (".txnindex", nothing),
    (".snapshot", without_producers),
    (".snapshot", without_transactions),
    (".snapshot", later_transaction),
    ("leader-epoch-checkpoint", later_epochs),
    ("leader-epoch-checkpoint", nothing),
    ("partition.metadata", nothing),
]


def told(files: DataFiles, lie: Lie, path: str = "/data", partition: str = PARTITION) -> Iterator[str]:
    """Let each file of the kind in turn tell the lie; yields its path. The caller restores the directory."""
    kind, change = lie
    directory = files.join(path, partition)
    names = [entry.name for entry in files.list(directory) if entry.name.endswith(kind)]
    if change is without_producers:
        names = names[-1:]  # in an older one they may be missing: they were idle for too long
    for name in names:
        full = files.join(directory, name)
        content = files.read(full, 1 << 20)
        changed = change(content) if content else content
        if changed != content:
            replaced(files, full, changed)
            yield full


def damaged(files: DataFiles, path: str = "/data") -> None:
    """Let every derived file of the partition lie at once, each in the first way there is for it."""
    wanted: dict[str, Lie] = {}
    for lie in LIES:
        wanted.setdefault(lie[0], lie)
    for lie in wanted.values():
        assert list(told(files, lie, path)), lie
