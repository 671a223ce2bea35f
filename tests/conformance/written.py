"""What was written to one partition, and so what a consumer must get of it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Batch", "Marker", "Record", "Written"]

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """A record as consumers see it."""

    offset: int
    timestamp: int
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: Headers


class Batch(NamedTuple):
    """Records of one producer; compaction may have left none."""

    offset: int
    last_offset: int
    records: list[Record]
    producer_id: int
    transactional: bool


class Marker(NamedTuple):
    """The end of a producer's transaction."""

    offset: int
    producer_id: int
    commit: bool


class Written:
    """Everything in the order of its offsets, and where the log begins."""

    def __init__(self) -> None:
        self.entries: list[Batch | Marker] = []
        self.start = 0
        self.end = 0

    def add(self, entry: Batch | Marker) -> None:
        """What was appended next."""
        self.entries.append(entry)
        self.end = _last_offset(entry) + 1

    def cut(self, end: int) -> None:
        """Everything from ``end`` on is gone; batches as a whole."""
        self.entries = [each for each in self.entries if _last_offset(each) < end]
        self.end = end

    def keep(self, offsets: set[int]) -> None:
        """Compaction has left these records."""
        for entry in self.entries:
            if isinstance(entry, Batch):
                entry.records[:] = [record for record in entry.records if record.offset in offsets]

    def latest(self) -> dict[bytes | None, bytes]:
        """The last committed value of each key that was not deleted."""
        found = {record.key: record.value for record in self.consumed("read_committed")}
        return {key: value for key, value in found.items() if value is not None}

    def is_open(self, producer_id: int) -> bool:
        """Whether the producer has a transaction that has not ended."""
        return producer_id in self._outcomes()[1]

    def consumed(self, level: str) -> list[Record]:
        """What a consumer of that isolation level gets."""
        outcomes, opened = self._outcomes()
        limit = min(opened.values(), default=self.end) if level == "read_committed" else self.end
        return [
            record
            for number, entry in enumerate(self.entries)
            if isinstance(entry, Batch) and (level != "read_committed" or outcomes.get(number, True))
            for record in entry.records
            if self.start <= record.offset < limit
        ]

    def _outcomes(self) -> tuple[dict[int, bool], dict[int, int]]:
        """Whether an entry's transaction was committed, and the first offsets of those that are open."""
        outcomes: dict[int, bool] = {}
        opened: dict[int, list[int]] = {}
        for number, entry in enumerate(self.entries):
            if isinstance(entry, Marker):
                outcomes |= dict.fromkeys(opened.pop(entry.producer_id, ()), entry.commit)
            elif entry.transactional:
                opened.setdefault(entry.producer_id, []).append(number)
        first = {each: self.entries[numbers[0]] for each, numbers in opened.items()}
        return outcomes, {each: entry.offset for each, entry in first.items()}


def _last_offset(entry: Batch | Marker) -> int:
    return entry.offset if isinstance(entry, Marker) else entry.last_offset
