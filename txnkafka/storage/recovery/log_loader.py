"""Opens the log of a partition after a clean shutdown or a crash, even a crash while opening it.

After a clean shutdown, the files are trusted except for the end: the last segment's tail is checked, and the
snapshot at the log end is loaded. Otherwise every batch from the recovery point on is checked, the log is
truncated at the first unsound one, and derived files are rebuilt. Damage below the recovery point raises
CorruptRecordError, and the partition is not opened.

Better than Kafka: a torn tail is also truncated after a clean shutdown, so nothing is ever appended after it;
a missing snapshot or transaction index never makes transactions disappear; damage below the recovery point is
never "repaired" by discarding all later records. User documentation: docs/recovery.md.

Source: ``LogLoader``, ``LogSegment.recover``, ``UnifiedLog.rebuildProducerState``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from txnkafka._core.producer_table import ProducerTable
from txnkafka.errors import KafkaStorageError, LocatedError
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.loaded_log import LoadedLog
from txnkafka.storage.log.log_segment import LogSegment
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.producer_history import load_producers, replay
from txnkafka.storage.log.producer_snapshots import ProducerSnapshots
from txnkafka.storage.log.transactions import check_transactions, transactions_of
from txnkafka.storage.recovery.epoch_file import cut_epochs, load_epochs
from txnkafka.storage.recovery.found_log import FoundLog, SegmentState
from txnkafka.storage.recovery.header_pass import HeaderPass
from txnkafka.storage.recovery.interrupted import finish_interrupted
from txnkafka.storage.recovery.log_end import (
    Repair as Repair,
)
from txnkafka.storage.recovery.log_end import (
    Start as Start,
)
from txnkafka.storage.recovery.log_end import (
    end_log,
    find_end,
    first_checked,
    first_unknown,
)
from txnkafka.storage.recovery.sound_indexes import keep_sound_indexes

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.config import LogConfig
    from txnkafka.env import DataFile, DataFiles
    from txnkafka.model import TopicPartition
    from txnkafka.storage.log.log_resources import LogResources
    from txnkafka.storage.log.repair_step import RepairStep


class OpenedLog(NamedTuple):
    """A log, and the repairs made while opening it."""

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
    resources: LogResources | None = None,
) -> OpenedLog:
    """Open the log in ``directory``, creating it if missing, and make its contents durable. Logs of one
    thread share ``resources``.

    Raises CorruptRecordError if bytes below the recovery point are damaged, LogDirError if a file cannot be
    read or is a link, KafkaStorageError if a sync fails, and OSError."""
    found = FoundLog(files, directory, topic_partition, config, now_ms)
    loaded = load_log(found, start)
    log = PartitionLog(files, directory, topic_partition, config, loaded, resources=resources)
    return OpenedLog(log, list(loaded.repairs))


def new_log(
    files: DataFiles,
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    *,
    now_ms: int,
    resources: LogResources | None = None,
) -> PartitionLog:
    """Begin a log in the empty ``directory``; the caller makes its file durable. Raises OSError."""
    segment = LogSegment(files, directory, 0, config, created_ms=now_ms)
    segment.files.create("log")
    segment.close()  # of possibly ten thousand logs; an append reopens it
    loaded = LoadedLog(
        segments=[segment],
        log_start_offset=0,
        log_end_offset=0,
        epochs=LeaderEpochs(),
        epoch_file_is_current=True,
        producers=ProducerTable(),
        snapshots=ProducerSnapshots(files, directory),
        loaded_ms=now_ms,
        repairs=[],
    )
    return PartitionLog(files, directory, topic_partition, config, loaded, resources=resources)


def load_log(found: FoundLog, start: Start) -> LoadedLog:
    """Recover the log, and make it durable. Raises the errors of ``open_log``."""
    _remove_unsound(found, start)
    entries = finish_interrupted(found.files, found.directory, found.note)
    try:
        found.find_segments(entries, start.log_start_offset)
        return _load(found, start)
    except LocatedError as error:
        error.locate(topic=found.topic_partition.topic, partition=found.topic_partition.partition)
        raise
    finally:
        found.close_files()  # of possibly ten thousand logs; an append reopens them


def _remove_unsound(found: FoundLog, start: Start) -> None:
    """Remove this log's derived files that are known to contradict it. Raises OSError."""
    for path, reason in start.repair.unsound.items() if start.repair is not None else ():
        if found.files.split(path)[0] == found.directory and found.files.exists(path):
            found.files.remove(path)
            found.note(path, "removed, since the log says the same", reason)
            found.has_unsynced_names = True


