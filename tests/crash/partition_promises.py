"""What the log of a partition promises, and the check that a log found after a crash keeps it.

A workload appends through ``Partition``, which records every attempt and every acknowledgement.
``check_logs`` opens the log that is left. It must be a state that the partition was in, no older than the
acknowledgements; its committed, aborted and open transactions must follow from its markers; and a second
start must find nothing to repair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, cast

from tests.crash.derived_files import check_beside_log, check_damaged_snapshots, check_snapshots
from tests.crash.entries import CRC_AND_BEHIND, Entry, Transaction, transactions
from tests.crash.explore import Promises
from tests.crash.histories import History, histories_of
from tests.unit.storage.reads import read
from txnkafka._core.encode import encode_batch, end_txn_marker
from txnkafka._core.scan import scan
from txnkafka.broker.log_manager import LogManager
from txnkafka.config import LogConfig
from txnkafka.env import DataFiles
from txnkafka.errors import CorruptRecordError, KafkaStorageError
from txnkafka.model import IsolationLevel, TopicPartition
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.formats.checkpoint import parse_offset_checkpoint
from txnkafka.storage.formats.layout import CLEAN_SHUTDOWN_FILE, RECOVERY_POINT_CHECKPOINT, parse_segment_file
from txnkafka.storage.log.append_all import append_all
from txnkafka.storage.log.append_info import AppendInfo, AppendRequest
from txnkafka.storage.log.leader_epochs import LeaderEpochs
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.log.truncation import delete_old_segments

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from txnkafka.storage.formats.txn_index import AbortedTxn

__all__ = ["CONFIG", "NOW", "PATH", "Partition", "check_logs", "opened"]

PATH, NOW = "/data", 1_700_000_000_000
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"
CONFIG = LogConfig(segment_bytes=420, index_interval_bytes=100, retention_ms=-1, file_delete_delay_ms=0)


def opened(files: DataFiles, config: LogConfig = CONFIG) -> LogManager:
    return LogManager(DataDirectory(files, PATH, lambda topic: config, now_ms=NOW))


class Partition:
    """A partition that records the changes requested of it."""

    def __init__(self, directory: LogManager, promises: Promises, number: int = 0) -> None:
        self.key = TopicPartition("t", number)
        self.directory = directory
        self._promises = promises
        if self.key not in directory.logs:
            directory.create(self.key, TOPIC_ID, now_ms=NOW)
        self.log: PartitionLog = directory.logs[self.key]
        # opening a log makes its content durable; what it lost will not come back
        promises.attempt(("opened", self.key, self.log.log_end_offset))
        promises.acknowledge(("end", self.key, self.log.log_end_offset))

    def append(
        self, text: str, producer_id: int = -1, *, transactional: bool = False, records: int = 2,
        key: bytes = b"key", timestamp: int = NOW, leader_epoch: int = 0,
    ) -> None:  # fmt: skip
        batch = self.batch(
            text, producer_id, transactional=transactional, records=records, key=key, timestamp=timestamp
        )
        guard = 0
        if transactional:
            guard = self.log.verification.maybe_start(
                self.log.producers, producer_id, 0, self._sequence(producer_id), supports_epoch_bump=False,
                now_ms=NOW,
            )  # fmt: skip
        self._append(
            batch, records, producer_id, transactional=transactional, guard=guard, leader_epoch=leader_epoch
        )

    def append_all(self, *texts: str, records: int = 2) -> None:
        """Append batches without a producer in one call. Each has an answer of its own: behind one that fails
        others may follow, at its offset."""
        end, batches = self.log.log_end_offset, [self.batch(text, records=records) for text in texts]
        contents = [bytes(batch[CRC_AND_BEHIND]) for batch in batches]
        entries = [
            Entry(first, first + records - 1, content, -1, False, None)
            for first, content in zip(count(end, records), contents)
        ]
        for entry in entries:
            self._promises.attempt(("append", self.key, entry))
        answers = append_all(self.log, map(AppendRequest, batches), now_ms=NOW)
        failed = [answer for answer in answers if not isinstance(answer, AppendInfo)]
        if failed and self.log.fenced is None:
            for entry in entries:
                self._promises.attempt(("refused", self.key, entry))
            for entry, answer in zip(entries, answers, strict=True):
                if isinstance(answer, AppendInfo):
                    there = entry._replace(first_offset=answer.first_offset, last_offset=answer.last_offset)
                    self._promises.attempt(("append", self.key, there))
        if failed:
            raise failed[0]
        found = [answer.first_offset for answer in answers if isinstance(answer, AppendInfo)]
        assert found == list(range(end, end + records * len(texts), records))

    def batch(
        self, text: str, producer_id: int = -1, *, transactional: bool = False, records: int = 2,
        key: bytes = b"key", timestamp: int = NOW,
    ) -> bytearray:  # fmt: skip
        """Encode the next batch of a producer."""
        return encode_batch(
            [(key, f"{text}-{i}".encode(), timestamp + i, []) for i in range(records)],
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=self._sequence(producer_id),
            transactional=transactional,
        )

    def _sequence(self, producer_id: int) -> int:
        known = self.log.producers.entry(producer_id) if producer_id >= 0 else None
        return -1 if producer_id < 0 else 0 if known is None else known.last_sequence + 1

    def end(self, producer_id: int, *, commit: bool, leader_epoch: int = 0) -> None:
        marker = end_txn_marker(
            base_offset=0, timestamp=NOW, producer_id=producer_id, producer_epoch=0, coordinator_epoch=1,
            commit=commit,
        )  # fmt: skip
        self._append(marker, 1, producer_id, transactional=True, aborts=not commit, leader_epoch=leader_epoch)

    def _append(
        self,
        batch: Buffer,
        records: int,
        producer_id: int,
        *,
        transactional: bool,
        aborts: bool | None = None,
        guard: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        end, content = self.log.log_end_offset, bytes(memoryview(batch)[CRC_AND_BEHIND])
        entry = Entry(end, end + records - 1, content, producer_id, transactional, aborts)
        origin = AppendOrigin.CLIENT if aborts is None else AppendOrigin.COORDINATOR
        self._promises.attempt(("append", self.key, entry))
        try:
            info = self.log.append(
                batch,
                now_ms=NOW,
                leader_epoch=leader_epoch,
                origin=origin,
                transaction_version=0,
                guard=guard,
            )
        except KafkaStorageError:
            if self.log.fenced is None:
                self._promises.attempt(("refused", self.key, entry))
            raise
        assert info[:2] == entry[:2]
        assert not info.is_duplicate

    def flush(self) -> None:
        end = self.log.log_end_offset
        try:
            self.directory.flush()
        except KafkaStorageError:
            assert any(log.fenced for log in self.directory.logs.values())
        else:
            assert self.log.fenced is None or not self.log.needs_flush
        if self.log.fenced is None:  # the failure may be of another log
            self._promises.acknowledge(("end", self.key, end))

    def truncate(self, offset: int, *, is_retry: bool = False) -> None:
        if not is_retry:
            self._promises.attempt(("truncate", self.key, offset))
        self.directory.truncate(self.key, offset, now_ms=NOW)
        self._promises.acknowledge(("truncate", self.key, self.log.log_end_offset))

    def delete_records(self, offset: int) -> None:
        self._promises.attempt(("start", self.key, self.log.high_watermark if offset < 0 else offset))
        start = self.directory.delete_records(self.key, offset)
        self._promises.acknowledge(("start", self.key, start))

    def delete_old_segments(self, now_ms: int = NOW) -> None:
        self._promises.attempt(("start", self.key, self.log.log_end_offset))
        delete_old_segments(self.log, now_ms)
        self.log.local.remove_deleted(now_ms)

    def delete(self) -> None:
        self._promises.attempt(("delete", self.key, 0))
        self.directory.delete(self.key)
        self._promises.acknowledge(("delete", self.key, 0))


def check_logs(files: DataFiles, promises: Promises, config: LogConfig = CONFIG) -> None:
    """Raises AssertionError when a promise is broken."""
    histories = histories_of(promises)
    if promises.believed:
        _check_doubted(files, promises, config)
        return
    stopped_cleanly = files.exists(f"{PATH}/{CLEAN_SHUTDOWN_FILE}")
    _check_what_is_believed(files, promises, histories, stopped_cleanly=stopped_cleanly)
    directory = opened(files, config)
    assert not directory.data.refused, directory.data.refused
    repairs = directory.data.repairs
    assert not (stopped_cleanly and repairs), repairs
    found = {key: _entries(log) for key, log in directory.logs.items()}
    whole: dict[TopicPartition, Sequence[Entry]] = {}
    for key, history in histories.items():
        if (history.acknowledged_end or history.acknowledged_start) and not history.deletions:
            assert key in directory.logs, f"{key} is gone"
        if key in directory.logs:
            whole[key] = _check_log(directory.logs[key], found[key], history)
    directory.close()
    for key, entries in whole.items():
        _check_files(files, promises, key, entries)
    again = opened(files, config)
    assert not again.data.repairs, again.data.repairs
    assert {key: _entries(log) for key, log in again.logs.items()} == found
    again.close()


def _check_doubted(files: DataFiles, promises: Promises, config: LogConfig) -> None:
    """Check a directory that was opened again without a restart of the machine after a sync had failed, and
    whose power was cut later: a log is refused, or reads of it fail, or it has only what was appended."""
    appended = {
        (key, entry.first_offset, entry.content)
        for what, key, entry in cast("list[tuple[str, TopicPartition, Entry]]", promises.attempted)
        if what == "append"
    }
    directory = opened(files, config)
    for key, log in directory.logs.items():
        with suppress(CorruptRecordError):
            assert {(key, entry.first_offset, entry.content) for entry in _entries(log)} <= appended
    directory.close()


def _check_what_is_believed(
    files: DataFiles,
    promises: Promises,
    histories: Mapping[TopicPartition, History],
    *,
    stopped_cleanly: bool,
) -> None:
    """Check before recovery that the files which it trusts are correct."""
    path = f"{PATH}/{RECOVERY_POINT_CHECKPOINT}"
    points = parse_offset_checkpoint(files.read(path, 1 << 20)) if files.exists(path) else {}
    for key, history in histories.items():
        directory = f"{PATH}/{key}"
        if not files.exists(directory):
            continue
        point = None if stopped_cleanly else points.get(key, 0)
        known = None if history.cuts or history.start else history.entries
        check_beside_log(files, directory, recovery_point=point, history=known)
        check_damaged_snapshots(files, directory, promises)


def _check_files(files: DataFiles, promises: Promises, key: TopicPartition, whole: Sequence[Entry]) -> None:
    """Check that all files are correct after recovery and a clean stop."""
    directory = f"{PATH}/{key}"
    bases = [each.base_offset for entry in files.list(directory) if (each := parse_segment_file(entry.name))]
    check_beside_log(files, directory, recovery_point=None, history=None if min(bases) else whole)
    check_snapshots(files, directory, promises, whole, NOW)


def _entries(log: PartitionLog) -> list[Entry]:
    """Read all batches between the log start and the log end."""
    found: list[Entry] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = read(log, offset, max_bytes=1 << 20, isolation_level=None).records
        for header in scan(data):
            content = bytes(data[header.position : header.position + header.size])
            aborts = None if not header.attributes & 0x20 else header.control_type == 0
            found.append(
                Entry(
                    header.base_offset, header.last_offset, content[CRC_AND_BEHIND], header.producer_id,
                    bool(header.attributes & 0x10), aborts,
                )
            )  # fmt: skip
        assert found[-1].last_offset >= offset, "reading does not advance"
        offset = found[-1].last_offset + 1
    return found


def _check_log(log: PartitionLog, found: Sequence[Entry], history: History) -> Sequence[Entry]:
    """Return all entries appended below the log end, including deleted ones."""
    start, end = log.log_start_offset, log.log_end_offset
    assert history.acknowledged_start <= start <= max(history.start, history.acknowledged_start), start
    candidates = [history.entries]
    least = history.acknowledged_end
    if history.cuts:
        candidates.append(history.before_cut)
        least = min(least, history.entries[-1].last_offset + 1 if history.entries else 0)
    assert end >= least, f"ends at {end}, acknowledged up to {least}"
    states = [[entry for entry in entries if entry.last_offset < end] for entries in candidates]
    fitting = [state for state in states if [each for each in state if each.last_offset >= start] == found]
    assert fitting, f"a hole, or something that was never there: {found}"
    for segment in log.segments:
        size = sum(size for index in segment.windows() for size in index.size)
        assert size == segment.size, f"{segment.path('log')} ends in {segment.size - size} bytes of no batch"
    _check_transactions(log, found, fitting[0])
    if history.start <= start:  # an unfinished deletion has truncated them already
        _check_epochs(log)
    return fitting[0]


def _check_epochs(log: PartitionLog) -> None:
    """The epochs are those of the batches; epochs of deleted batches may be known, too."""
    wanted = LeaderEpochs()
    for segment in log.segments:
        for index in segment.windows():
            for epoch, offset in zip(index.partition_leader_epoch, index.base_offset, strict=True):
                wanted.assign(epoch, offset)
    wanted.truncate_from_start(log.log_start_offset)
    if log.log_start_offset < log.log_end_offset:
        known = LeaderEpochs(log.epochs.entries)
        known.truncate_from_start(log.log_start_offset)
        assert known.entries == wanted.entries, (log.epochs.entries, wanted.entries)


def _check_transactions(log: PartitionLog, found: Sequence[Entry], whole: Sequence[Entry]) -> None:
    """Check the last stable offset and the aborted transactions, derived from the batches alone."""
    assert log.high_watermark == log.log_end_offset
    aborted, begun = transactions(whole)
    open_below = [max(each, log.log_start_offset) for each in begun.values()]
    stable = min(open_below, default=log.log_end_offset)
    assert log.last_stable_offset <= stable <= log.log_end_offset, (log.last_stable_offset, stable)
    if stable in (log.log_end_offset, *begun.values()):
        assert log.last_stable_offset == stable, (log.last_stable_offset, stable)
    offset = log.log_start_offset
    while offset < log.last_stable_offset:
        answer = read(log, offset, max_bytes=1 << 20, isolation_level=IsolationLevel.READ_COMMITTED)
        end = scan(answer.records)[-1].last_offset + 1
        _check_aborted(answer.aborted_transactions or [], aborted, (offset, end), found[0].first_offset)
        offset = end


def _check_aborted(
    told: Sequence[AbortedTxn], aborted: Sequence[Transaction], read: tuple[int, int], start: int
) -> None:
    """A read returns exactly the aborted transactions that overlap it. One whose first data was deleted may
    begin at the log start; one whose data was all deleted may be missing."""
    assert list(told) == sorted(told, key=lambda each: each.first_offset)
    found = {(each.producer_id, each.last_offset): each for each in told}
    assert len(found) == len(told), told
    offset, end = read
    for each in aborted:
        left = [entry.first_offset for entry in each.data if entry.last_offset >= start]
        if each.last_offset < offset or each.data[0].first_offset >= end:
            continue
        entry = found.pop((each.producer_id, each.last_offset), None)
        if entry is None:
            assert not left or left[0] >= end, (read, each, told)
        elif each.data[0].first_offset >= start:
            assert entry.first_offset == each.data[0].first_offset, (read, each, told)
            assert entry.last_stable_offset == each.last_stable_offset, (read, each, told)
        else:
            latest = left[0] if left else each.last_offset
            assert each.data[0].first_offset <= entry.first_offset <= latest, (read, each, told)
    assert not found, f"{found} were not aborted, or do not lie in {read}"
