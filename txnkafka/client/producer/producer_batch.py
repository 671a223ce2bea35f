"""``ProducerBatch``: a batch of one partition, from its first record to its acknowledgement."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from txnkafka._core.encode import set_producer
from txnkafka.client.producer.record_metadata import BatchMetadata, RecordMetadata
from txnkafka.client.promise import Promise
from txnkafka.errors import KafkaError, ProduceError
from txnkafka.model import NO_OFFSET, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, ProducerIdAndEpoch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from txnkafka._core.record_list import RecordFuture
    from txnkafka.client.producer.batch_content import Content
    from txnkafka.client.reactor import Reactor
    from txnkafka.model import TopicPartition
    from txnkafka.record.builder import RecordBatchBuilder

LOG = logging.getLogger("txnkafka.client")
NO_PRODUCER = ProducerIdAndEpoch(NO_PRODUCER_ID, -1)
_SEQUENCES = 1 << 31


class ProducerBatch:
    """``done`` ends when the batch is acknowledged or has failed; ``error`` is None after a success.

    ``producer`` and ``base_sequence`` are assigned when the batch is sent first, and stay through all
    retries, except after a new epoch."""

    __slots__ = (
        "_calls",
        "_log_append_time",
        "_record_errors",
        "_sealed",
        "_wire",
        "attempts",
        "base_offset",
        "base_sequence",
        "content",
        "count",
        "created_ms",
        "done",
        "error",
        "has_new_sequence",
        "partition",
        "parts",
        "producer",
        "reactor",
        "ready_ms",
        "reserved",
    )  # fmt: skip

    def __init__(
        self, partition: TopicPartition, reactor: Reactor, created_ms: int, content: Content | None = None
    ) -> None:
        self.partition = partition
        self.reactor = reactor
        self.created_ms = created_ms
        self.content = content
        self.count = 0 if content is None else content.count
        self.reserved = 0  # bytes of buffer.memory
        self.attempts = 0
        self.ready_ms = 0  # a retry waits until then
        self.producer = NO_PRODUCER
        self.base_sequence = NO_SEQUENCE
        self.has_new_sequence = False
        self.done: Promise[None] = Promise()
        self.error: KafkaError | None = None
        self.base_offset = NO_OFFSET
        self.parts: list[ProducerBatch] = []
        self._log_append_time = NO_TIMESTAMP
        self._record_errors: Mapping[int, KafkaError] = {}
        self._calls: list[tuple[RecordFuture[RecordMetadata], Callable[..., object]]] = []
        self._wire: bytearray | None = None
        self._sealed: tuple[ProducerIdAndEpoch, int] | None = None  # producer and sequence in the bytes

    def __repr__(self) -> str:
        return f"<batch of {self.count} records for {self.partition}>"

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record."""
        return (self.base_sequence + self.count - 1) % _SEQUENCES

    def assign(self, producer: ProducerIdAndEpoch, base_sequence: int) -> None:
        """Set producer and sequence; a second time after a new epoch."""
        if self.base_sequence != NO_SEQUENCE:
            self.has_new_sequence = True
        self.producer, self.base_sequence = producer, base_sequence

    def encode(self, builder: RecordBatchBuilder) -> int:
        """Encode the records, unless that was done; return the size."""
        if self._wire is None:
            assert self.content is not None
            self._wire = self.content.encode(builder)
        return len(self._wire)

    def sealed(self, *, is_transactional: bool) -> bytearray:
        """Return the encoded bytes with producer and sequence."""
        assert self._wire is not None
        wanted = self.producer, self.base_sequence
        if self._sealed != wanted:
            if self._sealed is not None:
                self._wire = bytearray(self._wire)  # the old bytes may still be sent
            self._sealed = wanted
            set_producer(
                self._wire, producer_id=self.producer.producer_id,
                producer_epoch=self.producer.producer_epoch, base_sequence=self.base_sequence,
                transactional=is_transactional,
            )  # fmt: skip
        return self._wire

    def complete(self, base_offset: int, log_append_time: int) -> None:
        """The broker has the batch. Nothing changes after its end."""
        if not self.done.is_done:
            self.base_offset, self._log_append_time = base_offset, log_append_time
            self._end()

    def fail(self, error: KafkaError, record_errors: Mapping[int, KafkaError] | None = None) -> bool:
        """Fail all records, with their error in ``record_errors`` or with ``error``. Return False if the
        batch had ended before."""
        if self.done.is_done:
            return False
        self.error, self._record_errors = error, record_errors or {}
        self._end()
        return True

    def split(self, limit: int) -> list[ProducerBatch]:
        """Return the batches of ``limit`` bytes that replace this one and keep its sequences; [] if the batch
        cannot be split. It ends with the last part."""
        assert self.content is not None
        contents = self.content.split(limit)
        if len(contents) < 2:
            return []
        sequence = self.base_sequence
        for content in contents:
            part = ProducerBatch(self.partition, self.reactor, self.created_ms, content)
            if sequence != NO_SEQUENCE:
                part.assign(self.producer, sequence)
                part.has_new_sequence = self.has_new_sequence
                sequence = (sequence + part.count) % _SEQUENCES
            self.parts.append(part)
        left = len(self.parts)

        def ended() -> None:
            nonlocal left
            left -= 1
            if not left:
                self._end()

        for part in self.parts:
            part.done.on_done(ended)
        return self.parts

    # For futures

    def batch_metadata(self) -> list[BatchMetadata]:
        """Return the places of the records after the end. Raises the first error."""
        if self.parts:
            return [place for part in self.parts for place in part.batch_metadata()]
        if self.error is not None:
            raise self.error
        return [BatchMetadata(*self.partition, self.base_offset, self.count)]

    def record_done(self, index: int) -> bool:
        """Return whether a record was acknowledged or has failed."""
        return self.done.is_done

    def record_result(self, future: RecordFuture[RecordMetadata], timeout: float | None) -> RecordMetadata:
        """Wait for a record; see ``RecordFuture.result``."""
        self._wait(timeout)
        batch, index = self._part_of(future.index)
        error = batch._error_of(index)
        if error is not None:
            raise error
        offset = batch.base_offset if batch.base_offset == NO_OFFSET else batch.base_offset + index
        time = batch._log_append_time
        return RecordMetadata(*self.partition, offset, future.timestamp if time == NO_TIMESTAMP else time)

    def record_exception(
        self, future: RecordFuture[RecordMetadata], timeout: float | None
    ) -> KafkaError | None:
        """Wait for a record; see ``RecordFuture.exception``."""
        self._wait(timeout)
        batch, index = self._part_of(future.index)
        return batch._error_of(index)

    def on_record_done(
        self, future: RecordFuture[RecordMetadata], call: Callable[[RecordFuture[RecordMetadata]], object]
    ) -> None:
        """Make a call at the end of a record."""
        with self.reactor.lock:
            if not self.done.is_done:
                self._calls.append((future, call))
                return
        _call(future, call)

    def _wait(self, timeout: float | None) -> None:
        if not self.done.is_done:
            self.reactor.wait(
                self.done, None if timeout is None else timeout * 1000, f"the answer for {self.partition}"
            )

    def _part_of(self, index: int) -> tuple[ProducerBatch, int]:
        for part in self.parts:
            if index < part.count:
                return part._part_of(index)
            index -= part.count
        return self, index

    def _error_of(self, index: int) -> KafkaError | None:
        if self.error is None or not self._record_errors:
            return self.error
        own = self._record_errors.get(index)
        return own if own is not None else _beside(self.error)

    def _end(self) -> None:
        self.content = self._wire = None
        calls, self._calls = self._calls, []
        self.done.set(None)
        for future, call in calls:
            _call(future, call)


def _beside(error: KafkaError) -> KafkaError:
    """Return the error of a valid record in a batch that was refused because of other records (KIP-467)."""
    made = ProduceError(f"the batch of the record was refused because of other records: {error}")
    made.code = error.code
    return made


def _call(future: RecordFuture[RecordMetadata], call: Callable[..., object]) -> None:
    try:
        call(future)
    except Exception:
        LOG.exception("a callback of %r failed", future)
