"""Plans the compaction of logs: the next log to clean.

Source: ``LogCleanerManager``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from txnkafka.config import CleanerConfig
from txnkafka.errors import KafkaError, KafkaStorageError
from txnkafka.storage.cleaner.cleaner_pass import CleanerPass
from txnkafka.storage.cleaner.log_to_clean import LogToClean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txnkafka.model import TopicPartition
    from txnkafka.storage.cleaner.cleaner_pass import CleanStats
    from txnkafka.storage.log.partition_log import PartitionLog

LOG = logging.getLogger("txnkafka.storage")
DEFAULT_CLEANER = CleanerConfig()


def dirtiest_first(logs: Iterable[LogToClean]) -> list[LogToClean]:
    """Return the logs that are due, in descending order of their dirty share."""
    return sorted((log for log in logs if log.is_due), key=lambda log: log.ratio, reverse=True)


def clean(
    log: PartitionLog, *, now_ms: int, dirty_from: int | None = None, config: CleanerConfig = DEFAULT_CLEANER
) -> CleanStats:
    """Compact a log now, durably, one group of segments at a time; ``dirty_from`` is the end of the last
    pass. Raises the errors of ``CleanerPass.begin``."""
    log.check_usable()
    return CleanerPass(LogToClean.of(log, dirty_from, now_ms), config, now_ms=now_ms).run()


def clean_dirtiest(
    logs: Mapping[TopicPartition, PartitionLog],
    cleaner_offsets: Mapping[TopicPartition, int],
    uncleanable: dict[TopicPartition, KafkaError],
    *,
    now_ms: int,
    config: CleanerConfig = DEFAULT_CLEANER,
) -> tuple[TopicPartition, CleanStats] | None:
    """Compact the dirtiest log; return None if no log is due. ``cleaner_offsets`` are the ends of their last
    passes. A damaged log is added to ``uncleanable`` and not tried again. Raises KafkaStorageError and
    OSError."""
    candidates = (
        LogToClean.of(log, cleaner_offsets.get(partition), now_ms)
        for partition, log in logs.items()
        if log.config.compact and log.fenced is None and partition not in uncleanable
    )
    for due in dirtiest_first(candidates):
        partition = due.log.topic_partition
        try:
            stats = clean(due.log, now_ms=now_ms, dirty_from=due.first_dirty_offset, config=config)
        except KafkaStorageError:
            raise
        except KafkaError as error:
            LOG.error("%s is not compacted any more: %s", partition, error)
            uncleanable[partition] = error
            continue
        return partition, stats
    return None
