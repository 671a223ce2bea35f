"""``Flushing``: a group flush that syncs its logs in several steps, so that requests, other work and the end
of the process happen in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from txnkafka.broker.flush import Flush
    from txnkafka.env import Random
    from txnkafka.storage.log.partition_log import PartitionLog


class Flushing:
    """``failed`` has the logs with failed syncs so far, and their errors."""

    def __init__(self, flush: Flush, random: Random) -> None:
        self.flush = flush
        self.failed: dict[PartitionLog, OSError] = {}
        self._left = [*reversed(flush.logs)]
        self._random = random
        if not any(each.contents or each.paths or each.directories for _, each in flush.logs):
            random.shuffle(self._left)  # the server syncs open files in parallel

    @property
    def is_synced(self) -> bool:
        """Return True once all logs were synced or have failed."""
        return not self._left

    def sync_some(self) -> None:
        """Sync at least one log."""
        for _ in range(1 + int(self._random.random() * len(self._left))):
            self._sync_next()

    def sync_rest(self) -> dict[PartitionLog, OSError]:
        """Sync all remaining logs; return ``failed``."""
        while self._left:
            self._sync_next()
        return self.failed

    def _sync_next(self) -> None:
        log, flush = self._left.pop()
        try:
            flush.run(log.files)
        except OSError as error:
            self.failed[log] = error
