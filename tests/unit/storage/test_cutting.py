"""Logs that are cut at either end, and go on."""

from __future__ import annotations

from txnkafka import TopicPartition
from txnkafka._core.encode import encode_batch
from txnkafka.config import LogConfig
from txnkafka.storage.partition_log import PartitionLog
from txnkafka.storage.recovery import Start, open_log
from txnkafka.storage.truncation import delete_old_segments, truncate_to
from txnkafka.testing.memory_files import MemoryFiles

NOW = 1_700_000_000_000
DIRECTORY = "/data/t-0"


def opened(files: MemoryFiles | None = None, start: Start | None = None, **config: object) -> PartitionLog:
    files = files or MemoryFiles()
    for path in ("/data", DIRECTORY):
        if not files.exists(path):
            files.make_directory(path)
    wanted = LogConfig(**{"segment_bytes": 300, "index_interval_bytes": 0} | config)  # type: ignore[arg-type]
    return open_log(
        files, DIRECTORY, TopicPartition("t", 0), wanted, start or Start(), now_ms=NOW
    ).log


def append(log: PartitionLog, *timestamps: int, size: int = 40) -> None:
    batch = encode_batch([(None, b"x" * size, timestamp) for timestamp in timestamps or (NOW,)])
    log.append(batch, now_ms=NOW)


def test_a_segment_that_goes_before_it_was_flushed() -> None:
    """Files that were to be synced are closed with their segment; the flush does not ask for them."""
    log = opened()
    for _ in range(9):
        append(log)
    assert len(log.segments) > 3
    truncate_to(log, 1, now_ms=NOW)
    for _ in range(9):
        append(log)
    log.advance_high_watermark(log.log_end_offset)
    log.log_start_offset = log.active.base_offset
    assert delete_old_segments(log, NOW) > 1
    log.flush()
    assert log.recovery_point == log.log_end_offset == 10
