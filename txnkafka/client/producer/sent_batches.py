"""``SentBatches``: the result of a call that sends whole batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.errors import KafkaError, KafkaTimeoutError

if TYPE_CHECKING:
    from txnkafka.client.producer.producer_batch import ProducerBatch
    from txnkafka.client.producer.record_metadata import BatchMetadata
    from txnkafka.client.reactor import Reactor


class SentBatches:
    """The future of the batches of one call. ``count`` is the number of records."""

    __slots__ = ("_batches", "_reactor", "count")

    def __init__(self, reactor: Reactor, batches: list[ProducerBatch]) -> None:
        self._reactor = reactor
        self._batches = batches
        self.count = sum(batch.count for batch in batches)

    def __repr__(self) -> str:
        state = "done" if self.done() else "pending"
        return f"<SentBatches of {self.count} records in {len(self._batches)} batches, {state}>"

    @property
    def batches(self) -> list[ProducerBatch]:
        """The batches, in the order of their sending."""
        return self._batches

    def done(self) -> bool:
        """Return whether all records were acknowledged, or have failed."""
        return all(batch.done.is_done for batch in self._batches)

    def result(self, timeout: float | None = None) -> list[BatchMetadata]:
        """Wait for all batches, and return where they are. ``timeout`` is in seconds.

        Raises the error of the first batch that has failed, and KafkaTimeoutError after the timeout."""
        self._wait(timeout)
        return [place for batch in self._batches for place in batch.batch_metadata()]

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Wait like ``result``, and return the error of the first batch that has failed, None without
        one."""
        self._wait(timeout)
        try:
            self.result()
        except KafkaError as error:
            return error
        return None

    def _wait(self, timeout: float | None) -> None:
        reactor = self._reactor
        until_ms = None if timeout is None else reactor.now_ms() + timeout * 1000
        for batch in self._batches:
            if batch.done.is_done:
                continue
            left = None if until_ms is None else max(0, until_ms - reactor.now_ms())
            try:
                reactor.wait(batch.done, left)
            except KafkaTimeoutError:
                raise KafkaTimeoutError(f"{batch.partition}: no answer within {timeout} s") from None
