"""``Consumer``: reads records, alone or as a member of a group."""

from __future__ import annotations

import logging
import re
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from txnkafka.client.consumer.consumer_offsets import ConsumerOffsets
from txnkafka.client.consumer.membership import ListenerCall
from txnkafka.client.consumer.rebalance_listener import RebalanceListener
from txnkafka.errors import ClosedError, KafkaError
from txnkafka.model import TopicPartition, validate_partition
from txnkafka.record.arrow import COLUMN_NAMES, arrow_schema, to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from txnkafka._core.columns import RecordColumns
    from txnkafka._core.consumer_record import ConsumerRecord
    from txnkafka.client.consumer.record_reader import RecordReader
    from txnkafka.client.transport import Transport

T = TypeVar("T")
LOG = logging.getLogger("txnkafka.client")
_SLICE_MS = 60_000


class Consumer(ConsumerOffsets):
    """Reads committed records, in order in each partition. One thread at a time may use it, except
    ``wakeup``.

    ``settings`` have Kafka's names; keyword arguments add to them: ``group_id="readers"``. The isolation
    level is ``read_committed`` unless set otherwise (Java: ``read_uncommitted``). ``topics`` subscribes to
    topics, or, without ``group.id``, assigns all their partitions. Deserializers are called with the bytes of
    a key or value that is not None.

    Methods raise IllegalStateError when another thread is inside, ClosedError after ``close``,
    KafkaTimeoutError after their timeout (by default ``default.api.timeout.ms``), WakeupError after
    ``wakeup``, and the KafkaError of a broker's answer. Timeouts are in milliseconds."""

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
        super().__init__(
            settings,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            transport=transport,
            **more,
        )
        self._listener = RebalanceListener()
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
        batches = [to_arrow(some, partition, schema) for partition, some in found]
        for _, some in found:
            self._core.reader.give_back(some)
        return pa.Table.from_batches(batches, schema)

    def _poll(self, read: Callable[[RecordReader], list[T]], timeout_ms: float) -> list[T]:
        self._call_back()
        until_ms = self._reactor.now_ms() + timeout_ms
        while True:
            left_ms = max(0, until_ms - self._reactor.now_ms())
            found = self._run_poll(read, left_ms)
            if not isinstance(found, ListenerCall):
                return found
            self._tell(found)

    def _run_poll(self, read: Callable[[RecordReader], list[T]], timeout_ms: float) -> list[T] | ListenerCall:
        """Poll. After an interruption, such as KeyboardInterrupt, the position is as before: no records get
        lost."""
        with self._reactor:
            before = self._core.subscription.positions()
            task = self._reactor.spawn(self._core.poll(read, timeout_ms))
        try:
            return self._reactor.wait(task)
        except KafkaError:
            raise
        except BaseException:
            with self._reactor.lock:
                self._core.undo_poll(task, before)
            raise

    def wakeup(self) -> None:
        """End a ``poll`` or ``position`` of another thread that waits, or the next one, with WakeupError."""
        self._caller.check()
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
        """Leave the group, or drop the assigned partitions."""
        with self._caller:
            self._leave()

    def subscription(self) -> frozenset[str]:
        """Return the subscribed topics."""
        with self._caller, self._reactor:
            return self._core.subscription.topics

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that are read now."""
        with self._caller, self._reactor:
            return frozenset(self._core.subscription.assigned)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Leave these partitions out of ``poll`` until ``resume``; a rebalance forgets it."""
        self._pause(list(partitions), is_paused=True)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """End ``pause`` for these partitions."""
        self._pause(list(partitions), is_paused=False)

    def paused(self) -> frozenset[TopicPartition]:
        """Return the partitions that are paused."""
        with self._caller, self._reactor:
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
            self._caller.is_closed = True
            super().close()

    def _leave(self) -> None:
        self._unread()
        call = self._reactor.run(self._core.leaving())
        try:
            if call is not None:
                self._tell(call)
        finally:
            self._reactor.run(self._core.leave())

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


def _names(topics: str | Iterable[str]) -> list[str]:
    names = [topics] if isinstance(topics, str) else list(topics)
    for name in names:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a topic is a name, not {name!r}")
    return names
