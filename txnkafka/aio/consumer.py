"""``Consumer`` for asyncio."""

from __future__ import annotations

import re
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from txnkafka.aio.waiting import result, run, transport_of
from txnkafka.client.client import Client
from txnkafka.client.consumer import Consumer as BlockingConsumer
from txnkafka.client.consumer import RebalanceListener
from txnkafka.client.consumer.membership import ListenerCall
from txnkafka.errors import ClosedError, IllegalStateError, KafkaError
from txnkafka.record.arrow import COLUMN_NAMES, arrow_schema, to_arrow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    import pyarrow as pa

    from txnkafka._core.columns import RecordColumns
    from txnkafka._core.consumer_record import ConsumerRecord
    from txnkafka.client.consumer.list_offsets import OffsetAndTimestamp
    from txnkafka.client.consumer.record_reader import RecordReader
    from txnkafka.client.group_metadata import ConsumerGroupMetadata
    from txnkafka.client.offsets import OffsetAndMetadata
    from txnkafka.embedded import Broker
    from txnkafka.model import TopicPartition

T = TypeVar("T")
_SLICE_MS = 60_000


class _OneTask:
    """A context for one task at a time: two that poll would share the records at random."""

    def __init__(self) -> None:
        self._is_inside = False

    def __enter__(self) -> None:
        if self._is_inside:
            raise IllegalStateError(
                "another task is in a method of this consumer: use a consumer for each task"
            )
        self._is_inside = True

    def __exit__(self, *_: object) -> None:
        self._is_inside = False


