"""Fetch: slices of logs, at once or when enough bytes are available.

A request that finds too little waits until its partitions have gained ``min_bytes``, which is known from
positions without reading the log, or until its time is over.

Source: ``ReplicaManager.fetchMessages``, ``DelayedFetch``; KIP-74.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from txnkafka.broker.durability import error_code
from txnkafka.broker.records.listing import end_offset_for_epoch
from txnkafka.broker.registry.leader_epochs import leader_epoch_error
from txnkafka.broker.requests import FetchedPartition
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError
from txnkafka.model import IsolationLevel, TopicPartition
from txnkafka.storage.log.log_read import read
from txnkafka.storage.log.log_slice import LogSlice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from txnkafka.broker.requests import FetchPartition, FetchRequest
    from txnkafka.broker.services import Services

LOG = logging.getLogger("txnkafka.broker")

_NEVER = (1 << 63) - 1
_FEW = 64
_SIZE_AT = 8  # position of a batch's length


class Answer(NamedTuple):
    """The result of a read by partition; ``is_final`` means that the request need not wait."""

    partitions: list[tuple[TopicPartition, FetchedPartition]]
    is_final: bool

    def release(self) -> None:
        """Release the slices."""
        for _, fetched in self.partitions:
            if fetched.records is not None:
                fetched.records.release()


@dataclass(slots=True, eq=False)
class Waiting:
    """A waiting request, which has found too little so far."""

    request: FetchRequest
    reply: Callable[[Sequence[tuple[TopicPartition, FetchedPartition]]], None]
    until_ticks: int


class Fetches:
    """The waiting requests, by the partitions that they wait for."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._waiting: dict[Waiting, None] = {}  # in the order of arrival
        self._deadlines: list[tuple[int, int, Waiting]] = []  # a heap, which also has some answered requests
        self._arrivals = 0
        self._by_partition: dict[TopicPartition, dict[Waiting, None]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def fetch(
        self,
        request: FetchRequest,
        reply: Callable[[Sequence[tuple[TopicPartition, FetchedPartition]]], None],
    ) -> Callable[[], None]:
        """Answer now, or wait. Returns a function that withdraws the request."""
        answer = self._read(request)
        if answer.is_final or request.max_wait_ms <= 0:
            reply(answer.partitions)
            return _nothing
        answer.release()
        waiting = Waiting(
            request, reply, self._services.ticks.at(self._services.now_ms) + request.max_wait_ms
        )
        self._waiting[waiting] = None
        self._add_deadline(waiting)
        for partition in request.partitions:
            self._by_partition.setdefault(partition.topic_partition, {})[waiting] = None
        return lambda: self._remove(waiting)

    def on_progress(self, partitions: Iterable[TopicPartition]) -> None:
        """Answer waiting requests that these partitions complete, after more of their records, or none any
        more, can be read."""
        if not self._waiting:
            return
        looked_at: dict[Waiting, None] = {}
        for partition in partitions:
            looked_at.update(self._by_partition.get(partition, {}))
        for waiting in looked_at:
            if waiting not in self._waiting:
                continue
            answer = self._read(waiting.request)
            if answer.is_final:
                self._answer(waiting, answer)
            else:
                answer.release()

    @property
    def is_waiting(self) -> bool:
        """True if a request waits."""
        return bool(self._waiting)

    def advance(self, now_ms: int) -> int:
        """Answer the requests whose time is over; return the ticks of the next deadline."""
        ticks = self._services.ticks.at(now_ms)
        while self._deadlines:
            until_ticks, _, waiting = self._deadlines[0]
            if until_ticks > ticks and waiting in self._waiting:
                return until_ticks
            heappop(self._deadlines)
            if waiting in self._waiting:
                self._answer(waiting, self._read(waiting.request))
        return _NEVER

    def _add_deadline(self, waiting: Waiting) -> None:
        if len(self._deadlines) > 2 * len(self._waiting) + _FEW:  # most were answered before their deadline
            self._deadlines = [entry for entry in self._deadlines if entry[2] in self._waiting]
            heapify(self._deadlines)
        self._arrivals += 1
        heappush(self._deadlines, (waiting.until_ticks, self._arrivals, waiting))
        if self._deadlines[0][2] is waiting:
            self._services.look_again()

    def close(self) -> None:
        """Answer all waiting requests with the available records."""
        for waiting in list(self._waiting):
            self._answer(waiting, self._read(waiting.request))

    def _answer(self, waiting: Waiting, answer: Answer) -> None:
        self._remove(waiting)
        waiting.reply(answer.partitions)

    def _remove(self, waiting: Waiting) -> None:
        self._waiting.pop(waiting, None)
        for partition in waiting.request.partitions:
            waiters = self._by_partition.get(partition.topic_partition)
            if waiters is not None:
                waiters.pop(waiting, None)
                if not waiters:
                    del self._by_partition[partition.topic_partition]

    def _read(self, request: FetchRequest) -> Answer:
        """Read the partitions; an exception becomes an error for this request, and does not reach other
        requests."""
        try:
            return self._found(request)
        except Exception:
            LOG.exception("a Fetch failed with UNKNOWN_SERVER_ERROR; the broker keeps running")
            failed = FetchedPartition(ErrorCode.UNKNOWN_SERVER_ERROR)
            return Answer(
                [(partition.topic_partition, failed) for partition in request.partitions], is_final=True
            )

    def _found(self, request: FetchRequest) -> Answer:
        """Read the partitions in their order. The first batch is returned whole, whatever its size, so
        that a consumer never gets stuck."""
        found: list[tuple[TopicPartition, FetchedPartition]] = []
        most, is_final = min(request.max_bytes, self._services.config.fetch_max_bytes), not request.partitions
        most = most if request.room is None else min(most, request.room())
        size = 0
        for partition in request.partitions:
            fetched = self._read_partition(partition, request.isolation_level, most - size, is_first=not size)
            is_final |= fetched.error != ErrorCode.NONE or fetched.diverging is not None
            if fetched.records is not None:
                size += len(fetched.records)
            found.append((partition.topic_partition, fetched))
        needed = min(request.min_bytes, max(most, 1))
        is_final |= size >= needed or (size > 0 and self._has_more(request, found, needed))
        return Answer(found, is_final)

    def _has_more(
        self, request: FetchRequest, found: list[tuple[TopicPartition, FetchedPartition]], needed: int
    ) -> bool:
        """Return whether waiting is useless: the logs have enough bytes, but segment boundaries or limits
        of the request keep them out of this response (``DelayedFetch.tryComplete``)."""
        size = 0
        for wanted, (partition, fetched) in zip(request.partitions, found, strict=True):
            if fetched.records is None:
                continue
            offsets, begin = self._services.logs[partition].offsets, fetched.records
            is_committed = request.isolation_level is IsolationLevel.READ_COMMITTED
            end = offsets.last_stable_metadata if is_committed else offsets.high_watermark_metadata
            if wanted.offset >= end.offset:
                continue
            if begin.base_offset < end.segment_base_offset:
                return True
            size += max(0, min(end.position - begin.position, wanted.max_bytes))
        return size >= needed

    def _read_partition(
        self, wanted: FetchPartition, isolation_level: IsolationLevel, left: int, *, is_first: bool
    ) -> FetchedPartition:
        services, partition = self._services, wanted.topic_partition
        max_bytes = max(0, min(wanted.max_bytes, left))
        error = leader_epoch_error(services, partition, wanted.current_leader_epoch)
        if error != ErrorCode.NONE:
            return FetchedPartition(error)
        if wanted.last_fetched_epoch >= 0 and (diverged := self._diverged(wanted)) is not None:
            return diverged
        try:
            answer = read(
                services.logs[partition], wanted.offset,
                max_bytes=max_bytes, isolation_level=isolation_level, at_least_one=is_first,
            )  # fmt: skip
            is_cut = not is_first and 0 < len(answer.records) == max_bytes
            if is_cut and _is_part_of_a_batch(answer.records):
                answer.records.release()
                nothing = LogSlice(None, answer.records.base_offset, answer.records.position, 0)
                answer = answer._replace(records=nothing, aborted_transactions=None)  # as in Kafka
        except (KafkaError, OSError) as raised:
            return FetchedPartition(error_code(raised))
        return FetchedPartition(
            ErrorCode.NONE, answer.high_watermark, answer.last_stable_offset, answer.log_start_offset,
            answer.aborted_transactions, answer.records,
        )  # fmt: skip

    def _diverged(self, wanted: FetchPartition) -> FetchedPartition | None:
        """Return the answer to a client whose log differs below its offset; None if it does not."""
        partition, log = wanted.topic_partition, self._services.logs[wanted.topic_partition]
        _, epoch, end_offset = end_offset_for_epoch(self._services, partition, wanted.last_fetched_epoch, -1)
        if end_offset < 0:
            return FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch == wanted.last_fetched_epoch and end_offset >= wanted.offset:
            return None
        offsets = log.high_watermark, log.last_stable_offset, log.log_start_offset
        return FetchedPartition(ErrorCode.NONE, *offsets, diverging=(epoch, end_offset))


def _is_part_of_a_batch(records: LogSlice) -> bool:
    """Return whether a slice ends inside its first batch, and so is useless to a consumer."""
    header = bytearray(_SIZE_AT + 4)
    try:
        count = records.read_into(memoryview(header))
    except OSError:
        records.release()
        raise
    return count < len(header) or count + int.from_bytes(header[_SIZE_AT:], "big") > len(records)


def _nothing() -> None:
    """Do nothing: the request was answered."""
