"""Records of ``__consumer_offsets``: committed offsets and consumer groups.

The type of a record is the version of its key; keys are never flexible.  Offsets committed in a transaction
are in transactional batches and count when their producer id gets a COMMIT marker; the record itself does not
show that. Types 9 to 15 and above 16 belong to share and streams groups and are decoded as ``unknown``
(``CoordinatorRecordType`` of the group coordinator, KIP-848 for types 3 to 8 and 16).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from txnkafka.model import NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP
from txnkafka.wire.records.consumer_protocol import PROTOCOL_TYPE, decode_assignment, decode_subscription
from txnkafka.wire.records.log_record import (
    CoordinatorRecord,
    LogRecord,
    decode_coordinator_record,
    encode_coordinator_record,
    encode_key,
    encode_value,
)
from txnkafka.wire.schema import (
    BYTES,
    INT8,
    INT32,
    INT64,
    STRING,
    UUID,
    ZERO_UUID,
    Array,
    Field,
    Message,
    Struct,
)


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """An offset that a group committed for a partition; ``offset`` is the next one to read."""

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: str | None

    @classmethod
    def of(cls, record: LogRecord) -> GroupOffset | None:
        """Convert a decoded record; None for a tombstone, another type, and a record that could not be
        decoded."""
        if record.type != OFFSET_COMMIT_TYPE or record.key is None or record.value is None:
            return None
        value = record.value
        topic_id = value.get("topic_id", ZERO_UUID)
        return cls(
            group=record.key["group"],
            topic=record.key["topic"],
            partition=record.key["partition"],
            offset=value["offset"],
            leader_epoch=value.get("leader_epoch", NO_PARTITION_LEADER_EPOCH),
            metadata=value["metadata"],
            commit_timestamp=value["commit_timestamp"],
            expire_timestamp=value.get("expire_timestamp", NO_TIMESTAMP),
            topic_id=None if topic_id == ZERO_UUID else topic_id,
        )


def decode_group_log(key: bytes | None, value: bytes | None) -> LogRecord:
    """Decode a record of ``__consumer_offsets``; never raises, see ``LogRecord.error``.

    In groups of consumers each member's ``subscription`` and ``assignment`` are decoded to fields if
    possible."""
    record = decode_coordinator_record(TYPES, key, value)
    if record.value is not None and record.value.get("protocol_type") == PROTOCOL_TYPE:
        for member in record.value["members"]:
            _show_member(member)
    return record


def encode_group_log(record: LogRecord) -> tuple[bytes, bytes | None]:
    """Return key and value, the inverse of ``decode_group_log``; ``subscription`` and ``assignment`` of
    members are bytes. Raises SchemaError."""
    return encode_coordinator_record(TYPES, record)


def encode_offset_commit_key(group: str, topic: str, partition: int) -> bytes:
    """Return the key of a group's offset; with a null value it is a tombstone. Raises SchemaError."""
    fields = {"group": group, "topic": topic, "partition": partition}
    return encode_key(_OFFSET_COMMIT_KEY, OFFSET_COMMIT_KEY_TYPE, fields)


def encode_offset_commit_value(committed: GroupOffset) -> bytes:
    """Return the value for ``encode_offset_commit_key``. The version is 1, without leader epoch and topic id,
    for an offset with an explicit expiry time, else 4 (``newOffsetCommitRecord`` of Kafka 4.3). Raises
    SchemaError."""
    fields: dict[str, Any] = {
        "offset": committed.offset,
        "metadata": committed.metadata,
        "commit_timestamp": committed.commit_timestamp,
    }
    if committed.expire_timestamp != NO_TIMESTAMP:
        fields["expire_timestamp"] = committed.expire_timestamp
        return encode_value(_OFFSET_COMMIT, 1, fields)
    fields["leader_epoch"] = committed.leader_epoch
    fields["topic_id"] = ZERO_UUID if committed.topic_id is None else committed.topic_id
    return encode_value(_OFFSET_COMMIT, 4, fields)


def decode_group(key: bytes, value: bytes | None) -> tuple[str, dict[str, Any] | None] | None:
    """Decode the record of a classic group: its id, and its fields or None for a tombstone, with
    ``subscription`` and ``assignment`` as bytes. None for any other record, and a damaged one."""
    record = decode_coordinator_record(TYPES, key, value)
    if record.type != _CLASSIC_GROUP.name or record.key is None or record.error is not None:
        return None
    return record.key["group"], record.value


