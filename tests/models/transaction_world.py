"""Logs in memory around a transaction coordinator, which lose what is not durable. Of the package they use
the types of its interface only.

A log is a list and the number of its durable entries. ``crash`` keeps any number of the entries that are not
durable, for each log separately. A partition checks what a leader checks: epochs, open transactions, markers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from txnkafka.coordinator.txn.markers import Marker
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import TopicPartition

T = TypeVar("T")
Done = Callable[[ErrorCode], None]


class Log(Generic[T]):
    """Entries, the number of durable ones, and callbacks for the next flush."""

    def __init__(self, entries: Sequence[T] = ()) -> None:
        self.entries = list(entries)
        self.durable = len(self.entries)
        self.waiting: list[Done] = []

    def append(self, entry: T) -> None:
        self.entries.append(entry)

    def flush(self) -> None:
        self.durable = len(self.entries)
        self._tell(ErrorCode.NONE)

    def fail(self, error: ErrorCode) -> None:
        """Fail a flush: none of the entries that are not durable stays."""
        del self.entries[self.durable :]
        self._tell(error)

    def _tell(self, error: ErrorCode) -> None:
        due, self.waiting = self.waiting, []
        for done in due:
            done(error)


class Written(NamedTuple):
    """An entry of a partition: a value of a transaction, or its end marker when ``committed`` is not None."""

    producer_id: int
    producer_epoch: int
    value: Any
    committed: bool | None = None


class Partition(Log[Written]):
    """A partition with the producer checks of ProducerAppendInfo."""

    def epoch_of(self, producer_id: int) -> int:
        """Return the last epoch of the producer in the log."""
        epochs = [entry.producer_epoch for entry in self.entries if entry.producer_id == producer_id]
        return epochs[-1] if epochs else -1

    def open_epoch(self, producer_id: int) -> int | None:
        """Return the epoch of the producer's open transaction."""
        entries = [entry for entry in self.entries if entry.producer_id == producer_id]
        return entries[-1].producer_epoch if entries and entries[-1].committed is None else None

    def abort_open(self, producer_id: int) -> None:
        """Abort a transaction that no coordinator has. The marker has the next epoch: a retried batch is then
        fenced, not taken for a duplicate of the aborted one."""
        epoch = self.open_epoch(producer_id)
        if epoch is not None:
            self.append(Written(producer_id, min(epoch + 1, 32767), None, False))

    def open_transactions(self) -> dict[int, int]:
        found = {entry.producer_id: self.open_epoch(entry.producer_id) for entry in self.entries}
        return {producer_id: epoch for producer_id, epoch in found.items() if epoch is not None}

    def refuses(self, marker: Marker) -> ErrorCode:
        """Return the reason why a marker is not appended; NONE when it is."""
        known, is_open = self.epoch_of(marker.producer_id), self.open_epoch(marker.producer_id) is not None
        if marker.producer_epoch < known:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if marker.transaction_version >= 2 and is_open and marker.producer_epoch == known < 32767:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return ErrorCode.NONE

    def visible(self) -> list[Any]:
        """Return what a read_committed consumer gets, ignoring the last stable offset."""
        found, pending = [], dict[int, list[Any]]()
        for entry in self.entries:
            values = pending.setdefault(entry.producer_id, [])
            if entry.committed is None:
                values.append(entry.value)
                continue
            if entry.committed:
                found += values
            values.clear()
        return found


@dataclass
class Host:
    """The services that a coordinator needs of a broker; ``coordinator`` is set when it exists. ``fault``
    plants a wrong order: the name of the step that is acknowledged when it is only appended."""

    state_logs: list[Log[tuple[bytes, bytes | None]]]
    partitions: dict[TopicPartition, Partition]
    fault: str = ""
    coordinator: Any = None
    now_ms: int = 0
    early: list[Callable[[], None]] = field(default_factory=list)
    refuse: dict[TopicPartition, ErrorCode] = field(default_factory=dict)
    failing: ErrorCode = ErrorCode.NONE
    max_bytes: int = 1 << 20  # of a batch
    written: list[Marker] = field(default_factory=list)

    def append(
        self,
        partition: int,
        records: Sequence[tuple[bytes, bytes | None]],
        call: Done,
        *,
        producer: object = None,
        is_awaited: bool = True,
    ) -> int:
        if self.failing != ErrorCode.NONE:
            raise error_of(self.failing)
        log = self.state_logs[partition]
        first = len(log.entries)
        log.entries += records
        self._when_durable(log, call, self._kind(records))
        return first

    def max_batch_bytes(self, partition: int) -> int:
        return self.max_bytes

    def _kind(self, records: Sequence[tuple[bytes, bytes | None]]) -> str:
        value = records[0][1]
        status = value[16] if value is not None else 6
        return {1: "ongoing", 2: "prepare", 3: "prepare", 4: "complete", 5: "complete"}.get(status, "other")

    def _when_durable(self, log: Log[Any], done: Done, kind: str) -> None:
        if self.fault == kind:
            self.early.append(lambda: done(ErrorCode.NONE))
        else:
            log.waiting.append(done)

    def flush_data(self, producer_id: int, partitions: frozenset[TopicPartition], call: Done) -> bool:
        if self.fault == "data":
            return False
        logs = [self.partitions[each] for each in sorted(partitions) if each in self.partitions]
        dirty = [
            log for log in logs if any(each.producer_id == producer_id for each in log.entries[log.durable :])
        ]
        left = [len(dirty)]

        def one_done(error: ErrorCode) -> None:
            left[0] -= 1
            if not left[0]:
                call(error)

        for log in dirty:
            log.waiting.append(one_done)
        return bool(dirty)

    def write_marker(self, marker: Marker) -> None:
        self.written.append(marker)
        log = self.partitions.get(marker.partition)
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if log is None else log.refuses(marker)
        error = self.refuse.get(marker.partition, error)
        if log is None or error != ErrorCode.NONE:
            self.early.append(lambda: self._marked(marker, error))
            return
        log.append(Written(marker.producer_id, marker.producer_epoch, None, marker.committed))
        self._when_durable(log, lambda error: self._marked(marker, error), "markers")

    def _marked(self, marker: Marker, error: ErrorCode) -> None:
        self.coordinator.marker_written(marker, error, self.now_ms)

    def logs(self) -> list[Log[Any]]:
        return [*self.state_logs, *self.partitions.values()]

    def answer_early(self) -> None:
        """Call back what does not wait for a flush."""
        while self.early:
            due, self.early = self.early, []
            for done in due:
                done()

    def settle(self) -> None:
        """Flush until no request waits."""
        self.answer_early()
        while any(log.waiting for log in self.logs()):
            for log in self.logs():
                log.flush()
                self.answer_early()

    def crash(self, keep: Iterator[int]) -> tuple[list[Log[Any]], dict[TopicPartition, Partition]]:
        """Return the logs after a power cut: each keeps any number of its entries that are not durable."""

        def left(log: Log[Any]) -> list[Any]:
            unsure = len(log.entries) - log.durable
            return log.entries[: log.durable + next(keep) % (unsure + 1)]

        state_logs = [Log(left(log)) for log in self.state_logs]
        return state_logs, {name: Partition(left(log)) for name, log in self.partitions.items()}


def error_of(code: ErrorCode) -> KafkaError:
    """Return an exception with this code."""
    error = KafkaError(code.name)
    error.code = code
    return error
