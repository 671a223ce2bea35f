"""``Producer``: sends records to Kafka, once each, and in transactions.

    with Producer({"bootstrap.servers": "127.0.0.1:9092", "transactional.id": "shop"}) as producer:
        with producer.transaction():
            producer.send("orders", b"a book", key=b"anna")

The API follows ``KafkaProducer`` of Apache Kafka, with Python's names.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from txnkafka.client.client import Client
from txnkafka.client.offsets import OffsetAndMetadata
from txnkafka.client.prepared_txn_state import PreparedTxnState, prepared_state
from txnkafka.client.producer.batch_content import FinishedBatch
from txnkafka.client.producer.columns import arrow_columns, columns_to_send, numbers_of
from txnkafka.client.producer.producer_config import ProducerConfig
from txnkafka.client.producer.producer_core import ProducerCore
from txnkafka.client.producer.record_metadata import RecordMetadata
from txnkafka.client.producer.sent_batches import SentBatches
from txnkafka.client.producer.txn_state import State
from txnkafka.errors import ClosedError, KafkaError, ProducerFencedError

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from txnkafka._core.record_list import RecordFuture
    from txnkafka.client.cluster import Partition
    from txnkafka.client.group_metadata import ConsumerGroupMetadata
    from txnkafka.client.transport import Transport
    from txnkafka.model import TopicPartition

    Headers: TypeAlias = Iterable[tuple[str, Buffer | None]]

Serializer: TypeAlias = Callable[[Any], "Buffer | None"]


class Producer(Client[ProducerConfig]):
    """A producer. Any thread may call it; all threads share its transaction.

    ``settings`` have Kafka's names and defaults, see ``ProducerConfig``; keyword arguments add to them:
    ``Producer(bootstrap_servers="127.0.0.1:9092", linger_ms=10)``. ``key_serializer`` and
    ``value_serializer`` are called with each key and value and return bytes or None.

    Without ``transactional.id`` the producer is idempotent: each record is written once, in the order of
    ``send`` for each partition. Raises ValueError and TypeError for wrong settings."""

    kind: ClassVar[str] = "producer"
    config_class: ClassVar[type[Any]] = ProducerConfig

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        transport: Callable[[str], Transport] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(settings, transport=transport, **more)
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._core = ProducerCore(self._transport, self.config)
        self._append = self._core.appender.append

    def __repr__(self) -> str:
        name = self.config.transactional_id
        return f"<Producer {self.config.client_id!r}" + (f" transactional_id={name!r}>" if name else ">")

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> RecordFuture[RecordMetadata]:
        """Send a record, and return the future of its RecordMetadata.

        Without ``partition`` the hash of the key decides (murmur2, as in Java), without a key all records of
        about one batch go to one partition. ``timestamp`` is in milliseconds since 1970, by default the
        clock's. ``headers`` are pairs of a name and bytes or None. A value of None is a tombstone.

        The record waits up to ``linger.ms`` for others in the same batch. The call waits, up to
        ``max.block.ms``, only for the partitions of a new topic, and while ``buffer.memory`` is full.

        Raises IllegalStateError outside of a transaction if the producer is transactional;
        TransactionAbortableError in a transaction that must be aborted; MessageTooLargeError for more than
        ``max.request.size``; BufferExhaustedError; KafkaTimeoutError and UnknownTopicOrPartitionError for a
        topic that was not found; TypeError and ValueError for a wrong record. Errors of the broker are in the
        future, and fail the commit."""
        if self._key_serializer is not None:
            key = self._key_serializer(key)
        if self._value_serializer is not None:
            value = self._value_serializer(value)
        if headers is not None:
            headers = tuple(headers)
        future = self._append(topic, key, value, partition, timestamp, headers)
        if future is not None:
            return future
        waits = self._core.send(topic, key, value, partition=partition, timestamp=timestamp, headers=headers)
        return self._reactor.run(waits)

    def send_columns(
        self,
        topic: str,
        *,
        keys: Any = None,
        values: Any = None,
        timestamps: Any = None,
        headers: Any = None,
        partition: int | None = None,
        partitions: Any = None,
    ) -> SentBatches:
        """Send many records without an object for each; return one future for all.

        ``keys`` and ``values`` are pyarrow arrays of bytes or text, which are not copied, or lists of bytes
        and None. ``timestamps`` are milliseconds (numpy, pyarrow, or a list), by default the clock's time.
        ``headers`` is a pyarrow array of lists of structs (key, value). All records go to ``partition``, or
        to the ``partitions`` of a column of numbers, or by the hashes of their keys; records without keys go
        to one partition after another. No serializer is called.

        The batches hold up to ``max.request.size``, and are sent at once. The columns must not be changed
        until the result. Raises what ``send`` raises; MessageTooLargeError before anything is sent."""
        waits = self._columns_to_send(
            topic, keys=keys, values=values, timestamps=timestamps, headers=headers, partition=partition,
            partitions=partitions,
        )  # fmt: skip
        return self._reactor.run(waits)

    def _columns_to_send(
        self,
        topic: str,
        *,
        keys: Any = None,
        values: Any = None,
        timestamps: Any = None,
        headers: Any = None,
        partition: int | None = None,
        partitions: Any = None,
    ) -> Coroutine[Any, Any, SentBatches]:
        columns = columns_to_send(keys, values, timestamps, headers, self._reactor.clock.now_ms())
        numbers = None if partitions is None else numbers_of(partitions, "partitions", "i")
        if numbers is not None and len(numbers) != columns.count:
            raise ValueError(f"{len(numbers)} partitions for {columns.count} records")
        return self._core.send_columns(topic, columns, partition, numbers)

    def send_arrow(self, topic: str, batch: Any, *, partition: int | None = None) -> SentBatches:
        """Send the records of a pyarrow RecordBatch or Table, as Spark's Kafka source and
        ``Consumer.poll_arrow`` have them: the columns ``value``, and optionally ``key``, ``timestamp``,
        ``headers`` and ``partition``. Other columns are not allowed, except those that a log adds:
        ``topic``, ``offset``, ``timestampType``, which are ignored. See ``send_columns``."""
        return self.send_columns(topic, partition=partition, **arrow_columns(batch, partition))

    def send_batch(self, topic: str, partition: int, batch: Buffer) -> SentBatches:
        """Send a finished record batch of magic 2, without reading its records; only producer id, epoch,
        sequence, the transactional bit and the checksum are set. The bytes are copied.

        Raises InvalidRecordError for other bytes, MessageTooLargeError for more than ``max.request.size``,
        and what ``send`` raises."""
        return self._reactor.run(self._core.send_batch(topic, partition, FinishedBatch(batch)))

    def flush(self, timeout: float | None = None) -> None:
        """Send all records, and wait until each was acknowledged or has failed. ``timeout`` is in seconds.

        Raises KafkaTimeoutError after the timeout; the errors of records are in their futures."""
        self._reactor.run(self._core.flush(None if timeout is None else timeout * 1000))

    def partitions_for(self, topic: str) -> list[Partition]:
        """Return the partitions of a topic with their leaders. Raises KafkaTimeoutError for a topic that does
        not exist within ``max.block.ms``."""
        return self._reactor.run(self._core.partitions_for(topic))

    def init_transactions(self, *, keep_prepared: bool = False) -> None:
        """Get the producer id, and fence other producers with the same ``transactional.id``; their open
        transaction is aborted. With ``keep_prepared`` it stays open, and ``complete_transaction`` ends it
        (KIP-939).

        Raises KafkaTimeoutError after ``max.block.ms``: call it again then. Raises IllegalStateError for a
        second call, and UnsupportedVersionError from a broker without two-phase commit."""
        self._reactor.run(self._core.init(keep_prepared=keep_prepared))

    def begin_transaction(self) -> None:
        """Begin a transaction. Raises IllegalStateError before ``init_transactions`` and within another
        transaction; ProducerFencedError."""
        with self._reactor:
            self._core.begin()

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: ConsumerGroupMetadata,
    ) -> None:
        """Commit the offsets of a consumer group with the transaction: ``consumer.group_metadata()``, and the
        next offset of each partition.

        Raises CommitFailedError if the group has given the partitions to another member (KIP-447),
        TransactionAbortableError, ProducerFencedError, KafkaTimeoutError."""
        given = {
            partition: OffsetAndMetadata(offset) if isinstance(offset, int) else offset
            for partition, offset in offsets.items()
        }
        self._reactor.run(self._core.send_offsets(given, group_metadata))

    def prepare_transaction(self) -> PreparedTxnState:
        """Send all records, and close the transaction for more: only ``complete_transaction``,
        ``commit_transaction`` and ``abort_transaction`` are possible then. Store ``str()`` of the result in
        the transaction of your database (KIP-939). ``close`` leaves a prepared transaction open.

        Raises InvalidTxnStateError without ``transaction.two.phase.commit.enable``; UnsupportedVersionError
        from a cluster before ``transaction.version`` 2 (KIP-890); IllegalStateError outside of a transaction;
        TransactionAbortableError if a record has failed; KafkaTimeoutError after ``max.block.ms``: the same
        call continues it."""
        return self._reactor.run(self._core.prepare())

    def complete_transaction(self, state: PreparedTxnState | str) -> None:
        """Commit the prepared transaction if the database has its ``state``, and abort it if the state is of
        another transaction (KIP-939). Does nothing if ``init_transactions(keep_prepared=True)`` has found no
        open transaction, because it had ended.

        Raises ValueError for a wrong text; InvalidTxnStateError without a prepared transaction; and what
        ``commit_transaction`` raises."""
        self._reactor.run(self._core.complete(prepared_state(state)))

    def commit_transaction(self) -> None:
        """Commit the transaction, after all its records were acknowledged.

        Raises TransactionAbortableError if a record has failed, and the error of the commit itself; call
        ``abort_transaction`` then if its ``txn_requires_abort`` is true. Raises ProducerFencedError, and
        KafkaTimeoutError after ``max.block.ms``: the result is unknown, and the same call continues it."""
        self._reactor.run(self._core.commit())

    def abort_transaction(self) -> None:
        """Abort the transaction; records that were not sent yet fail.

        Raises ProducerFencedError, and KafkaTimeoutError after ``max.block.ms``: the same call continues
        it."""
        self._reactor.run(self._core.abort())

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Begin a transaction for a ``with`` block, and commit it at the end, or abort it after an exception.
        The first one calls ``init_transactions``. An exception leaves a prepared transaction open, because
        its outcome may be decided already: call ``complete_transaction``.

        A commit that fails because of a record aborts the transaction, and raises the error. After a fatal
        error (ProducerFencedError) nothing more is sent."""
        txn = self._core.txn
        if self._core.needs_init:
            self.init_transactions()
        self.begin_transaction()
        try:
            yield self
        except BaseException as error:
            self._abort_after(error)
            raise
        try:
            self.commit_transaction()
        except KafkaError as error:
            if txn is not None and txn.state is State.ABORTABLE_ERROR:
                self._abort_after(error)
            raise

    def close(self, timeout: float | None = None) -> None:
        """Send all records, abort an open transaction that is not prepared, and release the connections.

        Records that were not sent within ``timeout`` seconds fail with ClosedError. A second call does
        nothing."""
        if not self._is_closed:
            try:
                self._reactor.run(self._core.close(None if timeout is None else timeout * 1000))
            except ClosedError:  # the broker of this process was closed before, or this is a forked child
                self._core.is_closed, self._core.accepts = True, False
        super().close()

    def _abort_after(self, error: BaseException) -> None:
        txn = self._core.txn
        if txn is None or txn.state is State.FATAL_ERROR:
            return
        if txn.state is State.PREPARED_TRANSACTION:
            error.add_note(f"and the transaction {txn.prepared} is prepared: call complete_transaction")
            return
        try:
            self.abort_transaction()
        except KafkaError as failure:
            if isinstance(failure, ProducerFencedError) and isinstance(error, KafkaError):
                raise failure from error  # it is the reason of the first error
            error.add_note(f"and the transaction was not aborted: {failure}")