class Consumer:
    """Reads committed records; settings, errors and rules are those of ``txnkafka.Consumer``. One task at a
    time may use it. The methods of a listener may be coroutines; they run in the event loop."""

    def __init__(
        self,
        *topics: str,
        settings: Mapping[str, Any] | None = None,
        broker: Broker | None = None,
        key_deserializer: Callable[[bytes], Any] | None = None,
        value_deserializer: Callable[[bytes], Any] | None = None,
        **more: Any,
    ) -> None:
        self._blocking = BlockingConsumer(
            settings, transport=transport_of(broker), key_deserializer=key_deserializer,
            value_deserializer=value_deserializer, **more,
        )  # fmt: skip
        self._core = self._blocking._core
        self._reactor = self._blocking._reactor
        self._guard = _OneTask()
        if topics:
            self.subscribe(topics)

    def __repr__(self) -> str:
        return f"<aio.{repr(self._blocking)[1:]}"

    # Records

    async def poll(self, timeout_ms: float = 0, *, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return at most ``max.poll.records`` records, or ``max_records``: as soon as there are some, an
        empty list after the time."""
        blocking = self._blocking
        limit = blocking.config.max_poll_records if max_records is None else max_records
        with self._guard:
            rest = blocking._iteration.rest()
            return rest or await self._poll(lambda reader: reader.records(limit), timeout_ms)

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Iterate over records without an end, or until none came for ``consumer.timeout.ms``."""
        blocking = self._blocking
        iteration, config = blocking._iteration, blocking.config
        timeout_ms = config.consumer_timeout_ms
        while True:
            with self._guard:
                if not iteration.left:
                    found = await self._poll(
                        lambda reader: reader.records(config.max_poll_records, of_one=True),
                        _SLICE_MS if timeout_ms < 0 else timeout_ms,
                    )
                    if not found and timeout_ms >= 0:
                        return
                    iteration.fill(found)
            for record in iteration.iterator:
                yield record

    async def poll_columns(
        self, timeout_ms: float = 0, *, headers: bool = True
    ) -> list[tuple[TopicPartition, RecordColumns]]:
        """Return decoded columns of partitions, of some megabytes together."""
        blocking = self._blocking
        with self._guard:
            blocking._unread()
            return await self._poll(lambda reader: reader.columns(headers=headers), timeout_ms)

    async def poll_arrow(self, timeout_ms: float = 0, *, columns: Sequence[str] = COLUMN_NAMES) -> pa.Table:
        """Return an Arrow table of some megabytes, which is empty after the time. Raises MissingPackageError
        without pyarrow."""
        schema = arrow_schema(columns)
        import pyarrow as pa

        found = await self.poll_columns(timeout_ms, headers="headers" in columns)
        batches = [to_arrow(some, partition, schema) for partition, some in found]
        for _, some in found:
            self._core.reader.give_back(some)
        return pa.Table.from_batches(batches, schema)

    async def _poll(self, read: Callable[[RecordReader], list[T]], timeout_ms: float) -> list[T]:
        self._blocking._call_back()
        until_ms = self._reactor.now_ms() + timeout_ms
        while True:
            left_ms = max(0, until_ms - self._reactor.now_ms())
            found = await self._run_poll(read, left_ms)
            if not isinstance(found, ListenerCall):
                return found
            await self._tell(found)

    async def _run_poll(
        self, read: Callable[[RecordReader], list[T]], timeout_ms: float
    ) -> list[T] | ListenerCall:
        """Poll. If the task is cancelled, the position is as before: no records get lost."""
        with self._reactor:
            before = self._core.subscription.positions()
            task = self._reactor.spawn(self._core.poll(read, timeout_ms))
        try:
            return await result(self._reactor, task)
        except KafkaError:
            raise
        except BaseException:
            with self._reactor.lock:
                self._core.undo_poll(task, before)
            raise

    def wakeup(self) -> None:
        """End the ``poll`` that waits, or the next one, with WakeupError. Any thread may call it."""
        self._blocking.wakeup()

    # Topics, partitions, positions

    def subscribe(
        self,
        topics: str | Iterable[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read topics as a member of the group ``group.id``; ``poll`` joins it."""
        self._blocking.subscribe(topics, pattern=pattern, listener=listener)

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without a group's assignment."""
        self._blocking._unread()
        await run(self._reactor, self._core.assign(list(partitions)))

    async def unsubscribe(self) -> None:
        """Leave the group, or drop the assigned partitions."""
        with self._guard:
            await self._leave()

    def subscription(self) -> frozenset[str]:
        """Return the subscribed topics."""
        return self._blocking.subscription()

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that are read now."""
        return self._blocking.assignment()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Leave these partitions out of ``poll`` until ``resume``."""
        self._blocking.pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """End ``pause`` for these partitions."""
        self._blocking.resume(partitions)

    def paused(self) -> frozenset[TopicPartition]:
        """Return the partitions that are paused."""
        return self._blocking.paused()

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue at an offset."""
        self._blocking.seek(partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue at the first offsets of these partitions, or of all."""
        self._blocking.seek_to_beginning(*partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue after the last records of these partitions, or of all."""
        self._blocking.seek_to_end(*partitions)

    async def position(self, partition: TopicPartition, *, timeout_ms: int | None = None) -> int:
        """Return the offset of the next record to read."""
        place = self._blocking._iteration.place()
        if place is not None and place[0] == partition:
            return place[1].offset
        return await run(self._reactor, self._core.position(partition, self._limit(timeout_ms)))

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return for each partition the first record at a time (milliseconds) or later."""
        return await run(self._reactor, self._core.offsets_for_times(times, self._limit(timeout_ms)))

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        limits = self._core.limits(list(partitions), self._limit(timeout_ms), is_end=False)
        return await run(self._reactor, limits)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each partition that can be read."""
        limits = self._core.limits(list(partitions), self._limit(timeout_ms), is_end=True)
        return await run(self._reactor, limits)

    # Commits

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit offsets in the group, by default the positions."""
        chosen = self._blocking._offsets(offsets)
        await run(self._reactor, self._core.commit(chosen, self._limit(timeout_ms)))

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition, None without one."""
        chosen = list(partitions)
        found = await run(self._reactor, self._core.commits.committed(chosen, self._limit(timeout_ms)))
        return {partition: found.get(partition) for partition in chosen}

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the positions, as ``send_offsets_to_transaction`` takes them."""
        return self._blocking.positions()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the membership, for ``send_offsets_to_transaction``."""
        return self._blocking.group_metadata()

    # The end

    async def close(self) -> None:
        """Commit the positions, if commits are automatic, leave the group, and release the connections."""
        blocking = self._blocking
        if blocking._is_closed:
            return
        try:
            with self._guard:
                await self._leave()
        except ClosedError:  # the broker of this process was closed before
            return
        finally:
            Client.close(blocking)

    async def _leave(self) -> None:
        self._blocking._unread()
        call = await run(self._reactor, self._core.leaving())
        try:
            if call is not None:
                await self._tell(call)
        finally:
            await run(self._reactor, self._core.leave())

    async def _tell(self, call: ListenerCall) -> None:
        """Make a call of the listener, and await it if it is a coroutine."""
        listener = self._blocking._listener
        try:
            made: Any = getattr(listener, f"on_partitions_{call.kind}")(call.partitions)
            if isawaitable(made):
                await made
        finally:
            with self._reactor:
                self._core.called(call)

    def _limit(self, timeout_ms: int | None) -> int:
        return self._blocking._limit(timeout_ms)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
