"""``View``: a history with data derived for several checks."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnkafka.testing.simulation.history import History, Partition, Send


class Read(NamedTuple):
    """The records, by ``numbers``, that a read_committed reader read at once; the final read is last."""

    process: str
    partition: Partition
    at_us: int
    numbers: list[int]
    values: list[tuple[int, int]]


class View:
    """A history with derived data: the record read at each offset, the reads of read_committed readers, and
    the transactions that these reads prove to be committed."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.seen: dict[Partition, dict[int, int]] = defaultdict(dict)  # offset → record
        self.conflicts: list[tuple[Partition, int, int, int]] = []
        self.offsets: dict[tuple[Partition, int], int] = {}  # the first offset read of a record
        self.repeated: list[tuple[int, Partition, int, int]] = []
        self._pairs: dict[Partition, set[tuple[int, int]]] = defaultdict(set)
        self._newest: dict[Partition, dict[bytes, int]] = {}  # newest offset by key
        for poll in history.polls:
            self._see(poll.partition, poll.values)
        for (_, partition), values in history.final.items():
            self._see(partition, values)
        self.transactions = [send.transaction for send in history.sends]  # by record
        self.reads = list(self._reads())
        proven: set[int] = set()  # records
        for read in self.reads:
            proven.update(read.numbers)
        self.proven = {self.transactions[number] for number in proven}

    def _see(self, partition: Partition, values: list[tuple[int, int]]) -> None:
        topic = self.history.topics[partition[0]]
        if topic.is_deletable:  # offsets restart
            return
        pairs = self._pairs[partition]
        if pairs.issuperset(values):  # other readers read the same
            return
        pairs.update(values)
        seen, offsets = self.seen[partition], self.offsets
        for offset, number in values:
            before = seen.setdefault(offset, number)
            if before != number:
                self.conflicts.append((partition, offset, before, number))
            first = offsets.setdefault((partition, number), offset)
            if first != offset:
                self.repeated.append((number, partition, first, offset))

    def _reads(self) -> Iterator[Read]:
        known = len(self.transactions)
        for poll in self.history.polls:
            if poll.is_committed:
                numbers = [number for _, number in poll.values if number < known]
                yield Read(poll.process, poll.partition, poll.at_us, numbers, poll.values)
        for (is_committed, partition), values in self.history.final.items():
            if is_committed:
                numbers = [number for _, number in values if number < known]
                yield Read("the end", partition, 1 << 62, numbers, values)

    def final(self, partition: Partition) -> dict[int, int]:
        """Return record → offset of the final read_committed records."""
        return {number: offset for offset, number in self.history.final.get((True, partition), ())}

    def may_be_gone(self, send: Send, final: dict[int, int]) -> bool:
        """Return True if the topic's settings allow a committed record to be missing at the end."""
        topic = self.history.topics[send.partition[0]]
        offset = self.offsets.get((send.partition, send.number), send.offset)
        if topic.is_deletable:
            return True
        if topic.loses_old and 0 <= offset < self.history.log_starts.get(send.partition, 0):
            return True
        if topic.loses_old and offset < 0:
            return True  # its offset was never read
        return topic.is_compacted and self._newest_of(send.partition, final).get(send.key, -1) > offset

    def _newest_of(self, partition: Partition, final: dict[int, int]) -> dict[bytes, int]:
        """Return the final newest offset of each key."""
        newest = self._newest.get(partition)
        if newest is None:
            newest = self._newest[partition] = {}
            for number, offset in final.items():
                key = self.history.sends[number].key
                newest[key] = max(offset, newest.get(key, -1))
        return newest
