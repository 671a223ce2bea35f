"""Opening the log of a partition: after a clean stop, after a crash, after a crash while opening it.

After a clean stop the files are believed but for the end: the last segment's tail is checked, the snapshot at
the log end is taken. Otherwise every batch from the recovery point on is checked, the log is cut at the first
that does not hold, and what follows from the log is made anew. Below the recovery point nothing may be wrong:
that is CorruptRecordError, and the partition is not opened.

Better than Kafka: a torn tail is cut after a clean stop too, nothing is ever appended behind it; a snapshot
or a transaction index that is missing never makes transactions disappear; damage below the recovery point is
never "repaired" by throwing away what follows. docs/recovery.md tells users all of it.

Source: ``LogLoader``, ``LogSegment.recover``, ``UnifiedLog.rebuildProducerState``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka.errors import CorruptFileError, CorruptRecordError, LocatedError
from txnkafka.storage.formats.checkpoint import EpochEntry, parse_leader_epoch_checkpoint
from txnkafka.storage.formats.layout import LEADER_EPOCH_CHECKPOINT, file_name, parse_segment_file
from txnkafka.storage.formats.limits import EPOCHS_LIMIT, read_derived
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.log_segment import SPARSE, LogSegment
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.producer_snapshots import ProducerSnapshots
from txnkafka.storage.log.transactions import (
    add_aborted,
    check_transactions,
    load_producers,
    replay,
    transactions_of,
)
from txnkafka.storage.log.txn_index_file import TxnIndexFile
from txnkafka.storage.recovery.interrupted import finish_interrupted
from txnkafka.storage.recovery.log_end import Repair, Start, assign_epochs, find_end
from txnkafka.storage.recovery.sound_indexes import keep_sound_indexes

if TYPE_CHECKING:
    from txnkafka.config import LogConfig
    from txnkafka.env import DataFiles, DirectoryEntry
    from txnkafka.model import CompletedTxn, TopicPartition
    from txnkafka.storage.log.log_validator import LogValidator
    from txnkafka.storage.log.repair_step import RepairStep

__all__ = ["OpenedLog", "Repair", "Start", "open_log"]

LARGEST_SEGMENT = 2**31 - 1  # bytes; positions have 32 bits


class OpenedLog(NamedTuple):
    """A log, and what had to be done to open it."""

    log: PartitionLog
    repairs: list[RepairStep]


def open_log(
    files: DataFiles,
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    start: Start,
    *,
    now_ms: int,
    validator: LogValidator | None = None,
) -> OpenedLog:
    """Open the log in ``directory``, which is made when it is not there, and make what it has durable. Logs
    of one thread share a ``validator``.

    Raises CorruptRecordError when something below the recovery point is damaged, LogDirError when a file
    cannot be read or is a link, and OSError.
    """
    log = PartitionLog(files, directory, topic_partition, config, validator)
    log.loaded_ms = now_ms
    entries = finish_interrupted(files, directory, log.note)
    try:
        _recover(log, entries, start, now_ms)
    except LocatedError as error:
        error.locate(topic=topic_partition.topic, partition=topic_partition.partition)
        raise
    finally:
        log.close_files()  # there may be ten thousand; who appends opens them again
    return OpenedLog(log, list(log.repairs))


def _recover(log: PartitionLog, entries: list[DirectoryEntry], start: Start, now_ms: int) -> None:
    _find_segments(log, entries, start.log_start_offset, now_ms)
    kept = _load_epochs(log)
    find_end(log, start)
    log.log_start_offset = min(max(start.log_start_offset, log.segments[0].base_offset), log.log_end_offset)
    if log.active.is_new:
        log.active.create("log")
    log.active.count_anew()
    _cut_epochs(log, kept, start)
    _load_producers(log, start)
    _make_missing(log, start)
    _make_durable(log, start)


def _find_segments(
    log: PartitionLog, listed: list[DirectoryEntry], log_start_offset: int, now_ms: int
) -> None:
    entries = {entry.name: entry for entry in listed}
    parsed = {name: each for name in entries if (each := parse_segment_file(name)) and not each.suffix}
    log.snapshots = ProducerSnapshots.found(log.files, log.directory, entries)
    bases = {each.base_offset for each in parsed.values() if each.kind == "log"}
    for name, each in parsed.items():
        if each.kind == "log":
            segment = _segment(log, each.base_offset, entries[name], now_ms)
            segment.lacks_index = not {file_name(each.base_offset, kind) for kind in SPARSE} <= entries.keys()
            log.segments.append(segment)
        elif each.kind != "snapshot" and each.base_offset not in bases:
            log.files.remove(log.files.join(log.directory, name))  # of a segment whose removal was under way
    log.segments.sort(key=lambda segment: segment.base_offset)
    if not log.segments:
        log.segments.append(
            LogSegment(log.files, log.directory, log_start_offset, log.config, created_ms=now_ms)
        )
        log.has_unsynced_names = True


def _segment(log: PartitionLog, base_offset: int, entry: DirectoryEntry, now_ms: int) -> LogSegment:
    segment = LogSegment(log.files, log.directory, base_offset, log.config, created_ms=now_ms)
    segment.on_repair = log.note
    if entry.size > LARGEST_SEGMENT:
        raise CorruptRecordError(
            f"{entry.size} bytes are more than the {LARGEST_SEGMENT} that a segment can have",
            file=segment.path("log"),
        )
    segment.loaded_from(entry.size, entry.modified_ms)
    return segment


def _load_epochs(log: PartitionLog) -> list[EpochEntry] | None:
    """Take the epochs from their file; where it cannot be read, from the log. Returns what the file has."""
    path = log.files.join(log.directory, LEADER_EPOCH_CHECKPOINT)
    damage = "it is not there or empty"  # as Kafka makes it for a log without epochs
    try:
        content = read_derived(log.files, path, EPOCHS_LIMIT)
        if content:
            kept = parse_leader_epoch_checkpoint(content)
            log.epochs = LeaderEpochs(kept)
            return kept
    except FileNotFoundError:
        pass
    except CorruptFileError as error:
        damage = f"it is damaged, {error.reason}"
        log.has_kept_epochs = False
    for segment in log.segments:
        for index in segment.windows():
            assign_epochs(log.epochs, index)
    if log.epochs.entries or "damaged" in damage:  # logs of old brokers have none
        log.note(path, "rebuilt from the log", damage)
    return None


def _cut_epochs(log: PartitionLog, kept: list[EpochEntry] | None, start: Start) -> None:
    """The epochs that the log has, in their file too."""
    log.epochs.truncate_from_start(log.log_start_offset)
    log.epochs.truncate_from_end(log.log_end_offset)
    if log.epochs.entries == kept:
        return
    if start.clean_shutdown and kept is not None:
        # a broker that becomes the leader notes its epoch at the log end: nearly every partition has one to
        # forget, which can wait until something is appended
        log.has_kept_epochs = False
    elif kept is not None or log.active.size or len(log.segments) > 1 or not log.has_kept_epochs:
        log.keep_epochs(log.epochs)


def _load_producers(log: PartitionLog, start: Start) -> None:
    """State of all producers at the log end, and the transaction indexes of the segments that were
    checked."""
    log.snapshots.remove_above(log.log_end_offset)
    log.snapshots.remove_strays(segment.base_offset for segment in log.segments)
    checked = [segment for segment in log.segments if segment.has_new_indexes]
    begin = checked[0].base_offset if checked else log.log_end_offset
    log.snapshots.remove_above(begin)
    loaded = load_producers(log, log.producers, min(begin, log.log_end_offset))
    completed: list[CompletedTxn] = []
    if loaded < begin:
        replay(log, log.producers, loaded, begin, completed)
    completed.clear()
    if checked:
        log.snapshots.remove_above(loaded)  # what a crash has left of them is made anew
        _replay_checked(log, checked, completed)
    log.producers.expire(log.loaded_ms, log.config.producer_id_expiration_ms)
    newest = log.snapshots.newest(log.log_end_offset)
    if log.log_end_offset > (log.segments[0].base_offset if newest is None else newest):
        has_producers = len(log.producers) and log.log_start_offset < log.log_end_offset
        if newest is None and start.clean_shutdown and has_producers:
            path = log.snapshots.path(log.log_end_offset)
            log.note(path, "written from the log", "no sound snapshot is there")
        log.snapshots.write(log.log_end_offset, log.producers.snapshot())
    log.producers.on_high_watermark(log.log_end_offset)


def _replay_checked(log: PartitionLog, checked: list[LogSegment], completed: list[CompletedTxn]) -> None:
    for segment in checked:
        if segment.base_offset != log.segments[0].base_offset:
            log.snapshots.write(segment.base_offset, log.producers.snapshot())
        segment.txn_index = TxnIndexFile(segment.base_offset)
        for index in segment.windows():
            log.producers.replay(index, segment.base_offset, completed)
        add_aborted(segment, segment.txn_index, completed)
        if segment.txn_index.entries or segment.files.exists(segment.path("txnindex")):
            segment.txn_index.replaces_file()
        completed.clear()


def _make_missing(log: PartitionLog, start: Start) -> None:
    """Where an index has gone, more may have: what follows from such a segment is made now, as in Kafka."""
    for segment in log.segments:
        if segment.lacks_index or start.repair is not None:
            segment.load()
            transactions_of(log, segment)
        if start.is_checked and not segment.has_new_indexes:
            check_transactions(log, segment)
            keep_sound_indexes(log, segment)


def _make_durable(log: PartitionLog, start: Start) -> None:
    """Everything that the log has, before anybody is told of it. What follows from the active segment is made
    again after every crash, and need not be on the disk."""
    if log.log_end_offset > (start.recovery_point or 0) and not start.clean_shutdown:
        log.unsynced_files.append(log.active.file("log"))
        log.has_unsynced_names = True
    for segment in log.segments:
        if segment.has_new_indexes:
            segment.seal()
        if segment is not log.active and segment.has_new_indexes:
            transactions_of(log, segment)
            log.unsynced_files.append(segment.file("log"))
        if segment is not log.active or log.repairs:
            segment.save(log.unsynced_files)
    if log.repairs or log.unsynced_files:
        log.snapshots.sync()
        log.has_unsynced_names = True
    if log.needs_flush:
        log.flush()
    log.high_watermark = log.log_end_offset
