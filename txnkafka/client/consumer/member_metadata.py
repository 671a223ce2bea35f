"""``MemberMetadata``: the bytes that members of a classic group send each other through the broker.

Besides topics and owned partitions, sticky assignors have user data: the previous assignment and its
generation. Source: ``ConsumerProtocol``, ``StickyAssignor``, ``CooperativeStickyAssignor``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from txnkafka.client.consumer.assignors import MemberSubscription
from txnkafka.model import TopicPartition
from txnkafka.wire.reader import read_message
from txnkafka.wire.records.consumer_protocol import (
    SUBSCRIPTION,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from txnkafka.wire.records.log_record import encode_value
from txnkafka.wire.schema import INT32, STRING, Array, Field, Message, SchemaError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_VERSION: Final = 3
_NO_GENERATION: Final = -1
_PREVIOUS: Final = Message("sticky_assignor_user_data", "0-1").of(
    Field("previous_assignment", Array.of(Field("topic", STRING), Field("partitions", Array(INT32)))),
    Field("generation", INT32, "1+", default=-1),
)


class MemberMetadata:
    """``assignors`` are the names of this member's assignors, in order of preference."""

    def __init__(self, assignors: tuple[str, ...], rack: str) -> None:
        self._assignors = assignors
        self._rack = rack or None
        self._previous: tuple[list[TopicPartition], int] | None = None  # of the assignor ``sticky``

    @property
    def is_cooperative(self) -> bool:
        """Return whether members keep their partitions during a rebalance: all assignors must allow it."""
        return all(name == "cooperative-sticky" for name in self._assignors)

    def subscriptions(
        self, topics: Collection[str], owned: Collection[TopicPartition], generation_id: int
    ) -> Iterator[tuple[str, bytes]]:
        """Yield each assignor with the subscription for it."""
        for name in self._assignors:
            fields = {
                "topics": sorted(topics),
                "user_data": self._user_data(name, generation_id),
                "owned_partitions": _by_topic(owned),
                "generation_id": generation_id,
                "rack_id": self._rack,
            }
            yield name, encode_value(SUBSCRIPTION, _VERSION, fields)

    def read(self, data: bytes, instance_id: str | None) -> MemberSubscription:
        """Return the subscription of a member; a member whose bytes cannot be read has no topics."""
        fields = decode_subscription(data) or {"topics": [], "user_data": None}
        owned = _partitions(fields.get("owned_partitions", []))
        generation_id = fields.get("generation_id", _NO_GENERATION)
        user_data = fields["user_data"]
        previous = None if user_data is None else _previous(bytes(user_data))
        if (
            previous is None
            and user_data is not None
            and len(user_data) == 4
            and generation_id == _NO_GENERATION
        ):
            generation_id = int.from_bytes(user_data, "big", signed=True)
        return MemberSubscription(
            tuple(fields["topics"]), owned, generation_id, instance_id, previous, fields.get("rack_id")
        )

    def assignment(self, partitions: Collection[TopicPartition]) -> bytes:
        """Return the bytes of a member's assignment."""
        return encode_assignment(
            ((row["topic"], row["partitions"]) for row in _by_topic(partitions)), _VERSION
        )

    def assigned(self, assignor: str, data: bytes, generation_id: int) -> list[TopicPartition]:
        """Return the partitions of an assignment."""
        fields = decode_assignment(bytes(data)) if data else None
        partitions = list(_partitions(fields["assigned_partitions"])) if fields else []
        if assignor == "sticky":
            self._previous = partitions, generation_id
        return partitions

    def _user_data(self, assignor: str, generation_id: int) -> bytes | None:
        if assignor == "cooperative-sticky":
            return generation_id.to_bytes(4, "big", signed=True)
        if assignor == "sticky" and self._previous is not None:
            partitions, previous_id = self._previous
            fields = {"previous_assignment": _by_topic(partitions), "generation": previous_id}
            return bytes(encode_value(_PREVIOUS, 1, fields)[2:])
        return None


def _previous(data: bytes) -> tuple[tuple[TopicPartition, ...], int] | None:
    """Return partitions and generation in the user data of ``sticky``; these have no version."""
    for version in (1, 0):
        try:
            fields, end = read_message(_PREVIOUS, version, data, 0, same_record=True)
        except SchemaError:
            continue
        if end == len(data):
            return _partitions(fields["previous_assignment"]), fields.get("generation", _NO_GENERATION)
    return None


def _by_topic(partitions: Collection[TopicPartition]) -> list[dict[str, Any]]:
    topics: dict[str, list[int]] = {}
    for each in sorted(partitions):
        topics.setdefault(each.topic, []).append(each.partition)
    return [{"topic": topic, "partitions": numbers} for topic, numbers in topics.items()]


def _partitions(rows: Any) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(row["topic"], number) for row in rows for number in row["partitions"])