def encode_group_key(group: str) -> bytes:
    """Return the key of a classic group; with a null value it is a tombstone. Raises SchemaError."""
    return encode_key(_CLASSIC_GROUP_KEY, GROUP_KEY_TYPE, {"group": group})


def encode_group_value(fields: dict[str, Any]) -> bytes:
    """Return the value of a classic group in version 3, as Kafka 4.3 writes it. Raises SchemaError."""
    return encode_value(_CLASSIC_GROUP, 3, fields)


def encode_consumer_record(
    kind: ConsumerRecordType, group: str, name: str | None = None, fields: dict[str, Any] | None = None
) -> tuple[bytes, bytes | None]:
    """Return key and value of a record of a consumer group, without ``fields`` a tombstone. ``name`` is the
    member's id, or the pattern. Raises SchemaError."""
    keys = {"group_id": group}
    if name is not None:
        is_regex = kind is ConsumerRecordType.REGULAR_EXPRESSION
        keys["regular_expression" if is_regex else "member_id"] = name
    key = encode_key(TYPES[kind].key, kind, keys)
    return key, None if fields is None else encode_value(TYPES[kind].value, 0, fields)


def decode_consumer_record(
    key: bytes, value: bytes | None
) -> tuple[ConsumerRecordType, str, str, dict[str, Any] | None] | None:
    """Decode a record of a consumer group: its kind, the group, the member's id or the pattern, and its
    fields or None for a tombstone. None for any other record, and a damaged one."""
    record = decode_coordinator_record(TYPES, key, value)
    kind = next((each for each in ConsumerRecordType if each == record.key_version), None)
    if kind is None or record.key is None or record.error is not None:
        return None
    name = record.key.get("member_id") or record.key.get("regular_expression") or ""
    return kind, record.key["group_id"], name, record.value


def _show_member(member: dict[str, Any]) -> None:
    for name, decode in (("subscription", decode_subscription), ("assignment", decode_assignment)):
        fields = decode(member[name])
        if fields is not None:
            member[name] = fields


class ConsumerRecordType(IntEnum):
    """The records of a consumer group, by the versions of their keys."""

    GROUP = 3
    PARTITION_METADATA = 4
    MEMBER = 5
    TARGET_ASSIGNMENT = 6
    TARGET_ASSIGNMENT_MEMBER = 7
    CURRENT_ASSIGNMENT = 8
    REGULAR_EXPRESSION = 16


OFFSET_COMMIT_TYPE: Final = "offset_commit"
OFFSET_COMMIT_KEY_TYPE: Final = 1
GROUP_KEY_TYPE: Final = 2

_OFFSET_COMMIT: Final = Message(OFFSET_COMMIT_TYPE, "0-4", flexible="4+").of(
    Field("offset", INT64),
    Field("leader_epoch", INT32, "3+", default=-1),
    Field("metadata", STRING),
    Field("commit_timestamp", INT64),
    Field("expire_timestamp", INT64, "1", default=-1),
    Field("topic_id", UUID, "4+", tag=0),
)

# In 0.8.2 key and value had one version number, so a key of type 0 has a value of version 0.
_LEGACY_OFFSET_COMMIT: Final = Message(OFFSET_COMMIT_TYPE, "0").of(
    Field("offset", INT64),
    Field("metadata", STRING),
    Field("commit_timestamp", INT64),
)

_CLASSIC_MEMBERS: Final = Array.of(
    Field("member_id", STRING),
    Field("group_instance_id", STRING, "3+", nullable="0+", default=None),
    Field("client_id", STRING),
    Field("client_host", STRING),
    Field("rebalance_timeout", INT32, "1+", default=-1),
    Field("session_timeout", INT32),
    Field("subscription", BYTES),
    Field("assignment", BYTES),
)

_CLASSIC_GROUP: Final = Message("group_metadata", "0-4", flexible="4+").of(
    Field("protocol_type", STRING),
    Field("generation", INT32),
    Field("protocol", STRING, nullable="0+"),
    Field("leader", STRING, nullable="0+"),
    Field("current_state_timestamp", INT64, "2+", default=-1),
    Field("members", _CLASSIC_MEMBERS),
)

_GROUP: Final = Message("consumer_group_metadata", "0", flexible="0+").of(
    Field("epoch", INT32),
    Field("metadata_hash", INT64, tag=0),
)

_PARTITION_RACKS: Final = Array.of(
    Field("partition", INT32),
    Field("racks", Array(STRING)),
)

