"""``Runtime``: the loaded partitions of a coordinator's topic, and all work on their logs.

Each partition has a state, which is the replay of its log. A coordinator decides; the runtime finds the
partition of a key, appends, replays, and reports when an append is durable. The transaction coordinator
replays a record when it is durable (``log.append``), the group coordinator when it is appended (``write``).

Source: ``CoordinatorRuntime``, ``CoordinatorOperationExceptionHelper``; KAFKA-13099 for the batches of
tombstones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from txnkafka.coordinator.log_event import LogEvent
from txnkafka.coordinator.partitions import partition_for
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import NO_PRODUCER_ID, ProducerIdAndEpoch
from txnkafka.record.batch_header import HEADER_SIZE

T = TypeVar("T")
Call = Callable[[ErrorCode], None]
Records = Sequence[tuple[bytes, bytes | None]]
RECORD_BYTES: Final = 26  # of a record without its key, at most: six varints and the attributes
SLICE: Final = 2_000
APPEND_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def append_error(error: ErrorCode) -> ErrorCode:
    """Return the error that a client gets if the log of its coordinator reports ``error``."""
    return APPEND_ERRORS.get(error, error)


class TopicLog(Protocol):
    """The logs of a coordinator's topic. No method waits for the disk, and none makes a call before it has
    returned. The calls for one partition are made in the order of its appends."""

    def append(
        self,
        partition: int,
        records: Records,
        call: Call,
        *,
        producer: ProducerIdAndEpoch | None = None,
        is_awaited: bool = True,
    ) -> int:
        """Append one batch, in the transaction of ``producer``; return its first offset. ``call`` gets NONE
        when the batch is durable, or the error that prevents it. A batch that is not awaited may become
        durable with later ones. Raises KafkaError; then nothing was appended, and ``call`` is not made."""

    def max_batch_bytes(self, partition: int) -> int:
        """Return the size of the largest batch that the log accepts now; it may change at any time."""

    def when_durable(self, partition: int, call: Call) -> None:
        """Call when all appends to the partition so far are durable, or never will be."""


class State(Protocol):
    """The state of one partition."""

    def replay(self, event: Any, /) -> None:
        """Apply the next event of the log."""


S = TypeVar("S", bound=State)


class Runtime(Generic[S]):
    """``loaded`` has the states of the partitions that this node coordinates, by number; the topic has
    ``count`` partitions."""

    def __init__(self, log: TopicLog, count: int) -> None:
        self.log = log
        self.count = count
        self.loaded: dict[int, S] = {}

    def number_of(self, key: str) -> int:
        """Return the partition of a transactional id or group id."""
        return partition_for(key, self.count)

    def state_of(self, key: str) -> S | None:
        """Return the state of the partition of a key; None if this node does not coordinate it."""
        return self.loaded.get(partition_for(key, self.count))

    def load(self, number: int, state: S, events: Iterable[Any]) -> None:
        """Replay the log of a partition."""
        for event in events:
            state.replay(event)
        self.loaded[number] = state

    def write(
        self,
        number: int,
        records: Records,
        call: Call,
        *,
        replay: Callable[[LogEvent], None] | None = None,
        producer: ProducerIdAndEpoch | None = None,
    ) -> bool:
        """Append one batch to a partition and ``replay`` its records at once. ``call`` gets the error of the
        log, or NONE when the batch is durable. Return False if it was not appended."""
        try:
            first = self.log.append(number, records, call, producer=producer)
        except KafkaError as error:
            call(error.code)
            return False
        if replay is not None:
            producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id
            for i, (key, value) in enumerate(records):
                replay(LogEvent(first + i, producer_id, None, key, value))
        return True

    def batches(
        self, number: int, tombstones: Iterable[T], key_of: Callable[[T], bytes]
    ) -> Iterator[list[T]]:
        """Yield the tombstones in batches that the log of a partition accepts."""
        return batches_of(tombstones, key_of, self.log.max_batch_bytes(number))

    def when_durable(self, key: str, call: Call) -> None:
        """Call when all appends to the partition of a key so far are durable, or never will be."""
        self.log.when_durable(self.number_of(key), call)


def batches_of(tombstones: Iterable[T], key_of: Callable[[T], bytes], max_bytes: int) -> Iterator[list[T]]:
    """Yield tombstones in batches of at most ``max_bytes``. A larger tombstone is alone in its batch: the log
    refuses it, and its id stays."""
    batch: list[T] = []
    size = HEADER_SIZE
    for tombstone in tombstones:
        needed = RECORD_BYTES + len(key_of(tombstone))
        if batch and size + needed > max_bytes:
            yield batch
            batch, size = [], HEADER_SIZE
        batch.append(tombstone)
        size += needed
    if batch:
        yield batch


class Expiry:
    """Rounds over all ids, ``size`` ids at a time, so that no request waits for a hundred thousand idle ids.
    The first round begins at ``first_ms``.

    Source: TransactionStateManager.removeExpiredTransactionalIds,
    GroupCoordinatorService.cleanupExpiredGroupMetadata."""

    def __init__(self, interval_ms: int, size: int = SLICE, first_ms: int = 0) -> None:
        self._interval_ms, self._size = interval_ms, size
        self._next_ms = first_ms
        self._left: list[str] = []

    def deadline(self, now_ms: int) -> int:
        """Return the time of the next slice."""
        return now_ms if self._left else self._next_ms

    def due(self, ids: Iterable[str], now_ms: int) -> list[str]:
        """Return the next slice, empty if none is due; a new round begins with ``ids``."""
        if not self._left and now_ms >= self._next_ms:
            self._next_ms = now_ms + self._interval_ms
            self._left = list(ids)
        found, self._left = self._left[: self._size], self._left[self._size :]
        return found
