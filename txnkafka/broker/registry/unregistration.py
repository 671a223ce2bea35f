"""Removes a broker that another owner of the directory has registered.

Source: ``ReplicationControlManager.unregisterBroker``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txnkafka.broker.registry.registry_change import register
from txnkafka.coordinator.registry import metadata_records
from txnkafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from txnkafka.broker.broker import Broker


def unregister_broker(broker: Broker, broker_id: int, reply: Callable[[ErrorCode, str | None], None]) -> None:
    """Remove the registration of a broker. Answers when the removal is durable."""
    known = [
        record.value["broker_epoch"]
        for record in broker.image.kept.of("register_broker_record")
        if record.value is not None and record.value["broker_id"] == broker_id
    ]
    if broker_id == broker.node_id:
        message = f"broker {broker_id} is running, and cannot be unregistered"
        broker.durability.soon(lambda: reply(ErrorCode.INVALID_REQUEST, message))
    elif not known:
        message = f"Broker ID {broker_id} is not currently registered"
        broker.durability.soon(lambda: reply(ErrorCode.BROKER_ID_NOT_REGISTERED, message))
    else:
        register(broker.services, [metadata_records.unregister_broker(broker_id, known[0])], reply)
