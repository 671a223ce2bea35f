"""Planted faults in the files beside the log: indexes, snapshots, checkpoints, names."""

from __future__ import annotations

import struct

from tests.models.log_directory import (
    TIME,
    TOPIC_ID,
    LogDirectory,
    commit,
    transactional,
)
from tests.models.producer_state import write_snapshot
from tests.unit.logdir.faults import FIRST, NEWEST, SECOND, planted

# Indexes


@planted("warning", "bad-index", f"{FIRST}.index", 8)
def a_position_inside_a_batch(it: LogDirectory) -> None:
    it.write().patch(it.file(0, "index"), 12, struct.pack(">i", it.position(0, 2) + 1))


@planted("warning", "bad-index", f"{FIRST}.index", 0)
def an_offset_below_the_batch(it: LogDirectory) -> None:
    it.write().patch(it.file(0, "index"), 0, struct.pack(">i", 1))


@planted("warning", "bad-index", f"{FIRST}.index", 32)
def a_fragment_of_an_entry(it: LogDirectory) -> None:
    path = it.write().file(0, "index")
    path.write_bytes(path.read_bytes() + b"\1\2\3")


@planted("warning", "bad-timeindex", f"{FIRST}.timeindex", 12)
def a_timestamp_that_is_not_the_largest(it: LogDirectory) -> None:
    it.write().patch(it.file(0, "timeindex"), 12, struct.pack(">q", TIME + 3))


@planted("warning", "bad-timeindex", f"{FIRST}.timeindex", 48)
def an_offset_behind_the_segment(it: LogDirectory) -> None:
    path = it.write().file(0, "timeindex")
    it.patch(path, 56, struct.pack(">i", 400))


@planted("warning", "bad-timeindex", f"{FIRST}.timeindex", 0)
def an_empty_time_index_of_a_segment_with_records(it: LogDirectory) -> None:
    it.write().file(0, "timeindex").write_bytes(b"")


@planted("warning", "bad-txnindex", f"{FIRST}.txnindex", 34)
def _(it: LogDirectory) -> None:
    path = it.write().file(0, "txnindex")
    path.write_bytes(path.read_bytes() + b"\1\2\3")


@planted("note", "missing-index", f"{SECOND}.index")
def _(it: LogDirectory) -> None:
    it.write().file(8, "index").unlink()


@planted("note", "missing-timeindex", f"{FIRST}.timeindex")
def _(it: LogDirectory) -> None:
    it.write().file(0, "timeindex").unlink()


@planted("error", "missing-txnindex", f"{FIRST}.txnindex")
def it_is_not_rebuilt_after_a_clean_stop(it: LogDirectory) -> None:
    it.write().file(0, "txnindex").unlink()


@planted("note", "missing-txnindex", f"{SECOND}.txnindex")
def a_recovered_segment_gets_a_new_one(it: LogDirectory) -> None:
    it.write(clean=False).file(8, "txnindex").unlink()


@planted("note", "orphan-index", f"{99:020}.index")
def _(it: LogDirectory) -> None:
    it.write().file(99, "index").write_bytes(b"")


@planted("error", "txnindex-contradicts-log", f"{FIRST}.txnindex", 0)
def a_committed_transaction_in_it(it: LogDirectory) -> None:
    path = it.write().file(0, "txnindex")
    path.write_bytes(struct.pack(">hqqqq", 0, 7, 0, 2, 3) + path.read_bytes())


@planted("error", "txnindex-lacks-entry", f"{FIRST}.txnindex")
def _(it: LogDirectory) -> None:
    it.write().file(0, "txnindex").write_bytes(b"")


@planted("note", "txnindex-lacks-entry", f"{SECOND}.txnindex")
def it_is_not_yet_written(it: LogDirectory) -> None:
    it.write(clean=False).file(8, "txnindex").write_bytes(b"")


@planted("error", "txnindex-wrong-entry", f"{FIRST}.txnindex", 0)
def _(it: LogDirectory) -> None:
    it.write().patch(it.file(0, "txnindex"), 10, struct.pack(">q", 4))


@planted("note", "txnindex-last-stable-offset", f"{SECOND}.txnindex", 0)
def _(it: LogDirectory) -> None:
    it.write().patch(it.file(8, "txnindex"), 26, struct.pack(">q", 6))


# Snapshots. Rows: producer id, epoch, coordinator epoch, timestamp, first offset of the open transaction,
# last sequence, last offset, offset delta

AT_END = [
    (7, 0, 0, TIME + 10, -1, 3, 7, 1),
    (8, 0, 0, TIME + 14, 13, 3, 14, 1),
    (9, 0, -1, TIME + 9, -1, 1, 9, 1),
]


def _snapshot(it: LogDirectory, rows: list[tuple[int, ...]], offset: int = 15) -> None:
    it.write().file(offset, "snapshot").write_bytes(write_snapshot(rows))


@planted("warning", "bad-snapshot", NEWEST, 2)
def _(it: LogDirectory) -> None:
    it.write().patch(it.file(15, "snapshot"), 20, b"\x99")


