"""Changes of the registry: records are appended, become durable, and are then applied to the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.durability import error_code
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txnkafka.broker.broker import Broker
    from txnkafka.coordinator.metadata_records import LogRecord

__all__ = ["register", "register_voter"]


def register(
    broker: Broker, records: Sequence[LogRecord], then: Callable[[ErrorCode, str | None], None]
) -> None:
    """Append records as one batch. ``then`` is called with NONE after they were applied to the image, or
    with an error and its message.
    """
    metadata = broker.metadata
    _change(broker, lambda: metadata.append(records, broker.now_ms), lambda: metadata.apply(records), then)


def register_voter(
    broker: Broker,
    directory_id: str,
    records: Sequence[LogRecord],
    then: Callable[[ErrorCode, str | None], None],
) -> None:
    """Append like ``register``, after the records that move the voter from the configuration to the log."""
    metadata = broker.metadata

    def append() -> None:
        metadata.append_voter(directory_id, broker.now_ms)
        if records:
            metadata.append(records, broker.now_ms)

    def apply() -> None:
        metadata.kraft_version = 1
        metadata.apply(records)

    _change(broker, append, apply, then)


def _change(
    broker: Broker,
    append: Callable[[], None],
    apply: Callable[[], None],
    then: Callable[[ErrorCode, str | None], None],
) -> None:
    try:
        append()
    except KafkaError as error:
        code, message = error_code(error), str(error)
        broker.durability.soon(lambda: then(code, message))
        return

    def durable(error: ErrorCode) -> None:
        if error == ErrorCode.NONE:
            apply()
        then(error, None)

    broker.durability.when_durable(broker.metadata.log, durable)
