"""The offsets committed by groups: the state of one partition of ``__consumer_offsets``.

An offset committed in a transaction is pending until the end marker of its producer. COMMIT makes it the
committed offset, unless a later record has committed another one; ABORT drops it. A tombstone removes the
committed and all pending offsets of its key. Offsets of transactions open at the end of the log stay pending.

Source: OffsetMetadataManager.replay and replayEndTransactionMarker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txnkafka.coordinator.log_event import KEPT_RECORD
from txnkafka.model import NO_PRODUCER_ID

if TYPE_CHECKING:
    from txnkafka.coordinator.log_event import LogEvent

OFFSET_COMMIT_KEYS = (b"\0\0", b"\0\1")  # two versions of one key, with the same fields


class CommittedOffset(NamedTuple):
    """An undecoded record that commits an offset."""

    record_offset: int
    key: bytes
    value: bytes


class Offsets:
    """Committed offsets, and pending ones by producer id; keys are raw, without their version.

    ``producers`` has the producers with a pending offset by key, which saves a search. Only ``replay``
    changes the offsets."""

    def __init__(self) -> None:
        self.committed: dict[bytes, CommittedOffset] = {}
        self.pending: dict[int, dict[bytes, CommittedOffset]] = {}
        self.producers: dict[bytes, set[int]] = {}

    def kept_bytes(self) -> int:
        """Bytes of the keys and values in memory, with KEPT_RECORD for each record."""
        parts = (self.committed, *self.pending.values())
        return sum(
            KEPT_RECORD + len(record.key) + len(record.value) for part in parts for record in part.values()
        )

    def replay(self, event: LogEvent) -> None:
        """Apply the next event of the log; records of other types change nothing."""
        if event.committed is not None:
            self._end(event.producer_id, event.committed)
        elif event.key is not None and event.key[:2] in OFFSET_COMMIT_KEYS:
            self._commit(event, event.key)

    def _end(self, producer_id: int, committed: bool) -> None:
        for name, pending in self._taken(producer_id).items():
            there = self.committed.get(name)
            if committed and (there is None or pending.record_offset > there.record_offset):
                self.committed[name] = pending

    def _taken(self, producer_id: int) -> dict[bytes, CommittedOffset]:
        """Remove and return the pending offsets of a producer."""
        found = self.pending.pop(producer_id, {})
        for name in found:
            self.producers[name].discard(producer_id)
            if not self.producers[name]:
                del self.producers[name]
        return found

    def _commit(self, event: LogEvent, key: bytes) -> None:
        name = key[2:]
        if event.value is None:
            self.committed.pop(name, None)
            for producer_id in self.producers.pop(name, ()):
                del self.pending[producer_id][name]
            return
        target = self.committed
        if event.producer_id != NO_PRODUCER_ID:
            target = self.pending.setdefault(event.producer_id, {})
            self.producers.setdefault(name, set()).add(event.producer_id)
        target[name] = CommittedOffset(event.offset, key, event.value)
