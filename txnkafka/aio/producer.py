"""``Producer`` for asyncio."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from txnkafka.aio.waiting import result, run, transport_of, wake
from txnkafka.client.client import Client
from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.client.prepared_txn_state import PreparedTxnState, prepared_state
from txnkafka.client.producer import Producer as BlockingProducer
from txnkafka.client.producer.columns import arrow_columns
from txnkafka.client.producer.txn_state import State
from txnkafka.errors import KafkaError, ProducerFencedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Mapping
    from types import TracebackType

    from txnkafka._core.record_list import RecordFuture
    from txnkafka.client.group_metadata import ConsumerGroupMetadata
    from txnkafka.client.producer.producer import Headers, Serializer
    from txnkafka.client.producer.record_metadata import BatchMetadata, RecordMetadata
    from txnkafka.embedded import Broker
    from txnkafka.model import TopicPartition

T = TypeVar("T")


class SentRecord(Generic[T]):
    """The result of ``send``: await it to wait until the record is acknowledged."""

    __slots__ = ("_future",)

    def __init__(self, future: RecordFuture[T]) -> None:
        self._future = future

    def done(self) -> bool:
        """Return whether the record was acknowledged, or has failed."""
        return self._future.done()

    def __await__(self) -> Generator[Any, None, T]:
        future = self._future
        if not future.done():
            loop = asyncio.get_running_loop()
            done: asyncio.Future[None] = loop.create_future()
            future.add_done_callback(lambda _: wake(loop, done))
            yield from done
        return future.result()


class Producer:
    """A producer; settings, errors and rules are those of ``txnkafka.Producer``. For one event loop."""

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        broker: Broker | None = None,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        **more: Any,
    ) -> None:
        self._blocking = BlockingProducer(
            settings, transport=transport_of(broker), key_serializer=key_serializer,
            value_serializer=value_serializer, **more,
        )  # fmt: skip
        self._core = self._blocking._core
        self._reactor = self._blocking._reactor

    def __repr__(self) -> str:
        return f"<aio.{repr(self._blocking)[1:]}"

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> SentRecord[RecordMetadata]:
        """Add a record to the batch of its partition. Await the result to wait for the broker:
        ``await (await producer.send(...))``, or ``send_and_wait``. Waits itself only for the partitions of a
        new topic, and while ``buffer.memory`` is full."""
        blocking = self._blocking
        if blocking._key_serializer is not None:
            key = blocking._key_serializer(key)
        if blocking._value_serializer is not None:
            value = blocking._value_serializer(value)
        if headers is not None:
            headers = tuple(headers)
        future = self._core.appender.append(topic, key, value, partition, timestamp, headers)
        if future is not None:
            return SentRecord(future)
        waits = self._core.send(topic, key, value, partition=partition, timestamp=timestamp, headers=headers)
        return SentRecord(await run(self._reactor, waits))

    async def send_and_wait(
        self, topic: str, value: Any = None, key: Any = None, **options: Any
    ) -> RecordMetadata:
        """Send a record, and return its place once it is acknowledged. Raises the broker's error."""
        return await (await self.send(topic, value, key, **options))

    async def send_columns(self, topic: str, **columns: Any) -> list[BatchMetadata]:
        """Send many records without an object for each, and wait until they are acknowledged. It has the
        arguments of ``txnkafka.Producer.send_columns``; returns the place of each batch."""
        sent = await run(self._reactor, self._blocking._columns_to_send(topic, **columns))
        for batch in sent.batches:
            await result(self._reactor, batch.done)
        return sent.result()

    async def send_arrow(
        self, topic: str, batch: Any, *, partition: int | None = None
    ) -> list[BatchMetadata]:
        """Send the records of a pyarrow RecordBatch or Table; see ``send_columns``."""
        return await self.send_columns(topic, partition=partition, **arrow_columns(batch, partition))

    async def flush(self, timeout: float | None = None) -> None:
        """Send all records, and wait until each was acknowledged or has failed. ``timeout`` is in seconds."""
        await run(self._reactor, self._core.flush(None if timeout is None else timeout * 1000))

    async def init_transactions(self, *, keep_prepared: bool = False) -> None:
        """Get the producer id, and fence other producers with the same ``transactional.id``. Their open
        transaction is aborted, or kept with ``keep_prepared`` (KIP-939)."""
        await run(self._reactor, self._core.init(keep_prepared=keep_prepared))

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        self._blocking.begin_transaction()

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: ConsumerGroupMetadata,
    ) -> None:
        """Commit the offsets of a consumer group with the transaction."""
        given = {
            partition: OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for partition, offset in offsets.items()
        }
        await run(self._reactor, self._core.send_offsets(given, group_metadata))

    async def prepare_transaction(self) -> PreparedTxnState:
        """Send all records, and close the transaction for more, until it is completed (KIP-939)."""
        return await run(self._reactor, self._core.prepare())

    async def complete_transaction(self, state: PreparedTxnState | str) -> None:
        """Commit the prepared transaction if ``state`` is its own, else abort it (KIP-939)."""
        await run(self._reactor, self._core.complete(prepared_state(state)))

    async def commit_transaction(self) -> None:
        """Commit the transaction, after all its records were acknowledged."""
        await run(self._reactor, self._core.commit())

    async def abort_transaction(self) -> None:
        """Abort the transaction; records that were not sent yet fail."""
        await run(self._reactor, self._core.abort())

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Begin a transaction for an ``async with`` block, and commit it at the end, or abort it after an
        exception, the cancellation of the task included. A prepared transaction stays open then."""
        txn = self._core.txn
        if self._core.needs_init:
            await self.init_transactions()
        self.begin_transaction()
        try:
            yield self
        except BaseException as error:
            await self._abort_after(error)
            raise
        try:
            await self.commit_transaction()
        except KafkaError as error:
            if txn is not None and txn.state is State.ABORTABLE_ERROR:
                await self._abort_after(error)
            raise

    async def _abort_after(self, error: BaseException) -> None:
        txn = self._core.txn
        if txn is None or txn.state is State.FATAL_ERROR:
            return
        if txn.state is State.PREPARED_TRANSACTION:
            error.add_note(f"and the transaction {txn.prepared} is prepared: call complete_transaction")
            return
        try:
            await self.abort_transaction()
        except KafkaError as failure:
            if isinstance(failure, ProducerFencedError) and isinstance(error, KafkaError):
                raise failure from error  # the reason of the first error
            error.add_note(f"and the transaction was not aborted: {failure}")

    async def close(self, timeout: float | None = None) -> None:
        """Send all records, abort an open transaction that is not prepared, and release the connections."""
        if not self._blocking._is_closed:
            try:
                await run(self._reactor, self._core.close(None if timeout is None else timeout * 1000))
            finally:
                self._core.is_closed, self._core.accepts = True, False
                Client.close(self._blocking)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
