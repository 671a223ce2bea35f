"""``Begun``: since when transactions are open, for their timeouts, on a clock that may be put back.

A transaction that began while the clock was ahead has a beginning that lies in the future, perhaps by years.
By its record it would stay open that much longer, and hold the last stable offset. So its age is the time
that has passed since somebody saw that; but only for as long as it lies in the future: a clock that was wrong
for a moment makes no transaction older.
"""

from __future__ import annotations

from collections.abc import Iterable

from txnkafka.wire.records import TransactionMetadata

__all__ = ["Begun"]


class Begun:
    """When the transactions have begun whose records name a time in the future, by transactional id."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int]] = {}  # the time in the record, the ticks at which it was seen

    def by(self, ongoing: Iterable[TransactionMetadata], now_ms: int, ticks: int) -> dict[str, int]:
        """Return for each open transaction a time, not later than ``now_ms``, by which it had begun."""
        found, seen = {}, {}
        for metadata in ongoing:
            transactional_id, start = metadata.transactional_id, metadata.start_timestamp
            found[transactional_id] = start
            if start > now_ms:
                recorded, since = self._seen.get(transactional_id, (start, ticks))
                since = since if recorded == start else ticks
                seen[transactional_id] = start, since
                found[transactional_id] = now_ms - (ticks - since)
        self._seen = seen
        return found
