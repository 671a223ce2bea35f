"""Opening the log of a partition: after a clean stop, after a crash, after a crash while opening it.

After a clean stop the files are believed but for the end: the last segment's tail is walked, the snapshot at
the log end is taken. Otherwise every batch from the recovery point on is checked, the log is cut at the first
that does not hold, and what follows from the log is made anew. Below the recovery point nothing may be wrong:
that is CorruptRecordError, and the partition is not opened.

Better than Kafka: a torn tail is cut after a clean stop too, nothing is ever appended behind it; a snapshot
or a transaction index that is missing never makes transactions disappear; damage below the recovery point is
never "repaired" by throwing away what follows.

Source: ``LogLoader``, ``LogSegment.recover``, ``UnifiedLog.rebuildProducerState``.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from txnkafka.errors import CorruptFileError, CorruptRecordError
from txnkafka.record.crc import first_invalid_crc
from txnkafka.storage.checkpoint import parse_leader_epoch_checkpoint
from txnkafka.storage.interrupted import finish_interrupted
from txnkafka.storage.layout import LEADER_EPOCH_CHECKPOINT, parse_segment_file
from txnkafka.storage.leader_epochs import LeaderEpochs
from txnkafka.storage.partition_log import PartitionLog
from txnkafka.storage.segment import LogSegment
from txnkafka.storage.snapshots import ProducerSnapshots
from txnkafka.storage.transactions import load_producers, replay, transactions_of
from txnkafka.storage.txn_index_file import TxnIndexFile

if TYPE_CHECKING:
    from txnkafka._core.scan import BatchIndex
    from txnkafka.config import LogConfig
    from txnkafka.env import DataFiles
    from txnkafka.model import CompletedTxn, TopicPartition

__all__ = ["OpenedLog", "Start", "open_log"]

LOG = logging.getLogger("txnkafka.storage")
_CHECKPOINT_LIMIT = 16 << 20


@dataclass(frozen=True)
class Start:
    """What the data directory knows of a partition before it is opened."""

    clean_shutdown: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0


@dataclass
class OpenedLog:
    """A log, and what had to be done to open it: a line for each thing."""

    log: PartitionLog
    repairs: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Something was not as it should be, and is now."""
        LOG.warning("%s: %s", self.log.topic_partition, text)
        self.repairs.append(text)


def open_log(
    files: DataFiles,
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    start: Start,
    *,
    now_ms: int,
) -> OpenedLog:
    """Open the log in ``directory``, which is made when it is not there, and make what it has durable.

    Raises CorruptRecordError when something below the recovery point is damaged, and OSError.
    """
    log = PartitionLog(files, directory, topic_partition, config)
    log.loaded_ms = now_ms
    opened = OpenedLog(log)
    finish_interrupted(files, directory, opened.note)
    _find_segments(log, start.log_start_offset, now_ms)
    _load_epochs(opened)
    try:
        _recover(opened, start)
    except CorruptRecordError as error:
        log.close_files()
        error.locate(topic=topic_partition.topic, partition=topic_partition.partition)
        raise
    log.log_start_offset = min(max(start.log_start_offset, log.segments[0].base_offset), log.log_end_offset)
    _cut_epochs(opened)
    _load_producers(opened, start)
    _make_durable(opened, start)
    return opened


def _find_segments(log: PartitionLog, log_start_offset: int, now_ms: int) -> None:
    entries = {entry.name: entry for entry in log.files.list(log.directory) if not entry.is_directory}
    parsed = {name: each for name in entries if (each := parse_segment_file(name)) and not each.suffix}
    log.snapshots = ProducerSnapshots.found(log.files, log.directory, entries)
    bases = {each.base_offset for each in parsed.values() if each.kind == "log"}
    for name, each in parsed.items():
        if each.kind == "log":
            log.segments.append(_segment(log, each.base_offset, entries[name].size,
            entries[name].modified_ms))
        elif each.kind != "snapshot" and each.base_offset not in bases:
            log.files.remove(log.files.join(log.directory, name))  # of a segment whose removal was under way
    log.segments.sort(key=lambda segment: segment.base_offset)
    if not log.segments:
        log.segments.append(
            LogSegment(log.files, log.directory, log_start_offset, log.config, created_ms=now_ms)
        )
        log.active.file("log")
        log.has_unsynced_names = True


