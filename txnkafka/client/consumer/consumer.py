"""``Consumer``: reads records, alone or as a member of a group."""

from __future__ import annotations

import logging
import re
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from txnkafka.client.client import Client
from txnkafka.client.consumer.caller_thread import CallerThread
from txnkafka.client.consumer.consumer_config import ConsumerConfig
from txnkafka.client.consumer.core import ConsumerCore
from txnkafka.client.consumer.iteration import Iteration
from txnkafka.client.consumer.membership import ListenerCall
from txnkafka.client.consumer.rebalance_listener import RebalanceListener
from txnkafka.client.consumer.subscription import Place
from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.errors import ClosedError, KafkaError
from txnkafka.model import TopicPartition, check_milliseconds, validate_partition
from txnkafka.record.arrow import COLUMN_NAMES, arrow_schema, to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from txnkafka._core.columns import RecordColumns
    from txnkafka._core.consumer_record import ConsumerRecord
    from txnkafka.client.consumer.commits import Offsets
    from txnkafka.client.consumer.list_offsets import OffsetAndTimestamp
    from txnkafka.client.consumer.record_reader import RecordReader
    from txnkafka.client.group_metadata import ConsumerGroupMetadata
    from txnkafka.client.transport import Transport

    CommitCallback = Callable[[Offsets, KafkaError | None], object]

T = TypeVar("T")
LOG = logging.getLogger("txnkafka.client")
_SLICE_MS = 60_000


