"""Transactional messages that are checked back, as in RocketMQ, on a Kafka log.

    from txnkafka.checkback import DecisionTable, TransactionMQProducer

    decisions = DecisionTable(engine)
    with TransactionMQProducer("orders", "127.0.0.1:9092", decisions=decisions) as producer:
        with producer.half("orders", b"a book", key=b"anna") as half:
            with engine.begin() as db:
                db.execute(...)                # the local transaction
                half.record(db)

The message becomes visible if, and only if, the database transaction was committed, whatever crashes.
Each public name loads its module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from txnkafka.checkback.admin import CheckBackAdmin, HalfMessage
    from txnkafka.checkback.checkback_config import CheckBackConfig
    from txnkafka.checkback.decision_table import AsyncDecisionTable, DecisionTable
    from txnkafka.checkback.errors import (
        CheckBackError,
        DelayNotSupportedError,
        HalfTooLargeError,
        ListenerMissingError,
        TransactionDecidedError,
        TransactionParkedError,
        UnknownTransactionError,
        WrongGroupError,
    )
    from txnkafka.checkback.half import Half
    from txnkafka.checkback.listener import TransactionListener
    from txnkafka.checkback.message import (
        LocalTransactionState,
        Message,
        MessageExt,
        SendResult,
        SendStatus,
        TransactionSendResult,
    )
    from txnkafka.checkback.producer import TransactionMQProducer

_MODULES = {
    "AsyncDecisionTable": "decision_table",
    "CheckBackAdmin": "admin",
    "CheckBackConfig": "checkback_config",
    "DecisionTable": "decision_table",
    "Half": "half",
    "HalfMessage": "admin",
    "LocalTransactionState": "message",
    "Message": "message",
    "MessageExt": "message",
    "SendResult": "message",
    "SendStatus": "message",
    "TransactionListener": "listener",
    "TransactionMQProducer": "producer",
    "TransactionSendResult": "message",
}  # of the other names: errors

__all__ = [
    "AsyncDecisionTable",
    "CheckBackAdmin",
    "CheckBackConfig",
    "CheckBackError",
    "DecisionTable",
    "DelayNotSupportedError",
    "Half",
    "HalfMessage",
    "HalfTooLargeError",
    "ListenerMissingError",
    "LocalTransactionState",
    "Message",
    "MessageExt",
    "SendResult",
    "SendStatus",
    "TransactionDecidedError",
    "TransactionListener",
    "TransactionMQProducer",
    "TransactionParkedError",
    "TransactionSendResult",
    "UnknownTransactionError",
    "WrongGroupError",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