def _segment(log: PartitionLog, base_offset: int, size: int, modified_ms: int) -> LogSegment:
    segment = LogSegment(log.files, log.directory, base_offset, log.config, created_ms=modified_ms)
    segment.loaded_from(size)
    return segment


def _load_epochs(opened: OpenedLog) -> None:
    log = opened.log
    path = log.files.join(log.directory, LEADER_EPOCH_CHECKPOINT)
    try:
        log.epochs = LeaderEpochs(parse_leader_epoch_checkpoint(log.files.read(path, _CHECKPOINT_LIMIT)))
    except (CorruptFileError, FileNotFoundError) as error:
        if isinstance(error, CorruptFileError):
            opened.note(f"{path} is damaged ({error}): made anew from the log")
        for segment in log.segments:
            for index in segment.windows():
                _assign_epochs(log.epochs, index)


def _assign_epochs(epochs: LeaderEpochs, index: BatchIndex) -> None:
    newest = -1 if epochs.latest is None else epochs.latest
    if not len(index) or max(index.partition_leader_epoch) <= newest:
        return
    for epoch, base_offset in zip(index.partition_leader_epoch, index.base_offset, strict=True):
        if epoch > newest:
            epochs.assign(epoch, base_offset)
            newest = epoch


def _recover(opened: OpenedLog, start: Start) -> None:
    """Find the log end. Segments from the recovery point on are checked, unless the stop was clean; where the
    log is cut, it ends."""
    log = opened.log
    first = len(log.segments) - 1 if start.clean_shutdown else log.segment_of(start.recovery_point)
    for number in range(first, len(log.segments)):
        look = _walk_tail if start.clean_shutdown else _check_segment
        log.log_end_offset, was_cut = look(opened, log.segments[number], start.recovery_point)
        if was_cut or _ends_early(log, number, start):
            _drop_segments(opened, number + 1)
            break
    if log.log_end_offset < start.log_start_offset:
        _begin_at(opened, start.log_start_offset)
    log.recovery_point = min(start.recovery_point, log.log_end_offset)


def _ends_early(log: PartitionLog, number: int, start: Start) -> bool:
    """Whether offsets are missing behind a segment that was not durable: then its end was lost, and what
    follows does not follow any more. Compaction leaves such gaps, too."""
    if start.clean_shutdown or log.config.compact or number + 1 == len(log.segments):
        return False
    return start.recovery_point <= log.log_end_offset < log.segments[number + 1].base_offset


def _begin_at(opened: OpenedLog, offset: int) -> None:
    """The log ends before it begins: nothing of it counts, and no offset below ``offset`` is used again."""
    log = opened.log
    opened.note(f"the log ends at {log.log_end_offset}, but begins at {offset}: it is empty from there on")
    created_ms = log.active.created_ms
    _drop_segments(opened, 0)
    log.segments.append(LogSegment(log.files, log.directory, offset, log.config, created_ms=created_ms))
    log.active.file("log")
    log.log_end_offset = offset


def _walk_tail(opened: OpenedLog, segment: LogSegment, recovery_point: int) -> tuple[int, bool]:
    """Walk over the headers from the last index entry on, and cut what is no whole batch: the log end, and
    whether it was cut."""
    segment.load()
    start = segment.batch_before(max(0, segment.size - 1))
    next_offset, position = _walk(segment, start)
    if start and position < segment.size:  # an entry may lie, or lead to the batch that is torn
        segment.index_again()
        next_offset, position = _walk(segment, 0)
    if position == segment.size:
        return next_offset, False
    return _cut(opened, segment, position, next_offset, recovery_point, "is no whole batch"), True


def _walk(segment: LogSegment, position: int) -> tuple[int, int]:
    next_offset = segment.base_offset
    for index in segment.windows(position):
        if len(index):
            next_offset = index.last_offset[-1] + 1
            segment.note_tail(index)
        position = index.end_position
    return next_offset, position


def _check_segment(opened: OpenedLog, segment: LogSegment, recovery_point: int) -> tuple[int, bool]:
    """Check all batches of a segment and make its indexes anew; cut it where one does not hold: the log end,
    and whether it was cut."""
    log = opened.log
    segment.begin_again()
    next_offset, position, why = segment.base_offset, 0, ""
    view = segment.view()
    try:
        for start, data, index in view.windows(0, segment.size):
            bad, why = _first_bad(data, index, start, next_offset)
            if bad < len(index):
                index.truncate(bad, "crc", why)
            segment.note_all(index)
            _assign_epochs(log.epochs, index)
            if len(index):
                next_offset = index.last_offset[-1] + 1
            position, why = index.end_position, index.stop_reason
            if index.stop == "crc":
                break
    finally:
        view.close()
    if position == segment.size:
        return next_offset, False
    return _cut(opened, segment, position, next_offset, recovery_point, why or "is no whole batch"), True


