"""``Asker``: appends checks to ``__txn_check``, for all partitions of halves of one resolver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from txnkafka.checkback.half_topics import CHECK_TOPIC
from txnkafka.checkback.shared_config import derived
from txnkafka.client.producer.producer_config import ProducerConfig
from txnkafka.client.producer.producer_core import ProducerCore
from txnkafka.errors import ClosedError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txnkafka._core.record_list import RecordFuture
    from txnkafka.client.client_config import ClientConfig
    from txnkafka.client.producer.record_metadata import RecordMetadata
    from txnkafka.client.transport import Transport
    from txnkafka.wire.records.check_records import AskRecord

_LARGEST: Final = 64 << 20


class Asker:
    """An idempotent producer. The partitions take turns, so that all listeners of a group get checks."""

    def __init__(self, transport: Transport, config: ClientConfig) -> None:
        settings = derived(
            ProducerConfig, config, linger_ms=0, max_request_size=_LARGEST, buffer_memory=2 * _LARGEST
        )
        self._core = ProducerCore(transport, settings)
        self._next = 0

    async def send(self, asks: Iterable[AskRecord]) -> dict[str, KafkaError]:
        """Append checks, and wait until they are durable; return the errors of those that failed, by id."""
        errors: dict[str, KafkaError] = {}
        sent: list[tuple[str, RecordFuture[RecordMetadata]]] = []
        for ask in asks:
            try:
                sent.append((ask.transaction_id, await self._append(*ask.encode())))
            except ClosedError:
                raise
            except KafkaError as error:
                errors[ask.transaction_id] = error
        for transaction_id, future in sent:
            await future.batch.done
            failure = future.exception()
            if isinstance(failure, KafkaError):
                errors[transaction_id] = failure
        return errors

    async def close(self) -> None:
        """Send what waits, and stop."""
        await self._core.close(1_000)

    async def _append(self, key: bytes, value: bytes) -> RecordFuture[RecordMetadata]:
        core = self._core
        if CHECK_TOPIC not in core.topics:
            await core.partitions_for(CHECK_TOPIC)
        self._next = (self._next + 1) % core.topics[CHECK_TOPIC].count
        return await core.send(CHECK_TOPIC, key, value, partition=self._next, timestamp=None, headers=None)
