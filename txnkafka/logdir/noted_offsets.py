"""Compares the offsets in a log directory's checkpoints with the end of a partition's log.

A log that ends below an offset that its broker noted has lost records. The batches alone do not show that:
the file may be cut between two batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from txnkafka.errors import LogDirError
from txnkafka.logdir.finding import Finding
from txnkafka.storage.formats import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)

if TYPE_CHECKING:
    from txnkafka.logdir.partition_source import PartitionSource

# severity and remedy
BEYOND_LOG_END: Final = {
    "high-watermark-beyond-log-end": ("error", "restore the end of the log: what is missing was replicated"),
    "log-start-beyond-log-end": ("error", "correct the checkpoint: the broker would delete the whole log"),
    "recovery-point-beyond-log-end": ("warning", "restore the end of the log: what is missing was flushed"),
}


def beyond_log_end(source: PartitionSource, end_offset: int) -> Iterator[Finding]:
    """Yield a finding for each noted offset beyond the end of the log."""
    # While a broker writes, a checkpoint can be newer than the previously read log size.
    if source.being_written or source.only_base_offset is not None:
        return
    checked = (
        (source.high_watermark, HIGH_WATERMARK_CHECKPOINT, "high-watermark-beyond-log-end"),
        (source.log_start_offset, LOG_START_OFFSET_CHECKPOINT, "log-start-beyond-log-end"),
        (source.recovery_point, RECOVERY_POINT_CHECKPOINT, "recovery-point-beyond-log-end"),
    )
    for offset, name, code in checked:
        if offset is not None and offset > end_offset:
            parent = source.file_system.split(source.path)[0]
            text = f"{source.topic_partition} stands at {offset}, but its log ends at offset {end_offset}"
            severity, remedy = BEYOND_LOG_END[code]
            yield Finding(source.file_system.join(parent, name), None, severity, code, text, remedy)


def known_high_watermark(source: PartitionSource) -> int:
    """Return the high watermark that the broker noted last. Raises LogDirError without one."""
    if source.high_watermark is None:
        raise LogDirError(
            f"{HIGH_WATERMARK_CHECKPOINT} has no high watermark of {source.topic_partition}; a broker writes "
            "it every 5 seconds and when it stops: try again later, or read to the log end"
        )
    return source.high_watermark
