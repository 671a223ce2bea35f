"""Builders of hostile log directories: names, links, special files, and derived files whose size or shape is
chosen to be expensive.

``KINDS`` maps a name to a function that adds the hostile part to a log directory with the valid partition
``good-0``. Each function also gets ``outside``, a directory beside the log directory with a file of another
application, which must not change.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

from tests.models.builder import Batch, PlainRecord, end_marker
from txnkafka._core.crc32c import crc32c

__all__ = ["KINDS", "build", "data", "log_file", "partition", "sparse_snapshot"]

MEGABYTE = 1 << 20
VICTIM = b"a file of somebody else, which nothing may change\n" * 40
SNAPSHOT_ENTRY, TXN_INDEX_ENTRY = 46, 34


def data(base_offset: int, count: int = 2, **fields: object) -> bytes:
    """Encode a batch of small records."""
    records = [PlainRecord(b"k", b"value", 1_700_000_000_000 + i) for i in range(count)]
    return Batch(records=records, base_offset=base_offset, **fields).encode()  # type: ignore[arg-type]


def partition(directory: Path, name: str = "bad-0", *batches: bytes) -> Path:
    """Write a partition directory with one segment."""
    path = directory / name
    path.mkdir()
    log_file(path).write_bytes(b"".join(batches) or data(0))
    return path


def log_file(path: Path, kind: str = "log", offset: int = 0) -> Path:
    """Return the path of a file of the segment at ``offset``."""
    return path / f"{offset:020d}.{kind}"


def build(kind: str, root: Path) -> Path:
    """Build the hostile directory ``root/logs``, beside ``root/outside``."""
    directory, outside = root / "logs", root / "outside"
    directory.mkdir()
    outside.mkdir()
    partition(directory, "good-0", data(0), data(2))
    (outside / "victim").write_bytes(VICTIM)
    KINDS[kind](directory, outside)
    return directory


# Links


def linked_indexes(directory: Path, outside: Path) -> None:
    path = partition(directory)
    for kind in ("index", "timeindex", "txnindex"):
        log_file(path, kind).symlink_to(outside / "victim")


def linked_log(directory: Path, outside: Path) -> None:
    """A valid log with garbage at its end, which recovery truncates."""
    path = partition(directory)
    (outside / "log").write_bytes(data(0) + b"and bytes of somebody else behind it, which are longer")
    log_file(path).unlink()
    log_file(path).symlink_to(outside / "log")


def linked_swap(directory: Path, outside: Path) -> None:
    """The result of a compaction, as links."""
    path = partition(directory, "bad-0", data(0))
    (outside / "log").write_bytes(data(0))
    (path / f"{0:020d}.log.swap").symlink_to(outside / "log")
    (path / f"{5:020d}.log.deleted").symlink_to(outside / "victim")


def linked_lock(directory: Path, outside: Path) -> None:
    """A dangling link: opening it for writing creates a file elsewhere."""
    (directory / ".lock").symlink_to(outside / "made-elsewhere")


def linked_small_files(directory: Path, outside: Path) -> None:
    path = partition(directory)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", ".kafka_cleanshutdown"):
        (directory / name).symlink_to(outside / "victim")
        (directory / f"{name}.tmp").symlink_to(outside / "made-elsewhere")
    for name in ("leader-epoch-checkpoint", "partition.metadata"):
        (path / name).symlink_to(outside / "victim")
        (path / f"{name}.tmp").symlink_to(outside / "made-elsewhere")


def linked_partition(directory: Path, outside: Path) -> None:
    (directory / "bad-0").symlink_to(partition(outside, "elsewhere-0", data(0), b"a torn tail"))


def linked_leftovers(directory: Path, outside: Path) -> None:
    """Directories to be deleted: a link, and one that contains a link."""
    (directory / f"gone-0.{'0' * 32}-delete").symlink_to(outside)
    path = directory / f"gone-1.{'0' * 32}-delete"
    path.mkdir()
    (path / "below").symlink_to(outside)


def loops(directory: Path, outside: Path) -> None:
    for name in ("loop", "bad-0", "replication-offset-checkpoint"):
        (directory / name).symlink_to(name)
    name = f"{0:020d}.log"
    path = partition(directory, "bad-1")
    (path / name).unlink()
    (path / name).symlink_to(name)


# Special files


def fifo_lock(directory: Path, outside: Path) -> None:
    os.mkfifo(directory / ".lock")


def fifos(directory: Path, outside: Path) -> None:
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", ".kafka_cleanshutdown"):
        os.mkfifo(directory / name)
    path = partition(directory)
    for name in ("leader-epoch-checkpoint", "partition.metadata", f"{0:020d}.index", f"{2:020d}.snapshot"):
        os.mkfifo(path / name)
    path = partition(directory, "bad-1")
    log_file(path).unlink()
    os.mkfifo(log_file(path))


def fifo_meta_properties(directory: Path, outside: Path) -> None:
    os.mkfifo(directory / "meta.properties")


def directories(directory: Path, outside: Path) -> None:
    """Directories in the place of files."""
    for name in ("replication-offset-checkpoint", ".kafka_cleanshutdown"):
        (directory / name).mkdir()
    for number, name in enumerate((f"{0:020d}.log", f"{0:020d}.timeindex", "leader-epoch-checkpoint")):
        path = partition(directory, f"bad-{number}")
        (path / name).unlink(missing_ok=True)
        (path / name).mkdir()


def deep_leftover(directory: Path, outside: Path) -> None:
    """More levels than the recursion limit."""
    path = str(directory / f"gone-0.{'0' * 32}-delete")
    for _ in range(1_500):
        os.mkdir(path)
        path += "/d"


# Names


def names(directory: Path, outside: Path) -> None:
    for name in (b"bad\xff-0", b"two words-0", b"new\nline-0", b"\x1b[31m-0", b"t-007", b"t-7", b"a-+1"):
        path = Path(os.fsdecode(os.fsencode(directory) + b"/" + name))
        path.mkdir()
        log_file(path).write_bytes(data(0))
    (directory / ("-" * 240 + "x-delete")).mkdir()
    (directory / "none-99999999999").mkdir()


def largest_partition(directory: Path, outside: Path) -> None:
    """An open transaction without an owner, and a partition number that must not bound a loop."""
    fields = {"transactional": True, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    partition(directory, "bad-0", data(0, **fields))
    partition(directory, f"__transaction_state-{2**31 - 1}", b"")
    partition(directory, f"__consumer_offsets-{2**31 - 1}", b"")
    partition(directory, f"many-{2**31 - 1}")


# Derived files


def meta_properties(directory: Path, outside: Path) -> None:
    (directory / "meta.properties").write_bytes(b"a" + b" " * 1_500 + b"\\u")


def large_meta_properties(directory: Path, outside: Path) -> None:
    (directory / "meta.properties").write_bytes(b"a" * 60_000 + b"\\u")


def empty_lines(directory: Path, outside: Path) -> None:
    """A checkpoint of empty lines, with a matching count."""
    for name, count in (("replication-offset-checkpoint", 60 * MEGABYTE), ("log-start-offset-checkpoint", 9)):
        lines = b"\n" * (count - 1 if count > 9 else 15 * MEGABYTE)
        (directory / name).write_bytes(b"0\n%d\n" % len(lines) + lines)
    path = partition(directory)
    (path / "leader-epoch-checkpoint").write_bytes(b"0\n%d\n" % (3 * MEGABYTE) + b"\n" * (3 * MEGABYTE))


def contradictions(directory: Path, outside: Path, count: int = 16_000) -> None:
    """Committed transactions, and as many entries of the .txnindex at other offsets."""
    fields = {"producer_id": 7, "producer_epoch": 0}
    batches = []
    for i in range(count):
        batches.append(data(2 * i, 1, transactional=True, base_sequence=i, **fields))
        batches.append(end_marker(1, base_offset=2 * i + 1, **fields))  # type: ignore[arg-type]
    path = partition(directory, "bad-0", *batches)
    write_txn_index(path, [(0, (1 << 40) + i) for i in range(count)])


def overlapping_contradictions(directory: Path, outside: Path, count: int = 16_000) -> None:
    """The same, with entries that each hide a committed transaction."""
    contradictions(directory, outside, count)
    write_txn_index(directory / "bad-0", [(2 * i, 2 * i + 1) for i in range(count)])


def many_txn_index_entries(directory: Path, outside: Path, count: int = 50_000) -> None:
    """Entries of transactions that the log does not have."""
    write_txn_index(partition(directory), [(0, (1 << 40) + i) for i in range(count)])


def write_txn_index(path: Path, entries: list[tuple[int, int]]) -> None:
    """Write aborted transactions of producer 7, by their first and last offsets."""
    rows = (struct.pack(">hqqqq", 0, 7, first, last, first) for first, last in entries)
    log_file(path, "txnindex").write_bytes(b"".join(rows))


def sparse_snapshot(directory: Path, outside: Path, size: int = 128 * MEGABYTE) -> None:
    """Zeros with a valid checksum: one producer, millions of times."""
    count = size // SNAPSHOT_ENTRY
    covered = struct.pack(">i", count)
    crc, left, zeros = crc32c(covered), count * SNAPSHOT_ENTRY, bytes(MEGABYTE)
    while left:
        crc = crc32c(zeros[:left], crc)
        left -= min(left, MEGABYTE)
    with log_file(partition(directory), "snapshot", 2).open("wb") as file:
        file.write(struct.pack(">hI", 1, crc) + covered)
        file.truncate(10 + count * SNAPSHOT_ENTRY)


def snapshot_within_the_limit(directory: Path, outside: Path) -> None:
    """The largest valid snapshot."""
    sparse_snapshot(directory, outside, 60 * MEGABYTE)


def sparse_indexes(directory: Path, outside: Path) -> None:
    for name, size in (("bad-0", 1 << 30), ("bad-1", 100 * MEGABYTE)):
        path = partition(directory, name)
        for kind in ("index", "timeindex", "txnindex"):
            with log_file(path, kind).open("wb") as file:
                file.truncate(size)


def dense_indexes(directory: Path, outside: Path) -> None:
    """More entries than the log has batches, in order and out of order."""
    for name, entry in (("bad-0", struct.pack(">iii", 1, 1, 1)), ("bad-1", b"\xff" * 12)):
        path = partition(directory, name)
        for kind in ("index", "timeindex"):
            log_file(path, kind).write_bytes(entry * (40 * MEGABYTE // 12))


def far_offsets(directory: Path, outside: Path) -> None:
    """A log with offsets below its segment's base offset and too far above it."""
    partition(directory, "bad-0").joinpath(f"{0:020d}.log").rename(directory / "bad-0" / f"{9:020d}.log")
    partition(directory, "bad-1", data(0), data(1 << 40), data(2), data(1 << 62))


Builder = Callable[[Path, Path], None]
KINDS: dict[str, Builder] = {
    builder.__name__: builder
    for builder in (
        linked_indexes,
        linked_log,
        linked_swap,
        linked_lock,
        linked_small_files,
        linked_partition,
        linked_leftovers,
        loops,
        fifo_lock,
        fifos,
        fifo_meta_properties,
        directories,
        deep_leftover,
        names,
        largest_partition,
        meta_properties,
        large_meta_properties,
        empty_lines,
        contradictions,
        overlapping_contradictions,
        many_txn_index_entries,
        sparse_snapshot,
        snapshot_within_the_limit,
        sparse_indexes,
        dense_indexes,
        far_offsets,
    )
}
