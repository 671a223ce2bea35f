"""Replaces segments by a rewritten one; a crash leaves either the old segments or the new one.

The files are renamed from ``.cleaned`` to ``.swap``, the log last. Once ``.log.swap`` exists durably, the new
segment counts: after a crash, ``storage.recovery.interrupted`` finishes the rest, as Kafka does. Then the old
files become ``.deleted``, and once that is durable, the suffix ``.swap`` is removed from the new files, again
from the log last.

The owner changes the open log between two waits for the disk: once the old files are renamed, it reads the
new segment.

Source: ``LocalLog.replaceSegments``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from txnkafka.storage.cleaner.cleaned_segment import CleanedSegment
    from txnkafka.storage.log.log_segment import LogSegment
    from txnkafka.storage.log.partition_log import PartitionLog


def swap_segments(
    log: PartitionLog, cleaned: CleanedSegment, replaced: Sequence[LogSegment], *, now_ms: int
) -> Iterator[Callable[[], None]]:
    """Replace consecutive segments by ``cleaned``, whose bytes are durable. Yields the calls that wait for
    the disk, to be made before the next step.

    Raises KafkaStorageError after an error, and fences the log; a caller that stops before the last step must
    also fence it. Reopening the log finishes or undoes the swap."""
    sync = partial(log.files.sync_directory, log.directory)

    def count() -> None:
        sync()
        cleaned.files.become(".swap")
        sync()

    try:
        yield count
        log.local.replace(replaced, cleaned, now_ms + log.config.file_delete_delay_ms)
        log.offsets.positions.clear()
        yield sync
        cleaned.files.become("")
        yield sync
        for segment in replaced[1:]:
            log.snapshots.remove(segment.base_offset)
        cleaned.unload()
        cleaned.close()
    except Exception as error:
        log.fence(error if isinstance(error, OSError | KafkaError) else OSError(repr(error)))
        log.check_usable()
