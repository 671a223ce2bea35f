"""The messages between consumers of the classic group protocol: the opaque bytes inside group metadata.

The broker parses them when a group changes to the consumer protocol (KIP-848), and Kafka's dump tool does,
for groups of protocol type ``consumer`` (``ConsumerProtocolSubscription``, ``ConsumerProtocolAssignment``).
They are never flexible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from txnkafka.wire.reader import read_message
from txnkafka.wire.records.log_record import encode_value
from txnkafka.wire.schema import BYTES, INT32, STRING, Array, Field, Message, SchemaError

PROTOCOL_TYPE: Final = "consumer"
_HIGHEST: Final = 3

_TOPIC_PARTITIONS: Final = Array.of(
    Field("topic", STRING),
    Field("partitions", Array(INT32)),
)

SUBSCRIPTION: Final = Message("consumer_protocol_subscription", "0-3").of(
    Field("topics", Array(STRING)),
    Field("user_data", BYTES, nullable="0+", default=None),
    Field("owned_partitions", _TOPIC_PARTITIONS, "1+"),
    Field("generation_id", INT32, "2+", default=-1),
    Field("rack_id", STRING, "3+", nullable="3+", default=None),
)

ASSIGNMENT: Final = Message("consumer_protocol_assignment", "0-3").of(
    Field("assigned_partitions", _TOPIC_PARTITIONS),
    Field("user_data", BYTES, nullable="0+", default=None),
)


def decode_subscription(data: bytes, *, version: int = _HIGHEST) -> dict[str, Any] | None:
    """Return the fields of a subscription, up to those of ``version``; None for other bytes. The fields of
    version 0 are correct even if a client announces a version that it does not write."""
    return _decode(SUBSCRIPTION, data, version)


def decode_assignment(data: bytes) -> dict[str, Any] | None:
    """Return the fields of a member's assignment; None for other bytes."""
    return _decode(ASSIGNMENT, data, _HIGHEST)


def encode_assignment(assigned: Iterable[tuple[str, Sequence[int]]], version: int) -> bytes:
    """Return the bytes of an assignment of partitions by topic, in a version or the highest one below it."""
    partitions = [{"topic": topic, "partitions": list(numbers)} for topic, numbers in assigned]
    fields = {"assigned_partitions": partitions, "user_data": None}
    return encode_value(ASSIGNMENT, min(max(version, 0), _HIGHEST), fields)


def _decode(message: Message, data: bytes, most: int) -> dict[str, Any] | None:
    """Return the fields of a message. Later versions are read as the highest known one, and remaining
    bytes are ignored, as in ``ConsumerProtocol``: a later version only adds fields at the end."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        return None
    try:
        return read_message(message, min(version, most), data, 2, same_record=True)[0]
    except SchemaError:
        return None