@planted("note", "missing-snapshot", NEWEST)
def the_newest(it: LogDirectory) -> None:
    it.write().file(15, "snapshot").unlink()


@planted("error", "missing-snapshot", NEWEST)
def all_while_a_transaction_is_open(it: LogDirectory) -> None:
    it.write()
    for path in it.partition.glob("*.snapshot"):
        path.unlink()


@planted("warning", "missing-snapshot", f"{8:020}.snapshot")
def all_while_no_transaction_is_open(it: LogDirectory) -> None:
    it.segments = {0: [transactional(0, 7, 0, 7), commit(7, 7)]}
    it.write().file(8, "snapshot").unlink()


@planted("note", "missing-snapshot", NEWEST)
def all_after_a_kill(it: LogDirectory) -> None:
    it.write(clean=False).file(8, "snapshot").unlink()


@planted("warning", "snapshot-beyond-log-end", f"{20:020}.snapshot")
def _(it: LogDirectory) -> None:
    it.write().file(20, "snapshot").write_bytes(write_snapshot([]))


@planted("note", "snapshot-lacks-producer", NEWEST)
def an_idle_producer(it: LogDirectory) -> None:
    _snapshot(it, [row for row in AT_END if row[0] != 9])


@planted("error", "snapshot-contradicts-log", NEWEST)
def an_open_transaction_is_not_in_it(it: LogDirectory) -> None:
    _snapshot(it, [row for row in AT_END if row[0] != 8])


@planted("error", "snapshot-contradicts-log", NEWEST)
def a_producer_that_never_was(it: LogDirectory) -> None:
    _snapshot(it, [*AT_END, (10, 0, -1, TIME, -1, 1, 5, 1)])


@planted("error", "snapshot-contradicts-log", NEWEST)
def an_offset_that_is_not_below_its_own(it: LogDirectory) -> None:
    _snapshot(it, [*AT_END[:2], (9, 0, -1, TIME + 9, -1, 1, 15, 1)])


@planted("warning", "snapshot-contradicts-log", f"{SECOND}.snapshot")
def an_older_one(it: LogDirectory) -> None:
    _snapshot(it, [(7, 0, 0, TIME + 7, 6, 3, 7, 1), (8, 1, 0, TIME + 5, -1, 1, 4, 1)], 8)


# The directory


@planted("warning", "bad-checkpoint", "replication-offset-checkpoint")
def _(it: LogDirectory) -> None:
    (it.write().root / "replication-offset-checkpoint").write_text("0\nx\n")


@planted("note", "bad-clean-shutdown-file", ".kafka_cleanshutdown")
def _(it: LogDirectory) -> None:
    (it.write().root / ".kafka_cleanshutdown").write_text("{")


@planted("warning", "bad-meta-properties", "meta.properties")
def _(it: LogDirectory) -> None:
    (it.write().root / "meta.properties").write_text("version=1\n")


@planted("warning", "missing-meta-properties", "meta.properties")
def _(it: LogDirectory) -> None:
    (it.write().root / "meta.properties").unlink()


@planted("warning", "foreign-directory", "lost+found")
def _(it: LogDirectory) -> None:
    (it.write().root / "lost+found").mkdir()


@planted("warning", "foreign-file", "42.log")
def _(it: LogDirectory) -> None:
    (it.write().partition / "42.log").write_bytes(b"")


@planted("note", "leftover-file", f"{FIRST}.log.deleted")
def _(it: LogDirectory) -> None:
    it.write().file(0, "log.deleted").write_bytes(b"")


def _checkpoint(it: LogDirectory, name: str) -> None:
    (it.write().root / name).write_text("0\n1\nt 0 16\n")


@planted("error", "high-watermark-beyond-log-end", "replication-offset-checkpoint")
def _(it: LogDirectory) -> None:
    _checkpoint(it, "replication-offset-checkpoint")


@planted("warning", "recovery-point-beyond-log-end", "recovery-point-offset-checkpoint")
def _(it: LogDirectory) -> None:
    _checkpoint(it, "recovery-point-offset-checkpoint")


@planted("error", "log-start-beyond-log-end", "log-start-offset-checkpoint")
def _(it: LogDirectory) -> None:
    _checkpoint(it, "log-start-offset-checkpoint")


@planted("warning", "missing-partition-metadata", "partition.metadata")
def _(it: LogDirectory) -> None:
    (it.write().partition / "partition.metadata").unlink()


@planted("note", "other-directory", f"t-1.{'0' * 32}-stray")
def _(it: LogDirectory) -> None:
    (it.write().root / f"t-1.{'0' * 32}-stray").mkdir()


def _other_partition(it: LogDirectory, number: int, topic_id: str) -> None:
    folder = it.root / f"t-{number}"
    folder.mkdir()
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")


@planted("warning", "topic-id-mismatch", "partition.metadata")
def one_of_three(it: LogDirectory) -> None:
    it.write()
    _other_partition(it, 1, TOPIC_ID)
    _other_partition(it, 2, "AAAAAAAAAAEAAAAAAAAAAg")