_TOPICS: Final = Array.of(
    Field("topic_id", UUID),
    Field("topic_name", STRING),
    Field("num_partitions", INT32),
    Field("partition_metadata", _PARTITION_RACKS),
)

# No longer written; old logs contain it, newer ones its tombstones.
_PARTITIONS: Final = Message("consumer_group_partition_metadata", "0", flexible="0+").of(
    Field("topics", _TOPICS),
)

_CLASSIC_PROTOCOLS: Final = Array.of(
    Field("name", STRING),
    Field("metadata", BYTES),
)

_CLASSIC_MEMBER: Final = Struct.of(
    Field("session_timeout_ms", INT32),
    Field("supported_protocols", _CLASSIC_PROTOCOLS),
)

_MEMBER: Final = Message("consumer_group_member_metadata", "0", flexible="0+").of(
    Field("instance_id", STRING, nullable="0+"),
    Field("rack_id", STRING, nullable="0+"),
    Field("client_id", STRING),
    Field("client_host", STRING),
    Field("subscribed_topic_names", Array(STRING)),
    Field("subscribed_topic_regex", STRING, nullable="0+"),
    Field("rebalance_timeout_ms", INT32, default=-1),
    Field("server_assignor", STRING, nullable="0+"),
    Field("classic_member_metadata", _CLASSIC_MEMBER, tag=0, nullable="0+"),
)

_TARGET_ASSIGNMENT: Final = Message("consumer_group_target_assignment_metadata", "0", flexible="0+").of(
    Field("assignment_epoch", INT32),
    Field("assignment_timestamp", INT64, tag=0),
)

_TARGET_PARTITIONS: Final = Array.of(
    Field("topic_id", UUID),
    Field("partitions", Array(INT32)),
)

_TARGET_MEMBER: Final = Message("consumer_group_target_assignment_member", "0", flexible="0+").of(
    Field("topic_partitions", _TARGET_PARTITIONS),
)

_OWNED_PARTITIONS: Final = Array.of(
    Field("topic_id", UUID),
    Field("partitions", Array(INT32)),
    Field("assignment_epochs", Array(INT32), tag=0, nullable="0+"),
)

_CURRENT_MEMBER: Final = Message("consumer_group_current_member_assignment", "0", flexible="0+").of(
    Field("member_epoch", INT32),
    Field("previous_member_epoch", INT32),
    Field("state", INT8),
    Field("assigned_partitions", _OWNED_PARTITIONS),
    Field("partitions_pending_revocation", _OWNED_PARTITIONS),
)

_REGULAR_EXPRESSION: Final = Message("consumer_group_regular_expression", "0", flexible="0+").of(
    Field("topics", Array(STRING)),
    Field("version", INT64),
    Field("timestamp", INT64),
)

_OFFSET_COMMIT_KEY: Final = Message("offset_commit_key", "0").of(
    Field("group", STRING),
    Field("topic", STRING),
    Field("partition", INT32),
)

_REGULAR_EXPRESSION_KEY: Final = Message("consumer_group_regular_expression_key", "0").of(
    Field("group_id", STRING),
    Field("regular_expression", STRING),
)

_MEMBER_KEY: Final = Message("member_key", "0").of(
    Field("group_id", STRING),
    Field("member_id", STRING),
)

_GROUP_KEY: Final = Message("group_key", "0").of(Field("group_id", STRING))

_CLASSIC_GROUP_KEY: Final = Message("group_metadata_key", "0").of(Field("group", STRING))

TYPES: Final = {
    0: CoordinatorRecord(_OFFSET_COMMIT_KEY, _LEGACY_OFFSET_COMMIT),
    OFFSET_COMMIT_KEY_TYPE: CoordinatorRecord(_OFFSET_COMMIT_KEY, _OFFSET_COMMIT),
    GROUP_KEY_TYPE: CoordinatorRecord(_CLASSIC_GROUP_KEY, _CLASSIC_GROUP),
    3: CoordinatorRecord(_GROUP_KEY, _GROUP),
    4: CoordinatorRecord(_GROUP_KEY, _PARTITIONS),
    5: CoordinatorRecord(_MEMBER_KEY, _MEMBER),
    6: CoordinatorRecord(_GROUP_KEY, _TARGET_ASSIGNMENT),
    7: CoordinatorRecord(_MEMBER_KEY, _TARGET_MEMBER),
    8: CoordinatorRecord(_MEMBER_KEY, _CURRENT_MEMBER),
    16: CoordinatorRecord(_REGULAR_EXPRESSION_KEY, _REGULAR_EXPRESSION),
}
