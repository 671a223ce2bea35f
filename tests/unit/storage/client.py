"""Logs in memory for the tests of this package, and the batches that are appended to them."""

from __future__ import annotations

from typing import Any

from txnkafka._core.encode import encode_batch, end_txn_marker
from txnkafka.config import LogConfig
from txnkafka.env import DataFiles, make_directories
from txnkafka.model import TopicPartition
from txnkafka.storage.log.append_info import AppendInfo
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.recovery.log_loader import Start, open_log
from txnkafka.testing.disk import Disk
from txnkafka.testing.losses import ALL_KEPT, ALL_LOST, Losses
from txnkafka.testing.memory_files import MemoryFiles
from txnkafka.testing.unsynced import Unsynced

__all__ = ["NOW", "PARTITION", "PATH", "Log", "data", "marker", "opened", "what_is_synced"]

NOW = 1_700_000_000_000
PATH = "/data/t-0"
PARTITION = TopicPartition("t", 0)


def data(
    producer_id: int = -1,
    sequence: int = -1,
    count: int = 2,
    *,
    epoch: int = 0,
    timestamp: int = NOW,
    **fields: Any,
) -> bytearray:
    """Encode a batch of ``count`` records, 26 bytes each at most, from a producer."""
    if producer_id >= 0:
        fields |= {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
    return encode_batch([(b"key", b"value %d" % i, timestamp, []) for i in range(count)], **fields)


def marker(producer_id: int, *, commit: bool = True, **fields: int) -> bytes:
    """Encode an end marker."""
    fields = {"base_offset": 0, "timestamp": NOW, "producer_epoch": 0, "coordinator_epoch": 0, **fields}
    return end_txn_marker(producer_id=producer_id, commit=commit, **fields)


def opened(files: DataFiles | None = None, start: Start | None = None, **configs: Any) -> PartitionLog:
    """Open the log at PATH; create it if it does not exist."""
    files = MemoryFiles() if files is None else files
    make_directories(files, PATH)
    config = LogConfig(**{"index_interval_bytes": 100, "file_delete_delay_ms": 1000, **configs})
    return open_log(files, PATH, PARTITION, config, start or Start(), now_ms=NOW).log


def what_is_synced(files: MemoryFiles) -> Disk:
    """Return the disk after a power cut that keeps all names, but only the synced contents."""
    unsynced = Unsynced(files.base)
    for change in files.journal:
        unsynced.make(change)
    return Losses(unsynced).disk(ALL_LOST, ALL_KEPT)[0]


class Log:
    """A log with short methods for what its clients do. Every batch is appended at ``now_ms``."""

    def __init__(self, log: PartitionLog | None = None, **configs: Any) -> None:
        self.log = opened(**configs) if log is None else log
        self.now_ms = NOW

    def append(self, batch: bytes | bytearray, **arguments: Any) -> AppendInfo:
        return self.log.append(batch, now_ms=self.now_ms, **arguments)

    def plain(self, count: int = 2, **fields: Any) -> AppendInfo:
        return self.append(data(count=count, **fields))

    def idempotent(self, producer_id: int, sequence: int, count: int = 2, **fields: Any) -> AppendInfo:
        return self.append(data(producer_id, sequence, count, **fields))

    def transactional(self, producer_id: int, sequence: int, count: int = 2, **fields: Any) -> AppendInfo:
        """Append to a transaction; start a verification first if the partition needs one."""
        guard = self.log.verification.maybe_start(
            self.log.producers, producer_id, fields.get("epoch", 0), sequence,
            supports_epoch_bump=False, now_ms=self.now_ms,
        )  # fmt: skip
        return self.append(data(producer_id, sequence, count, transactional=True, **fields), guard=guard)

    def end(self, producer_id: int, *, commit: bool = True, version: int = 0, **fields: int) -> AppendInfo:
        return self.append(
            marker(producer_id, commit=commit, **fields),
            origin=AppendOrigin.COORDINATOR,
            transaction_version=version,
        )

    def restart(self, *, clean: bool = True, power_cut: bool = False) -> None:
        """Reopen the log as a new process does: after a close, after the death of the first process, or after
        a power cut that left only the synced bytes."""
        log = self.log
        if clean and not power_cut:
            log.close()
        else:
            log.local.close_files()
        if power_cut:
            assert isinstance(log.files, MemoryFiles)
            log.files = MemoryFiles(base=what_is_synced(log.files))
        start = Start(clean and not power_cut, log.recovery_point, log.log_start_offset)
        self.log = open_log(log.files, log.directory, PARTITION, log.config, start, now_ms=self.now_ms).log

    @property
    def bases(self) -> list[int]:
        return [segment.base_offset for segment in self.log.segments]

    def names(self) -> list[str]:
        """Return the names of the files in the directory."""
        return [entry.name for entry in self.log.files.list(self.log.directory)]
