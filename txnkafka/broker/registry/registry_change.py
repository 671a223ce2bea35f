"""Changes of the registry: records are appended, become durable, and are then applied to the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.durability import error_code
from txnkafka.error_codes import ErrorCode
from txnkafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from txnkafka.broker.services import Services
    from txnkafka.coordinator.registry.metadata_records import LogRecord


def register(
    services: Services, records: Sequence[LogRecord], then: Callable[[ErrorCode, str | None], None]
) -> None:
    """Append records as one batch. ``then`` is called with NONE after they were applied to the image, or
    with an error and its message."""
    metadata = services.metadata
    _change(
        services, lambda: metadata.append(records, services.now_ms), lambda: metadata.apply(records), then
    )


def register_voter(
    services: Services,
    directory_id: str,
    records: Sequence[LogRecord],
    then: Callable[[ErrorCode, str | None], None],
) -> None:
    """Append like ``register``, after the records that move the voter from the configuration to the log."""
    metadata = services.metadata

    def append() -> None:
        metadata.append_voter(directory_id, services.now_ms)
        if records:
            metadata.append(records, services.now_ms)

    def apply() -> None:
        metadata.kraft_version = 1
        metadata.apply(records)

    _change(services, append, apply, then)


def _change(
    services: Services,
    append: Callable[[], None],
    apply: Callable[[], None],
    then: Callable[[ErrorCode, str | None], None],
) -> None:
    try:
        append()
    except KafkaError as error:
        code, message = error_code(error), str(error)
        services.durability.soon(lambda: then(code, message))
        return

    def durable(error: ErrorCode) -> None:
        if error == ErrorCode.NONE:
            apply()
        then(error, None)

    services.durability.when_durable(services.metadata.log, durable)
