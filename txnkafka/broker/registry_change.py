"""Records for the registry: appended, durable, and then in the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.durability import error_code
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txnkafka.broker.broker import Broker
    from txnkafka.coordinator.metadata_records import LogRecord

__all__ = ["register"]


def register(
    broker: Broker, records: Sequence[LogRecord], then: Callable[[ErrorCode, str | None], None]
) -> None:
    """Append records as one batch, and call ``then`` when the image has them, or with the error and what
    there is to say of it."""
    try:
        broker.metadata.append(records, broker.now_ms)
    except KafkaError as error:
        code, message = error_code(error), str(error)
        broker.durability.soon(lambda: then(code, message))
        return

    def durable(error: ErrorCode) -> None:
        if error == ErrorCode.NONE:
            broker.metadata.apply(records)
        then(error, None)

    broker.durability.when_durable(broker.metadata.log, durable)
