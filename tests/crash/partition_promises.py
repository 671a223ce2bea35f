"""What a partition's log promises, and whether what is left of one keeps it.

A workload appends through ``Partition``, which notes every attempt and every acknowledgement. ``check_logs``
opens what is left, and wants: a log that is some state the partition was in, no older than what was
acknowledged; exactly the transactions of it committed, aborted and open that its markers say; and a second
opening that finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tests.crash.explore import Promises
from txnkafka._core.encode import encode_batch, end_txn_marker
from txnkafka._core.producer_table import ProducerTable
from txnkafka._core.scan import scan
from txnkafka.config import LogConfig
from txnkafka.env import DataFiles
from txnkafka.errors import CorruptFileError, KafkaStorageError
from txnkafka.model import IsolationLevel, TopicPartition
from txnkafka.storage.append import AppendOrigin
from txnkafka.storage.data_directory import DataDirectory
from txnkafka.storage.layout import CLEAN_SHUTDOWN_FILE
from txnkafka.storage.log_read import read
from txnkafka.storage.partition_log import PartitionLog
from txnkafka.storage.truncation import delete_old_segments

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["CONFIG", "NOW", "PATH", "Partition", "check_logs", "opened"]

PATH, NOW = "/data", 1_700_000_000_000
TOPIC_ID = "AAAAAAAAAAEAAAAAAAAAAg"
CONFIG = LogConfig(segment_bytes=420, index_interval_bytes=100, retention_ms=-1, file_delete_delay_ms=0)
CRC_AND_BEHIND = slice(16, None)  # offset and leader epoch are given by the log


class Entry(NamedTuple):
    """A batch in a log: offsets, producer (-1: none), and whether it ends a transaction, and how."""

    first_offset: int
    last_offset: int
    content: bytes
    producer_id: int
    transactional: bool
    aborts: bool | None


@dataclass
class History:
    """What was done to one partition, as told by attempts: the states it may be in, the newest last."""

    entries: list[Entry] = field(default_factory=list)
    before_cut: list[Entry] = field(default_factory=list)
    cuts: int = 0  # truncations and deletions that are not acknowledged
    deletions: int = 0
    acknowledged_end: int = 0
    start: int = 0  # attempted
    acknowledged_start: int = 0


def opened(files: DataFiles, config: LogConfig = CONFIG) -> DataDirectory:
    return DataDirectory(files, PATH, lambda topic: config, now_ms=NOW)


class Partition:
    """A partition that notes what it is asked for."""

    def __init__(self, directory: DataDirectory, promises: Promises, number: int = 0) -> None:
        self.key = TopicPartition("t", number)
        self.directory = directory
        self._promises = promises
        if self.key not in directory.logs:
            directory.create(self.key, TOPIC_ID, now_ms=NOW)
        self.log: PartitionLog = directory.logs[self.key]
        self._sequences: dict[int, int] = {}

    def append(
        self, text: str, producer_id: int = -1, *, transactional: bool = False, records: int = 2,
        key: bytes = b"key",
    ) -> None:  # fmt: skip
        sequence = self._sequences.get(producer_id, 0) if producer_id >= 0 else -1
        values = [(key, f"{text}-{i}".encode(), NOW + i, []) for i in range(records)]
        batch = encode_batch(
            values,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
        )
        guard = 0
        if transactional:
            guard = self.log.verification.maybe_start(
                self.log.producers, producer_id, 0, sequence, supports_epoch_bump=False, now_ms=NOW
            )
        self._append(batch, records, producer_id, transactional=transactional, guard=guard)
        if producer_id >= 0:
            self._sequences[producer_id] = sequence + records

    def end(self, producer_id: int, *, commit: bool) -> None:
        marker = end_txn_marker(
            base_offset=0, timestamp=NOW, producer_id=producer_id, producer_epoch=0, coordinator_epoch=1,
            commit=commit,
        )  # fmt: skip
        self._append(marker, 1, producer_id, transactional=True, aborts=not commit)

    def _append(
        self,
        batch: Buffer,
        records: int,
        producer_id: int,
        *,
        transactional: bool,
        aborts: bool | None = None,
        guard: int = 0,
    ) -> None:
        end, content = self.log.log_end_offset, bytes(memoryview(batch)[CRC_AND_BEHIND])
        entry = Entry(end, end + records - 1, content, producer_id, transactional, aborts)
        origin = AppendOrigin.CLIENT if aborts is None else AppendOrigin.COORDINATOR
        self._promises.attempt(("append", self.key, entry))
        try:
            info = self.log.append(batch, now_ms=NOW, origin=origin, transaction_version=0, guard=guard)
        except KafkaStorageError:
            if self.log.fenced is None:
                self._promises.attempt(("refused", self.key, entry))
            raise
        assert info[:2] == entry[:2]
        assert not info.is_duplicate

    def flush(self) -> None:
        end = self.log.log_end_offset
        self.directory.flush()
        if self.log.fenced is None:
            self._promises.acknowledge(("end", self.key, end))

    def truncate(self, offset: int) -> None:
        self._promises.attempt(("truncate", self.key, offset))
        self.directory.truncate(self.key, offset, now_ms=NOW)
        self._promises.acknowledge(("truncate", self.key, offset))

    def delete_records(self, offset: int) -> None:
        self._promises.attempt(("start", self.key, offset))
        self.directory.delete_records(self.key, offset)
        self._promises.acknowledge(("start", self.key, offset))

    def delete_old_segments(self, now_ms: int = NOW) -> None:
        self._promises.attempt(("start", self.key, self.log.log_end_offset))
        delete_old_segments(self.log, now_ms)
        self.log.remove_deleted(now_ms)

    def delete(self) -> None:
        self._promises.attempt(("delete", self.key, 0))
        self.directory.delete(self.key)
        self._promises.acknowledge(("delete", self.key, 0))


def check_logs(files: DataFiles, promises: Promises, config: LogConfig = CONFIG) -> None:
    """Raises AssertionError when a promise was broken."""
    histories = _histories(promises)
    stopped_cleanly = files.exists(f"{PATH}/{CLEAN_SHUTDOWN_FILE}")
    directory = opened(files, config)
    assert not directory.refused, directory.refused
    assert not (stopped_cleanly and directory.repairs), directory.repairs
    found = {key: _entries(log) for key, log in directory.logs.items()}
    for key, history in histories.items():
        if (history.acknowledged_end or history.acknowledged_start) and not history.deletions:
            assert key in directory.logs, f"{key} is gone"
        if key in directory.logs:
            _check_log(directory.logs[key], found[key], history)
    directory.close()
    again = opened(files, config)
    assert not again.repairs, again.repairs
    assert {key: _entries(log) for key, log in again.logs.items()} == found
    again.close()


def _histories(promises: Promises) -> dict[TopicPartition, History]:
    histories: dict[TopicPartition, History] = {}
    for what, key, value in promises.attempted:  # type: ignore[misc]
        history = histories.setdefault(key, History())
        if what == "append":
            history.entries.append(value)
        elif what == "refused":
            history.entries.remove(value)
        elif what == "truncate":
            history.before_cut = history.entries
            history.cuts += 1
            history.entries = [each for each in history.entries if each.last_offset < value]
        elif what == "delete":
            history.before_cut, history.entries = history.entries, []
            history.cuts += 1
            history.deletions += 1
        else:
            history.start = max(history.start, value)
    for what, key, value in promises.acknowledged:  # type: ignore[misc]
        history = histories[key]
        if what == "truncate":
            history.cuts -= 1
            history.acknowledged_end = min(history.acknowledged_end, value)
        elif what == "delete":
            history.cuts -= 1
            history.deletions -= 1
            history.acknowledged_end = 0
        elif what == "end":
            history.acknowledged_end = max(history.acknowledged_end, value)
        else:
            history.acknowledged_start = max(history.acknowledged_start, value)
    return histories


def _entries(log: PartitionLog) -> list[Entry]:
    """Everything between the log start and the log end, read as anybody would."""
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


def _check_log(log: PartitionLog, found: Sequence[Entry], history: History) -> None:
    start = log.log_start_offset
    assert history.acknowledged_start <= start <= max(history.start, history.acknowledged_start), start
    candidates = [history.entries]
    least = history.acknowledged_end
    if history.cuts:
        candidates.append(history.before_cut)
        least = min(least, history.entries[-1].last_offset + 1 if history.entries else 0)
    assert log.log_end_offset >= least, f"ends at {log.log_end_offset}, acknowledged up to {least}"
    assert any(_is_state_of(found, each, start, log.log_end_offset) for each in candidates), found
    _check_transactions(log, found)
    if not start:
        _check_snapshots(log)


def _is_state_of(found: Sequence[Entry], entries: Sequence[Entry], start: int, end: int) -> bool:
    """The batches of some moment, without those below the log start."""
    return list(found) == [each for each in entries if each.last_offset >= start and each.last_offset < end]


def _check_transactions(log: PartitionLog, found: Sequence[Entry]) -> None:
    """The last stable offset and the aborted transactions, from the batches alone."""
    assert log.high_watermark == log.log_end_offset
    begun: dict[int, int] = {}
    aborted = []
    for entry in found:
        if entry.aborts is None and entry.transactional:
            begun.setdefault(entry.producer_id, entry.first_offset)
        elif entry.aborts is not None:
            first = begun.pop(entry.producer_id, None)
            if entry.aborts and first is not None:
                aborted.append((entry.producer_id, first, entry.last_offset))
    stable = min(begun.values(), default=log.log_end_offset)
    assert log.last_stable_offset == stable, (log.last_stable_offset, stable)
    offset = log.log_start_offset
    while offset < stable:
        answer = read(log, offset, max_bytes=1 << 20, isolation_level=IsolationLevel.READ_COMMITTED)
        entries = answer.aborted_transactions or []
        # one that begins below the log start may be told from its beginning
        told = [
            (each.producer_id, max(each.first_offset, found[0].first_offset), each.last_offset)
            for each in entries
        ]
        end = scan(answer.records)[-1].last_offset + 1
        begins = {(producer_id, last): first for producer_id, first, last in told}
        for producer_id, first, last in aborted:
            if first < end and last >= offset:
                # of a transaction whose beginning was deleted, more may be told than is left
                assert begins.get((producer_id, last), end) <= first, (offset, aborted, told)
        assert told == sorted(told, key=lambda each: each[1])
        offset = end


def _check_snapshots(log: PartitionLog) -> None:
    """Each snapshot is what the log below it says; a crash may have damaged those that nobody needs."""
    data = _everything(log)
    for offset in log.snapshots.offsets:
        assert offset <= log.log_end_offset, f"a snapshot of {offset} above {log.log_end_offset}"
        table, kept = ProducerTable(), ProducerTable()
        batches = scan(data)
        batches.truncate(batches.find(offset), "end", "")
        table.replay(batches, 0, [])
        with suppress(CorruptFileError):
            kept.load(log.snapshots.read(offset), now_ms=NOW, expiration_ms=1 << 62)
            assert kept.snapshot() == table.snapshot(), f"the snapshot of {offset} differs"


def _everything(log: PartitionLog) -> bytes:
    parts = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = read(log, offset, max_bytes=1 << 20, isolation_level=None).records
        parts.append(bytes(data))
        offset = scan(data)[-1].last_offset + 1
    return b"".join(parts)