def _load(found: FoundLog, start: Start) -> LoadedLog:
    # First pass: the batches. Nothing is changed on the disk before the log end is known.
    epoch_file = load_epochs(found, first_checked(found, start), start)
    headers = HeaderPass(found, len(found.segments) if start.clean_shutdown else first_unknown(found, start))
    log_end = find_end(found, start, headers)
    end_log(found, start, log_end)
    log_start = min(max(start.log_start_offset, found.segments[0].base_offset), found.log_end_offset)
    if found.new_segment is not None:
        found.new_segment.files.create("log")
    found.active.count_anew()
    # Second pass: the state and files derived from the batches.
    is_current = cut_epochs(found, epoch_file, start)
    producers = _load_producers(found, headers, log_start, start)
    _make_missing(found, start)
    # Third pass: sync to the disk.
    _make_durable(found, start)
    producers.on_high_watermark(found.log_end_offset)
    return LoadedLog(
        segments=found.segments,
        log_start_offset=log_start,
        log_end_offset=found.log_end_offset,
        epochs=found.epochs,
        epoch_file_is_current=is_current,
        producers=producers,
        snapshots=found.snapshots,
        loaded_ms=found.loaded_ms,
        repairs=found.repairs,
    )


def _load_producers(found: FoundLog, headers: HeaderPass, log_start: int, start: Start) -> ProducerTable:
    """Return the state of all producers at the log end, and rebuild the transaction indexes of the segments
    in state REBUILT."""
    snapshots, end = found.snapshots, found.log_end_offset
    rebuilt = found.in_state(SegmentState.REBUILT)
    begin = rebuilt[0].base_offset if rebuilt else end
    snapshots.remove_above(end)
    snapshots.remove_strays(segment.base_offset for segment in found.segments)
    snapshots.remove_above(begin)
    if headers.is_complete and rebuilt:
        headers.apply(rebuilt)
    else:
        loaded = load_producers(found, headers.producers, min(begin, end))
        if loaded < begin:
            replay(found.segments, headers.producers, loaded, begin, [])
        if rebuilt:
            headers.rebuild(rebuilt, loaded)
    headers.producers.expire(found.loaded_ms, found.config.producer_id_expiration_ms)
    _write_newest(found, headers.producers, has_data=log_start < end, start=start)
    return headers.producers


def _write_newest(found: FoundLog, producers: ProducerTable, *, has_data: bool, start: Start) -> None:
    """Write a snapshot at the log end unless one exists or the log is empty."""
    newest = found.snapshots.newest(found.log_end_offset)
    if found.log_end_offset > (found.segments[0].base_offset if newest is None else newest):
        is_lost = newest is None and has_data and bool(len(producers))
        if start.clean_shutdown and (is_lost or (start.repair is not None and newest is not None)):
            path = found.snapshots.path(found.log_end_offset)
            why = "no sound snapshot is there" if newest is None else "no snapshot is at the log end"
            found.note(path, "written from the log", why)
        found.snapshots.write(found.log_end_offset, producers.snapshot())


def _make_missing(found: FoundLog, start: Start) -> None:
    """Rebuild the derived files of segments that lack an index, because other files may also be missing, as
    in Kafka."""
    for segment in found.segments:
        if segment in found.lack_an_index or start.repair is not None:
            segment.load()
            transactions_of(found, segment)
        if found.states[segment] is SegmentState.COMPARED:
            check_transactions(found, segment)
            keep_sound_indexes(found, segment)
        if segment is not found.active and found.states[segment] is not SegmentState.REBUILT:
            segment.unload()  # a log may have any number of segments
            segment.close()


def _make_durable(found: FoundLog, start: Start) -> None:
    """Sync the whole log before it is used, the names after the contents. A segment's files are synced and
    closed before the next segment's files are opened: a log may have more segments than this process has
    descriptors. Files derived from the active segment are rebuilt after every crash, and need no sync."""
    active, was_synced = found.active, False
    if found.log_end_offset > (start.recovery_point or 0) and not start.clean_shutdown:
        active.has_unsynced_bytes = found.has_unsynced_names = True
    for segment in found.segments:
        unsynced = _write_derived(found, segment)
        was_synced |= bool(unsynced)
        _sync(found, [file.sync for file in unsynced])
        segment.has_unsynced_bytes = False
        if segment is not active:
            segment.unload()
            segment.close()
    if found.repairs or was_synced:
        found.snapshots.sync()
        found.has_unsynced_names = True
    if found.has_unsynced_names:
        _sync(found, [partial(found.files.sync_directory, found.directory)])


def _write_derived(found: FoundLog, segment: LogSegment) -> list[DataFile]:
    """Write the derived files of a segment that are missing on the disk, and return its files to sync."""
    if found.states[segment] is SegmentState.REBUILT:
        segment.seal()
        if segment is not found.active:
            transactions_of(found, segment)
            segment.has_unsynced_bytes = True  # of the previous process, which may not have synced them
    if segment is not found.active or found.repairs:
        segment.save()
    derived, segment.unsynced_files = segment.unsynced_files, []
    return [segment.file("log"), *derived] if segment.has_unsynced_bytes else derived


def _sync(found: FoundLog, syncs: list[Callable[[], None]]) -> None:
    """Sync files or names. Raises KafkaStorageError; after a failed sync, the content of the disk is
    unknown."""
    failed: OSError | None = None
    try:
        for sync in syncs:
            sync()
    except OSError as error:
        failed = error
    if failed is not None:
        raise KafkaStorageError(
            f"{found.topic_partition} is not opened, {found.directory} failed: {failed}. Opening the data "
            "directory again recovers what was acknowledged"
        )
