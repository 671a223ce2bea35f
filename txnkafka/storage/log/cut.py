"""The part of a log that remains after truncation (at its end) or retention (at its beginning).

Source: ``LocalLog.truncateTo``, ``UnifiedLog.deleteOldSegments``,
``UnifiedLog.maybeIncrementLogStartOffset``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from txnkafka.storage.log.leader_epochs import LeaderEpochs


class Cut(NamedTuple):
    """The segments numbered ``[first, last)`` remain; the last one is cut at ``position``. If no segment
    remains, the log continues in a new segment at its end. A cut is at the beginning or at the end, not
    both."""

    first: int
    last: int
    position: int
    log_start_offset: int
    log_end_offset: int
    epochs: LeaderEpochs
