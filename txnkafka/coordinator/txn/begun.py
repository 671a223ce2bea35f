"""``Begun``: start times of open transactions, for their timeouts, on a clock that may be set back.

A transaction that began while the clock was ahead has a start time in the future, perhaps by years. By its
record it would stay open that much longer, and hold back the last stable offset. So its age is measured in
ticks from the moment when the coordinator noticed this. That applies only while the start time is in the
future: a clock that was wrong for a moment makes no transaction older.
"""

from __future__ import annotations

from collections.abc import Iterable

from txnkafka.wire.records import TransactionMetadata


class Begun:
    """Ticks at which start times in the future were noticed, by transactional id."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int]] = {}  # start time in the record, ticks when it was noticed

    def by(self, ongoing: Iterable[TransactionMetadata], now_ms: int, ticks: int) -> dict[str, int]:
        """Return for each open transaction a time, at most ``now_ms``, by which it had begun."""
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
