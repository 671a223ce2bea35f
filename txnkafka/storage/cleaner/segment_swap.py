"""Replaces segments by a rewritten one, so that a crash leaves either the old ones or the new one.

The files are renamed from ``.cleaned`` to ``.swap``, the log last. Once ``.log.swap`` exists durably, the new
segment counts: after a crash ``storage.recovery.interrupted`` finishes the rest, and so does Kafka. Then the
old files become ``.deleted``, and the suffix ``.swap`` is removed from the new ones, again from the log last.

Source: ``LocalLog.replaceSegments``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnkafka.storage.cleaner.cleaned_segment import CleanedSegment
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.partition_log import PartitionLog

__all__ = ["swap_segments"]


def swap_segments(
    log: PartitionLog, cleaned: CleanedSegment, replaced: Sequence[LogSegment], *, now_ms: int
) -> None:
    """Replace consecutive segments by ``cleaned``, whose bytes are durable. Raises KafkaStorageError, and the
    log is fenced: opening it again finishes or undoes the swap."""
    try:
        log.files.sync_directory(log.directory)
        cleaned.files.become(".swap")
        log.files.sync_directory(log.directory)
        for segment in replaced:
            log.local.delete(segment, now_ms + log.config.file_delete_delay_ms)
        cleaned.files.become("")
        log.files.sync_directory(log.directory)
        log.local.replace(replaced, cleaned)
        log.offsets.positions.clear()
        for segment in replaced[1:]:
            log.snapshots.remove(segment.base_offset)
        cleaned.unload()
        cleaned.close()
    except OSError as error:
        log.fence(error)
        log.check_usable()
