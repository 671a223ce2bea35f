"""What is left of a log that is cut: at its end, by truncation; at its beginning, by retention.

Source: ``LocalLog.truncateTo``, ``UnifiedLog.deleteOldSegments``,
``UnifiedLog.maybeIncrementLogStartOffset``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from txnkafka.storage.log.leader_epochs import LeaderEpochs

__all__ = ["Cut"]


class Cut(NamedTuple):
    """Of its segments those with the numbers ``[first, last)`` are left, the last one up to ``position``.
    Where none is, the log goes on in a new segment at its end. It is cut at its beginning or at its end, not
    at both."""

    first: int
    last: int
    position: int
    log_start_offset: int
    log_end_offset: int
    epochs: LeaderEpochs