class Consumer(Client[ConsumerConfig]):
    """Reads committed records, in order in each partition. One thread at a time may use it, except
    ``wakeup``.

    ``settings`` have Kafka's names; keyword arguments add to them: ``group_id="readers"``. The isolation
    level is ``read_committed`` unless set otherwise (Java: ``read_uncommitted``). ``topics`` subscribes to
    topics, or, without ``group.id``, assigns all their partitions. Deserializers are called with the bytes of
    a key or value that is not None.

    Methods raise IllegalStateError when another thread is inside, ClosedError after ``close``,
    KafkaTimeoutError after their timeout (by default ``default.api.timeout.ms``), WakeupError after
    ``wakeup``, and the KafkaError of a broker's answer. Timeouts are in milliseconds."""

    kind: ClassVar[str] = "consumer"
    config_class: ClassVar[type[Any]] = ConsumerConfig

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        topics: str | Iterable[str] = (),
        key_deserializer: Callable[[bytes], Any] | None = None,
        value_deserializer: Callable[[bytes], Any] | None = None,
        transport: Callable[[str], Transport] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(settings, transport=transport, **more)
        self._core = ConsumerCore(self._transport, self.config, key_deserializer, value_deserializer)
        self._caller = CallerThread()
        self._iteration = Iteration()
        self._listener = RebalanceListener()
        self._committed: deque[tuple[CommitCallback, Offsets, KafkaError | None]] = deque()
        names = _names(topics)
        if names:
            self._begin(names)

    def _begin(self, names: list[str]) -> None:
        try:
            if self.config.group_id:
                self.subscribe(names)
            else:
                self.assign(
                    [TopicPartition(name, number) for name in names for number in self.partitions_for(name)]
                )
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        group = f" group_id={self.config.group_id!r}" if self.config.group_id else ""
        state = "closed" if self._is_closed else f"{len(self._core.subscription.assigned)} partitions"
        return f"<Consumer {self.config.client_id!r}{group} {state}>"

    # Records

    def poll(self, timeout_ms: float = 0, *, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return at most ``max.poll.records`` records, or ``max_records``: as soon as there are some, an
        empty list after the time. The records of one partition are in order.

        The records of the last call count as processed: automatic commits and rebalances commit up to their
        end. Raises CorruptRecordError and DecodeError when all records before the damaged one were returned,
        and again in each call until you ``seek``; OffsetOutOfRangeError and NoOffsetForPartitionError with
        ``auto.offset.reset=none``."""
        limit = self.config.max_poll_records if max_records is None else max_records
        with self._caller:
            rest = self._iteration.rest()
            return rest or self._poll(lambda reader: reader.records(limit), timeout_ms)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Iterate over records without an end, or until none came for ``consumer.timeout.ms``.

        Within a loop, ``position`` and ``commit`` count the records that the loop has got."""
        return chain.from_iterable(self._lists())

    def _lists(self) -> Iterator[Iterator[ConsumerRecord]]:
        iteration, limit, timeout_ms = (
            self._iteration,
            self.config.max_poll_records,
            self.config.consumer_timeout_ms,
        )
        while True:
            with self._caller:
                if not iteration.left:
                    iteration.fill(
                        self._poll(
                            lambda reader: reader.records(limit, of_one=True),
                            _SLICE_MS if timeout_ms < 0 else timeout_ms,
                        )
                    )
                    if not iteration.left and timeout_ms >= 0:
                        return
            yield iteration.iterator

    def poll_columns(
        self, timeout_ms: float = 0, *, headers: bool = True
    ) -> list[tuple[TopicPartition, RecordColumns]]:
        """Return decoded columns of partitions, of some megabytes together; ``max.poll.records`` does not
        limit them. Raises like ``poll``."""
        with self._caller:
            self._unread()
            return self._poll(lambda reader: reader.columns(headers=headers), timeout_ms)

    def poll_arrow(self, timeout_ms: float = 0, *, columns: Sequence[str] = COLUMN_NAMES) -> pa.Table:
        """Return an Arrow table of some megabytes, which is empty after the time: ``key``, ``value``,
        ``topic``, ``partition``, ``offset``, ``timestamp`` (milliseconds, UTC), ``timestampType`` and
        ``headers``, or fewer ``columns``. Keys, values and headers are not copied. Raises like ``poll``, and
        MissingPackageError without pyarrow."""
        schema = arrow_schema(columns)
        import pyarrow as pa

        found = self.poll_columns(timeout_ms, headers="headers" in columns)
        return pa.Table.from_batches([to_arrow(some, partition, schema) for partition, some in found], schema)

    def _poll(self, read: Callable[[RecordReader], list[T]], timeout_ms: float) -> list[T]:
        self._call_back()
        until_ms = self._reactor.now_ms() + timeout_ms
        while True:
            left_ms = max(0, until_ms - self._reactor.now_ms())
            found = self._reactor.run(self._core.poll(read, left_ms))
            if not isinstance(found, ListenerCall):
                return found
            self._tell(found)

    def wakeup(self) -> None:
        """End the call of another thread that waits, or the next one, with WakeupError."""
        with self._reactor:
            self._core.wakeup()

    # Topics and partitions

    def subscribe(
        self,
        topics: str | Iterable[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read the topics as a member of the group ``group.id``, which divides their partitions among its
        members; instead of the topics before. ``pattern`` is a regular expression for whole names of topics,
        also of new ones. ``poll`` joins the group, and calls the ``listener``."""
        names = _names(topics)
        if bool(names) == (pattern is not None):
            raise ValueError("subscribe needs either topics or a pattern; unsubscribe ends a subscription")
        compiled = re.compile(pattern) if isinstance(pattern, str) else pattern
        with self._caller:
            self._unread()
            with self._reactor:
                self._core.subscribe(names, compiled)
            self._listener = listener or RebalanceListener()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without a group's assignment; positions of partitions that stay are
        kept. New ones begin at their committed offset, or by ``auto.offset.reset``."""
        chosen = list(partitions)
        for partition in chosen:
            validate_partition(partition)
        with self._caller:
            self._unread()
            self._reactor.run(self._core.assign(chosen))

    def unsubscribe(self) -> None:
        """Leave the group, or give up the assigned partitions."""
        with self._caller:
            self._leave()

    def subscription(self) -> frozenset[str]:
        """Return the subscribed topics."""
        with self._reactor:
            return self._core.subscription.topics

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that are read now."""
        with self._reactor:
            return frozenset(self._core.subscription.assigned)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these partitions until ``resume``; a rebalance forgets it."""
        self._pause(list(partitions), is_paused=True)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of these partitions again."""
        self._pause(list(partitions), is_paused=False)

    def paused(self) -> frozenset[TopicPartition]:
        """Return the partitions that are paused."""
        with self._reactor:
            return frozenset(
                each.partition for each in self._core.subscription.some(lambda state: state.is_paused)
            )

    def _pause(self, partitions: Collection[TopicPartition], *, is_paused: bool) -> None:
        with self._caller:
            self._unread()
            with self._reactor:
                self._core.set_paused(partitions, is_paused=is_paused)

    def partitions_for(self, topic: str, *, timeout_ms: int | None = None) -> tuple[int, ...]:
        """Return the numbers of a topic's partitions."""
        with self._caller:
            return tuple(self._reactor.run(self._core.partitions_for(topic, self._limit(timeout_ms))))

    # Positions

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue at an offset; with a leader epoch, truncation of the log is noticed."""
        place = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        if place.offset < 0:
            raise ValueError(f"{partition}: an offset is 0 or more, not {place.offset}")
        with self._caller:
            self._unread()
            with self._reactor:
                self._core.seek(partition, place.offset, place.leader_epoch)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue at the first offsets of these partitions, or of all."""
        self._seek_to(partitions, Place.BEGINNING)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue after the last records of these partitions, or of all: for read_committed at the last
        stable offset."""
        self._seek_to(partitions, Place.END)

    def _seek_to(self, partitions: Collection[TopicPartition], place: Place) -> None:
        with self._caller:
            self._unread()
            with self._reactor:
                self._core.seek_to(partitions, place)

    def position(self, partition: TopicPartition, *, timeout_ms: int | None = None) -> int:
        """Return the offset of the next record to read. Raises IllegalStateError for a partition that is not
        assigned."""
        with self._caller:
            place = self._iteration.place()
            if place is not None and place[0] == partition:
                return place[1].offset
            return self._reactor.run(self._core.position(partition, self._limit(timeout_ms)))

    def lag(self, partition: TopicPartition, *, timeout_ms: int | None = None) -> int:
        """Return the number of offsets between the position and the end that can be read now: for
        read_committed the last stable offset. Control records of transactions count as offsets, but are never
        returned."""
        with self._caller:
            position = self.position(partition, timeout_ms=timeout_ms)
            lag = self._reactor.run(self._core.lag(partition, self._limit(timeout_ms)))
            fetched = self._reactor.run(self._core.position(partition, self._limit(timeout_ms)))
            return lag + fetched - position

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return for each partition the first record at a time (milliseconds) or later; None if there is none
        that can be read."""
        for partition, time in times.items():
            check_milliseconds(**{f"the time of {partition}": time})
        with self._caller:
            return self._reactor.run(self._core.offsets_for_times(times, self._limit(timeout_ms)))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        return self._limits(partitions, timeout_ms, is_end=False)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each partition that can be read: for read_committed the
        last stable offset, else the high watermark."""
        return self._limits(partitions, timeout_ms, is_end=True)

    def _limits(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None, *, is_end: bool
    ) -> dict[TopicPartition, int]:
        with self._caller:
            return self._reactor.run(
                self._core.limits(list(partitions), self._limit(timeout_ms), is_end=is_end)
            )

    # Commits

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit offsets in the group, by default the positions. An offset is that of the next record to
        read.

        Raises CommitFailedError if the group has given the partitions to another member, and
        RebalanceInProgressError if it is about to: poll again."""
        with self._caller:
            self._call_back()
            self._reactor.run(self._core.commit(self._offsets(offsets), self._limit(timeout_ms)))
            self._call_back()

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        *,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit without waiting, and without retries. ``callback`` gets the offsets and the error or None,
        in a later ``poll``, ``commit`` or ``close``."""
        call = callback or _log_failure
        with self._caller, self._reactor:
            chosen, done = self._core.commit_async(self._offsets(offsets))
            done.on_done(lambda: self._committed.append((call, chosen, _kafka_error(done.error))))

    def committed(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition, None without one. A read_committed consumer waits
        for transactions with offsets that are open (KIP-447)."""
        chosen = list(partitions)
        with self._caller:
            found = self._reactor.run(self._core.commits.committed(chosen, self._limit(timeout_ms)))
            return {partition: found.get(partition) for partition in chosen}

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the membership, for ``producer.send_offsets_to_transaction``. Raises IllegalStateError
        without ``group.id``."""
        with self._reactor:
            return self._core.group_metadata()

    def positions(self) -> Offsets:
        """Return the positions of all partitions that have one, as ``send_offsets_to_transaction`` takes
        them."""
        with self._caller, self._reactor:
            return self._offsets(None)

    def _offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None) -> Offsets:
        if offsets is not None:
            return {
                partition: each if isinstance(each, OffsetAndMetadata) else OffsetAndMetadata(each)
                for partition, each in offsets.items()
            }
        found = self._core.commits.positions()
        place = self._iteration.place()
        if place is not None and place[0] in found:
            found[place[0]] = place[1]
        return found

    # The end

    def close(self) -> None:
        """Commit the positions, if commits are automatic, leave the group, and release the connections."""
        if self._is_closed:
            return
        try:
            with self._caller:
                self._leave()
                self._call_back()
        except ClosedError:
            LOG.debug("%s: the connections were closed before", self)
        finally:
            super().close()

    def _leave(self) -> None:
        self._unread()
        call = self._reactor.run(self._core.leaving())
        try:
            if call is not None:
                self._tell(call)
        finally:
            self._reactor.run(self._core.leave())

    def _unread(self) -> None:
        """Give the records back that an iteration has not read yet."""
        place = self._iteration.drop()
        if place is not None:
            with self._reactor:
                if place[0] in self._core.subscription.assigned:
                    self._core.seek(place[0], place[1].offset, place[1].leader_epoch)

    def _tell(self, call: ListenerCall) -> None:
        """Make a call of the listener."""
        listener = self._listener
        try:
            if call.kind == "assigned":
                listener.on_partitions_assigned(call.partitions)
            elif call.kind == "revoked":
                listener.on_partitions_revoked(call.partitions)
            else:
                listener.on_partitions_lost(call.partitions)
        finally:
            with self._reactor:
                self._core.called(call)

    def _call_back(self) -> None:
        """Make the calls of commits that have ended."""
        while self._committed:
            call, offsets, error = self._committed.popleft()
            call(offsets, error)

    def _limit(self, timeout_ms: int | None) -> int:
        return self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms


def _names(topics: str | Iterable[str]) -> list[str]:
    names = [topics] if isinstance(topics, str) else list(topics)
    for name in names:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a topic is a name, not {name!r}")
    return names


def _kafka_error(error: BaseException | None) -> KafkaError | None:
    return error if isinstance(error, KafkaError) else None


def _log_failure(offsets: Offsets, error: KafkaError | None) -> None:
    if error is not None:
        LOG.warning("commit_async failed: %s", error)