def _first_bad(data: memoryview, index: BatchIndex, start: int, next_offset: int) -> tuple[int, str]:
    """Number of the first batch that does not hold, and why."""
    bad = first_invalid_crc(data, index, position=start)
    why = "has a CRC that does not match its bytes"
    disorder = index.disorder(next_offset)
    if disorder < bad:
        bad, why = disorder, "begins below the end of the batch before it"
    return bad, why


def _cut(
    opened: OpenedLog, segment: LogSegment, position: int, next_offset: int, recovery_point: int, why: str
) -> int:
    if next_offset < recovery_point:
        raise CorruptRecordError(
            f"what begins here {why}, and the log was durable up to offset {recovery_point}: the partition "
            "is not opened, nothing was changed",
            position=position,
            offset=next_offset,
            file=segment.path("log"),
        )
    opened.note(
        f"{segment.path('log')} is cut at position {position}, offset {next_offset}: what begins there {why}"
    )
    segment.truncate(position, next_offset)
    return next_offset


def _drop_segments(opened: OpenedLog, first: int) -> None:
    """Segments behind the place where the log was cut do not follow any more."""
    log = opened.log
    for segment in log.segments[first:]:
        opened.note(f"{segment.path('log')} is removed: the log ends before it")
        segment.remove()
        log.has_unsynced_names = True
    del log.segments[first:]


def _cut_epochs(opened: OpenedLog) -> None:
    log = opened.log
    path = log.files.join(log.directory, LEADER_EPOCH_CHECKPOINT)
    before = list(log.epochs.entries)
    log.epochs.truncate_from_end(log.log_end_offset)
    log.epochs.truncate_from_start(log.log_start_offset)
    if log.epochs.entries != before or (log.epochs.entries and not log.files.exists(path)):
        log.keep_epochs(log.epochs)


def _load_producers(opened: OpenedLog, start: Start) -> None:
    """State of all producers at the log end, and the transaction indexes of the segments that were
    checked."""
    log = opened.log
    log.snapshots.remove_above(log.log_end_offset)
    log.snapshots.remove_strays(segment.base_offset for segment in log.segments)
    checked = [segment for segment in log.segments if segment.has_new_indexes]
    begin = checked[0].base_offset if checked else log.log_end_offset
    loaded = load_producers(log, log.producers, min(begin, log.log_end_offset))
    completed: list[CompletedTxn] = []
    if loaded < begin:
        replay(log, log.producers, loaded, begin, completed)
    completed.clear()
    if checked:
        _replay_checked(log, checked, completed)
    newest = log.snapshots.newest(log.log_end_offset)
    if log.log_end_offset > (log.segments[0].base_offset if newest is None else newest):
        log.snapshots.write(log.log_end_offset, log.producers.snapshot())
    log.producers.on_high_watermark(log.log_end_offset)


def _replay_checked(log: PartitionLog, checked: list[LogSegment], completed: list[CompletedTxn]) -> None:
    for segment in checked:
        if segment.base_offset != log.segments[0].base_offset:
            log.snapshots.write(segment.base_offset, log.producers.snapshot())
        segment.txn_index = TxnIndexFile(segment.base_offset)
        for index in segment.windows():
            log.producers.replay(index, log.log_start_offset, completed)
        segment.txn_index.add(completed)
        if segment.txn_index.entries or segment.files.exists(segment.path("txnindex")):
            segment.txn_index.replaces_file()
        completed.clear()


def _make_durable(opened: OpenedLog, start: Start) -> None:
    """Everything that the log has, and every name, before anybody is told of it."""
    log = opened.log
    if start.clean_shutdown and not opened.repairs and not log.snapshots.unsynced and not log.needs_flush:
        log.high_watermark = log.log_end_offset
        return
    for segment in log.segments:
        if segment.has_new_indexes or segment is log.active:
            transactions_of(log, segment)
            segment.seal()
            log.unsynced_files += [*segment.save(), segment.file("log")]
    log.snapshots.sync()
    log.has_unsynced_names = True
    log.flush()
