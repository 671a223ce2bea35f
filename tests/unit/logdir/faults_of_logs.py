"""Planted faults in the log itself: bytes, offsets, producers, leader epochs."""

from __future__ import annotations

import struct

from tests.models.builder import Batch, PlainRecord, control_batch, legacy_entry
from tests.models.log_directory import (
    TIME,
    LogDirectory,
    abort,
    commit,
    data,
    idempotent,
    transactional,
)
from tests.unit.logdir.faults import FIRST, NEWEST, SECOND, planted

# The log


@planted("error", "corrupt-batch", f"{FIRST}.log", 0)
def _(it: LogDirectory) -> None:
    it.write().patch(it.file(0), 70, b"\xff")


@planted("error", "corrupt-batch", f"{SECOND}.log", 0)
def a_record_that_is_too_long(it: LogDirectory) -> None:
    it.segments[8][0] = idempotent(8, 9, 0, payload=b"\x7f\x00\x00", last_offset_delta=1)
    it.write()


@planted("error", "corrupt-batch", f"{SECOND}.log", 0)
def the_crc_of_magic_1(it: LogDirectory) -> None:
    it.segments[8] = [legacy_entry(8, None, b"v", timestamp=TIME + 8, crc=1)]
    it.write()


@planted("error", "corrupt-tail", f"{SECOND}.log", 0)
def in_what_recovery_checks(it: LogDirectory) -> None:
    it.write(clean=False).patch(it.file(8), 70, b"\xff")
    (it.root / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 8\n")


@planted("error", "damaged-segment", f"{FIRST}.log", 0)
def a_length_in_an_older_segment(it: LogDirectory) -> None:
    it.write().patch(it.file(0), 8, b"\x00\x00\x00\x02")


@planted("error", "torn-tail", f"{SECOND}.log", 0)
def a_torn_tail_after_a_clean_stop(it: LogDirectory) -> None:
    it.segments[8] = [idempotent(8, 9, 0)[:-5]]
    it.write()


@planted("warning", "torn-tail", f"{SECOND}.log", 0)
def a_torn_tail_after_a_kill(it: LogDirectory) -> None:
    it.segments[8] = [idempotent(8, 9, 0)[:-5]]
    it.write(clean=False)


@planted("warning", "zero-tail", f"{SECOND}.log", 0)
def _(it: LogDirectory) -> None:
    it.segments[8] = [bytes(100)]
    it.write(clean=False)


@planted("warning", "garbage-tail", f"{SECOND}.log", 0)
def _(it: LogDirectory) -> None:
    it.segments[8] = [b"\1" * 8 + b"\0\0\0\2" + b"\1" * 100]
    it.write(clean=False)


@planted("error", "misplaced-batch", f"{SECOND}.log", 0)
def a_base_offset_below_the_segment(it: LogDirectory) -> None:
    it.write().patch(it.file(8), 0, struct.pack(">q", 3))


@planted("error", "misplaced-batch", f"{FIRST}.log", 0)
def a_base_offset_in_the_next_segment(it: LogDirectory) -> None:
    it.segments[0] = [data(0, 8)]
    it.write().patch(it.file(0), 0, struct.pack(">q", 30))


@planted("warning", "repeated-batch", f"{SECOND}.log", len(data(8)))
def _(it: LogDirectory) -> None:
    it.segments[8] = [data(8), data(8)]
    it.write()


@planted("error", "missing-segment", f"{SECOND}.log")
def _(it: LogDirectory) -> None:
    it.segments = {0: [data(0)], 4: [data(4, 4)], 8: [data(8)]}
    it.write().file(4).unlink()
    for path in it.partition.glob(f"{4:020}.*"):
        path.unlink()


@planted("error", "missing-segment", f"{SECOND}.log")
def a_segment_that_was_emptied(it: LogDirectory) -> None:
    it.segments = {0: [data(0)], 2: [data(2, 6)], 8: [data(8)]}
    it.write().file(2).write_bytes(b"")


@planted("error", "undecided-transaction", f"{SECOND}.log")
def _(it: LogDirectory) -> None:
    it.segments = {0: [transactional(0, 7, 0)], 2: [commit(2, 7), data(3, 5)], 8: [abort(8, 7)]}
    it.write()
    for path in it.partition.glob(f"{2:020}.*"):
        path.unlink()


@planted("warning", "offset-overflow", f"{FIRST}.log")
def _(it: LogDirectory) -> None:
    it.segments = {0: [data(0)]}
    it.write(clean=False).file(0).write_bytes(data(0) + data(2**31))


def _offsets(*deltas: int) -> bytes:
    records = [PlainRecord(None, b"v", TIME + 8, offset_delta=delta) for delta in deltas]
    return Batch(records=records, base_offset=8, last_offset_delta=1, partition_leader_epoch=0).encode()


@planted("error", "record-offset-outside-batch", f"{SECOND}.log", 0)
def an_offset_delta_beyond_the_last(it: LogDirectory) -> None:
    it.segments[8] = [_offsets(0, 7)]
    it.write()


@planted("error", "record-offset-outside-batch", f"{SECOND}.log", 0)
def an_offset_twice(it: LogDirectory) -> None:
    it.segments[8] = [_offsets(1, 1)]
    it.write()


@planted("error", "record-offset-outside-batch", f"{SECOND}.log", 0)
def all_offsets_beyond_the_last(it: LogDirectory) -> None:
    it.segments[8] = [_offsets(50, 51)]
    it.write()


@planted("error", "unknown-magic", f"{SECOND}.log", 0)
def _(it: LogDirectory) -> None:
    it.write().patch(it.file(8), 16, b"\x09")


@planted("error", "unreadable-file", f"{FIRST}.log")
def a_directory_where_a_segment_should_be(it: LogDirectory) -> None:
    it.write().file(0).unlink()
    it.file(0).symlink_to("/dev/null")


@planted("error", "unreadable-partition", "t-0")
def a_directory_where_a_log_should_be(it: LogDirectory) -> None:
    it.write().file(0).unlink()
    it.file(0).mkdir()


@planted("error", "unreadable-file", f"{FIRST}.index")
def a_device_where_an_index_should_be(it: LogDirectory) -> None:
    it.write().file(0, "index").unlink()
    it.file(0, "index").symlink_to("/dev/null")


@planted("error", "unreadable-file", NEWEST)
def a_device_where_a_snapshot_should_be(it: LogDirectory) -> None:
    it.write().file(15, "snapshot").unlink()
    it.file(15, "snapshot").symlink_to("/dev/null")


# Producers: the faulty batch is always the second one of the second segment

ODD = len(idempotent(8, 9, 0))


def _second(it: LogDirectory, *batches: bytes) -> None:
    it.segments[8] = list(batches)
    it.write()


@planted("warning", "sequence-gap", f"{SECOND}.log", ODD)
def _(it: LogDirectory) -> None:
    _second(it, idempotent(8, 9, 0), idempotent(10, 9, 5))


@planted("warning", "sequence-back", f"{SECOND}.log", ODD)
def _(it: LogDirectory) -> None:
    _second(it, idempotent(8, 9, 7), idempotent(10, 9, 7))


@planted("note", "sequence-back", f"{SECOND}.log", ODD)
def a_producer_that_was_forgotten_begins_at_0(it: LogDirectory) -> None:
    _second(it, idempotent(8, 9, 7), idempotent(10, 9, 0))


@planted("warning", "producer-epoch-back", f"{SECOND}.log", ODD)
def _(it: LogDirectory) -> None:
    _second(it, idempotent(8, 9, 0, producer_epoch=3), idempotent(10, 9, 0, producer_epoch=2))


@planted("warning", "marker-epoch-back", f"{SECOND}.log", ODD)
def _(it: LogDirectory) -> None:
    _second(it, transactional(8, 9, 0, producer_epoch=3), commit(10, 9, producer_epoch=2))


@planted("warning", "coordinator-epoch-back", f"{SECOND}.log", len(commit(8, 9)))
def _(it: LogDirectory) -> None:
    _second(it, commit(8, 9, coordinator_epoch=4), commit(9, 9, coordinator_epoch=3))


@planted("warning", "non-transactional-in-transaction", f"{SECOND}.log", ODD)
def _(it: LogDirectory) -> None:
    _second(it, transactional(8, 9, 0), idempotent(10, 9, 2))


@planted("error", "unknown-control-type", f"{SECOND}.log", 0)
def _(it: LogDirectory) -> None:
    unknown = control_batch(
        struct.pack(">hh", 0, 77), b"\0" * 6, base_offset=8, producer_id=9, producer_epoch=0,
        partition_leader_epoch=0, timestamp=TIME + 8,
    )  # fmt: skip
    it.segments = {0: [data(0, 8)], 8: [data(8)]}
    it.write()
    it.file(8).write_bytes(unknown)
    for kind in ("index", "timeindex"):
        it.file(8, kind).write_bytes(b"")
    it.file(10, "snapshot").unlink()
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (it.root / name).unlink()


# Leader epochs


@planted("warning", "leader-epoch-mismatch", f"{SECOND}.log", 0)
def not_as_in_the_checkpoint(it: LogDirectory) -> None:
    it.write().patch(it.file(8), 12, struct.pack(">i", 4))


def _without_checkpoint(it: LogDirectory, *epochs: int) -> None:
    batches = [data(8 + 2 * i, partition_leader_epoch=epoch) for i, epoch in enumerate(epochs)]
    _second(it, *batches)
    (it.partition / "leader-epoch-checkpoint").write_text("0\n0\n")


@planted("warning", "leader-epoch-mismatch", f"{SECOND}.log", 2 * len(data(8)))
def back_without_a_checkpoint(it: LogDirectory) -> None:
    _without_checkpoint(it, 5, 5, 4, 5)


@planted("warning", "leader-epoch-mismatch", f"{SECOND}.log", len(data(8)))
def too_high_for_one_batch(it: LogDirectory) -> None:
    _without_checkpoint(it, 3, 9, 3, 3)


@planted("warning", "bad-leader-epoch-checkpoint", "leader-epoch-checkpoint")
def _(it: LogDirectory) -> None:
    (it.write().partition / "leader-epoch-checkpoint").write_text("0\n1\nx\n")


@planted("note", "missing-leader-epoch-checkpoint", "leader-epoch-checkpoint")
def _(it: LogDirectory) -> None:
    (it.write().partition / "leader-epoch-checkpoint").unlink()
