"""Logs of one partition in memory, and batches for them."""

from __future__ import annotations

from txnkafka import TopicPartition
from txnkafka._core.encode import encode_batch, end_txn_marker
from txnkafka.config import LogConfig
from txnkafka.env import DataFiles
from txnkafka.storage.log.append_info import AppendInfo
from txnkafka.storage.log.log_validator import AppendOrigin
from txnkafka.storage.log.partition_log import PartitionLog
from txnkafka.storage.recovery.log_loader import Start, open_log
from txnkafka.testing.memory_files import MemoryFiles

__all__ = ["DIRECTORY", "NOW", "append", "content", "end", "opened", "restarted"]

NOW = 1_700_000_000_000
DIRECTORY = "/data/t-0"


def opened(files: DataFiles | None = None, start: Start | None = None, **config: object) -> PartitionLog:
    """Open a log of small segments."""
    files = files or MemoryFiles()
    for path in ("/data", DIRECTORY):
        if not files.exists(path):
            files.make_directory(path)
    wanted = LogConfig(**{"segment_bytes": 300, "index_interval_bytes": 0} | config)  # type: ignore[arg-type]
    return open_log(files, DIRECTORY, TopicPartition("t", 0), wanted, start or Start(), now_ms=NOW).log


def restarted(log: PartitionLog, *, clean: bool = True) -> PartitionLog:
    """Close the log and open it again; if not ``clean``, open it again as after a crash that lost nothing."""
    start = Start(clean, 0, log.log_start_offset)
    if clean:
        log.close()
    return open_log(log.files, DIRECTORY, log.topic_partition, log.config, start, now_ms=NOW).log


def append(
    log: PartitionLog,
    *timestamps: int,
    key: bytes | None = None,
    size: int = 40,
    producer_id: int = -1,
    sequence: int = 0,
    transactional: bool = False,
    leader_epoch: int = 0,
) -> AppendInfo:
    """Append a batch of one record for each timestamp."""
    known = producer_id >= 0
    batch = encode_batch(
        [(key, b"x" * size, timestamp) for timestamp in timestamps or (NOW,)],
        producer_id=producer_id,
        producer_epoch=0 if known else -1,
        base_sequence=sequence if known else -1,
        transactional=transactional,
    )
    guard = 0
    if transactional:
        guard = log.verification.maybe_start(
            log.producers, producer_id, 0, sequence, supports_epoch_bump=False, now_ms=NOW
        )
    return log.append(batch, now_ms=NOW, leader_epoch=leader_epoch, guard=guard)


def end(log: PartitionLog, producer_id: int, *, commit: bool, leader_epoch: int = 0) -> AppendInfo:
    """Append an end marker."""
    marker = end_txn_marker(
        base_offset=0, timestamp=NOW, producer_id=producer_id, producer_epoch=0, coordinator_epoch=1,
        commit=commit,
    )  # fmt: skip
    return log.append(
        marker,
        now_ms=NOW,
        leader_epoch=leader_epoch,
        origin=AppendOrigin.COORDINATOR,
        transaction_version=0,
    )


def content(files: DataFiles) -> dict[str, bytes]:
    """Return the files of the partition."""
    names = [entry.name for entry in files.list(DIRECTORY)]
    return {name: files.read(files.join(DIRECTORY, name), 1 << 20) for name in names}
