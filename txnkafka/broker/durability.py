"""Runs callbacks once appends are durable.

With ``durability="fsync"`` an append is acknowledged when a flush has covered it. With ``"page_cache"``,
which is Apache Kafka's default, it is acknowledged at once, and lost when the machine stops, but not when the
process stops: an append to a segment without a final name waits for the flush that names it. Logs are then
flushed by ``flush.messages``, as part of the append, by ``flush.ms``, at a roll and at the close. The
metadata log is synced all the same, as in Kafka: data of a producer id that is given out twice would be taken
for duplicates.

A callback may let others go first (``is_awaited=False``): no flush begins for its sake for some milliseconds.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError, LogDirError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from txnkafka.broker.failures import Failures, Owner
    from txnkafka.broker.flush import FlushQueue
    from txnkafka.model import TopicPartition
    from txnkafka.storage.log.partition_log import PartitionLog

Mode = Literal["fsync", "page_cache"]
PATIENCE_MS: Final = 10  # of an append that no client waits for
NEVER: Final = (1 << 63) - 1


class Durability:
    """Calls back when appends are durable. No callback runs before ``run_soon``.
    ``on_progress`` is called with partitions whose readers see more without a flush; ``registry`` is the
    log that is synced in both modes."""

    def __init__(
        self,
        flushes: FlushQueue,
        failures: Failures,
        mode: Mode = "fsync",
        *,
        registry: PartitionLog | None = None,
    ) -> None:
        if mode not in ("fsync", "page_cache"):
            raise ValueError(f"durability is fsync or page_cache, not {mode!r}")
        self.mode = mode
        self._failures = failures
        self._flushes = flushes
        # calls with the owner of the moment at which they were requested
        self._soon: deque[tuple[Owner | None, Callable[..., None], tuple[Any, ...]]] = deque()
        self.on_progress: Callable[[Iterable[TopicPartition]], None] = lambda _: None
        self._registry = registry
        self._progressed: dict[TopicPartition, None] = {}
        self._flush_ticks: int | None = None  # when a flush begins that no client waits for

    def when_durable(
        self,
        log: PartitionLog,
        call: Callable[[ErrorCode], None],
        *,
        is_awaited: bool = True,
        goes_first: bool = False,
    ) -> None:
        """Call when all appends to ``log`` so far are durable, with NONE, or with the error that prevents it.
        See ``FlushQueue.when_durable`` for the options."""
        unflushed = log.log_end_offset - log.recovery_point if self.mode == "page_cache" else 0
        if unflushed and self._is_durable_enough(log, unflushed):
            log.offsets.advance_high_watermark(log.log_end_offset)
            self._progressed[log.topic_partition] = None
            self.soon(call, ErrorCode.NONE)
        else:
            decided = partial(self._decided, self._failures.owner, call)
            self._flushes.when_durable(log, decided, is_awaited=is_awaited, goes_first=goes_first)

    def _is_durable_enough(self, log: PartitionLog, unflushed: int) -> bool:
        """Return True if an append in the page cache is acknowledged at once (``UnifiedLog.append``). Never
        before an earlier append whose segment had no name: appends take effect in the order of the log."""
        return (
            log.active.is_named
            and log is not self._registry
            and log.fenced is None
            and unflushed < log.config.flush_messages
            and not log.waiting
        )

    def _decided(
        self, owner: Owner | None, call: Callable[[ErrorCode], None], error: Exception | None
    ) -> None:
        self._soon.append((owner, call, (ErrorCode.NONE if error is None else error_code(error),)))

    def when_all_durable(
        self, logs: Iterable[PartitionLog], call: Callable[[ErrorCode], None], *, goes_first: bool = False
    ) -> None:
        """Call when all appends to these logs are durable, with NONE or the first error."""
        left = list(logs)
        if len(left) == 1:
            self.when_durable(left[0], call, goes_first=goes_first)
            return
        count, errors = len(left), list[ErrorCode]()

        def one(error: ErrorCode) -> None:
            nonlocal count
            count -= 1
            if error != ErrorCode.NONE:
                errors.append(error)
            if count == 0:
                call(errors[0] if errors else ErrorCode.NONE)

        if not left:
            self.soon(call, ErrorCode.NONE)
        for log in left:
            self.when_durable(log, one, goes_first=goes_first)

    def soon(self, call: Callable[..., None], *arguments: Any) -> None:
        """Call when the current request or call has ended."""
        self._soon.append((self._failures.owner, call, arguments))

    def run_soon(self) -> None:
        """Make the calls that are due, and those that they ask for."""
        due, run = self._soon, self._failures.run
        while due:
            owner, call, arguments = due.popleft()
            run(owner, call, *arguments)
        if self._progressed:
            progressed, self._progressed = self._progressed, {}
            self.on_progress(progressed)

    def advance(self, ticks: int) -> int:
        """Begin a flush that no client waits for when it is due; returns the time at which one is."""
        if self._flushes.is_awaited or not self._flushes.is_dirty:
            self._flush_ticks = None
        elif self._flush_ticks is None:
            self._flush_ticks = ticks + PATIENCE_MS
        elif ticks >= self._flush_ticks:
            self._flushes.hurry()
            self._flush_ticks = None
        return NEVER if self._flush_ticks is None else self._flush_ticks

    @property
    def is_waiting(self) -> bool:
        """Return whether ``run_soon`` has calls to make, or ``advance`` a flush to begin."""
        return bool(self._soon or self._progressed) or self._flush_ticks is not None


def error_code(error: Exception) -> ErrorCode:
    """Return the code that a client gets for an error; for an unreadable file a retriable one."""
    if isinstance(error, KafkaError) and not isinstance(error, LogDirError):
        return error.code
    return ErrorCode.KAFKA_STORAGE_ERROR
