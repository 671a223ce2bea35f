"""Records of ``__txn_half``: transactional messages that wait for a decision ("halves"), and their decisions.

The topic is txnkafka's own, not Kafka's. As in the logs of Kafka's coordinators the version of the key is the
type of the record, and each value begins with the version of its fields. Values are flexible (KIP-482), so
that later versions can add tagged fields.

The log is the arbiter of decisions: of several DECIDE records the first one in offset order counts.
Compaction keeps the last record of a key, therefore each HALF and DECIDE has a random nonce in its key, which
keeps the first one until the owner of the partition writes END and tombstones.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

from txnkafka.wire.records.log_record import (
    CoordinatorRecord,
    LogRecord,
    decode_coordinator_record,
    encode_key,
    encode_value,
)
from txnkafka.wire.schema import BYTES, INT8, INT16, INT32, INT64, STRING, Array, Field, Message


class HalfRecordType(enum.IntEnum):
    """The types of records, which are the versions of their keys."""

    HALF = 0
    DECIDE = 1
    ASKED = 2
    END = 3


class Outcome(enum.IntEnum):
    """The outcome of a decision, with the numbers 1 to 4 in the log. A half ends with COMMIT, ROLLBACK or
    PARK; RESUME takes a parked half back to the beginning."""

    COMMIT = enum.auto()
    ROLLBACK = enum.auto()
    PARK = enum.auto()
    RESUME = enum.auto()


class DecidedBy(enum.IntEnum):
    """The author of a decision: the producer itself, the answer to a check, an administrator, or the policy
    of the resolver for undecided messages."""

    PRODUCER = 0
    CHECK = 1
    ADMIN = 2
    POLICY = 3


class HalfBatch(NamedTuple):
    """One finished record batch of magic 2 for a partition, in the producer's codec."""

    topic: str
    partition: int
    records: bytes


class HalfRecord(NamedTuple):
    """HALF: messages that become visible together after a commit. Times in milliseconds. ``immunity_ms`` is
    the age at the first check and ``check_max`` the number of checks, -1 for the resolver's settings."""

    transaction_id: str
    nonce: int
    producer_group: str
    born_ms: int
    batches: tuple[HalfBatch, ...]
    immunity_ms: int = -1
    check_max: int = -1

    def encode(self) -> tuple[bytes, bytes]:
        """Return key and value. Raises SchemaError."""
        value = {
            "producer_group": self.producer_group, "born_ms": self.born_ms, "immunity_ms": self.immunity_ms,
            "check_max": self.check_max, "batches": [each._asdict() for each in self.batches],
        }  # fmt: skip
        return half_key(HalfRecordType.HALF, self.transaction_id, self.nonce), encode_value(HALF, 0, value)


class DecideRecord(NamedTuple):
    """DECIDE: a decision about a half, valid if it is the first one. ``ask_no`` is the number of the check
    that it answers, 0 without one; ``remark`` is text for people."""

    transaction_id: str
    nonce: int
    producer_group: str
    outcome: Outcome
    by: DecidedBy
    at_ms: int
    ask_no: int = 0
    remark: str | None = None

    def encode(self) -> tuple[bytes, bytes]:
        """Return key and value. Raises SchemaError."""
        value = {
            "producer_group": self.producer_group, "outcome": self.outcome, "by": self.by,
            "ask_no": self.ask_no, "at_ms": self.at_ms, "remark": self.remark,
        }  # fmt: skip
        return half_key(HalfRecordType.DECIDE, self.transaction_id, self.nonce), encode_value(
            DECIDE, 0, value
        )


class AskedRecord(NamedTuple):
    """ASKED: a listener was asked, and this was check number ``asks`` of the half."""

    transaction_id: str
    asks: int
    last_ms: int
    listener: str

    def encode(self) -> tuple[bytes, bytes]:
        """Return key and value. Raises SchemaError."""
        value = {"asks": self.asks, "last_ms": self.last_ms, "listener": self.listener}
        return half_key(HalfRecordType.ASKED, self.transaction_id), encode_value(ASKED, 0, value)


class EndRecord(NamedTuple):
    """END: the outcome was carried out, in the same transaction. ``placed`` has the topic and partition of
    each batch that became visible; ``remark`` is the reason of a parked half."""

    transaction_id: str
    producer_group: str
    outcome: Outcome
    by: DecidedBy
    at_ms: int
    asks: int = 0
    placed: tuple[tuple[str, int], ...] = ()
    remark: str | None = None

    def encode(self) -> tuple[bytes, bytes]:
        """Return key and value. Raises SchemaError."""
        placed = [{"topic": topic, "partition": partition} for topic, partition in self.placed]
        value = {
            "producer_group": self.producer_group, "outcome": self.outcome, "by": self.by,
            "at_ms": self.at_ms, "asks": self.asks, "placed": placed, "remark": self.remark,
        }  # fmt: skip
        return half_key(HalfRecordType.END, self.transaction_id), encode_value(END, 0, value)


class HalfTombstone(NamedTuple):
    """A tombstone of one of the records; the ``nonce`` of ASKED and END is 0."""

    type: HalfRecordType
    transaction_id: str
    nonce: int = 0

    def encode(self) -> tuple[bytes, None]:
        """Return the key, and no value. Raises SchemaError."""
        return half_key(self.type, self.transaction_id, self.nonce), None


HalfLogRecord: TypeAlias = HalfRecord | DecideRecord | AskedRecord | EndRecord | HalfTombstone


def half_key(kind: HalfRecordType, transaction_id: str, nonce: int = 0) -> bytes:
    """Return the key of a record. Raises SchemaError."""
    fields: dict[str, Any] = {"transaction_id": transaction_id}
    if kind in (HalfRecordType.HALF, HalfRecordType.DECIDE):
        fields["nonce"] = nonce
    return encode_key(TYPES[kind].key, kind, fields)


def decode_half_log(key: bytes | None, value: bytes | None) -> LogRecord:
    """Decode a record of ``__txn_half``; never raises, see ``LogRecord.error``."""
    record = decode_coordinator_record(TYPES, key, value)
    strange = _strange(record.value) if record.value is not None and record.error is None else None
    return record if strange is None else replace(record, error=strange, raw_value=value)


def half_record_of(record: LogRecord) -> HalfLogRecord | None:
    """Convert a decoded record; None for one that could not be decoded."""
    if record.error is not None or record.key is None or record.key_version not in TYPES:
        return None
    kind = HalfRecordType(record.key_version)
    transaction_id = record.key["transaction_id"]
    nonce = record.key.get("nonce", 0)
    value = record.value
    if value is None:
        return HalfTombstone(kind, transaction_id, nonce)
    if kind is HalfRecordType.HALF:
        return HalfRecord(
            transaction_id, nonce, value["producer_group"], value["born_ms"],
            half_batches(value["batches"]), value["immunity_ms"], value["check_max"],
        )  # fmt: skip
    if kind is HalfRecordType.DECIDE:
        return DecideRecord(
            transaction_id, nonce, value["producer_group"], Outcome(value["outcome"]),
            DecidedBy(value["by"]), value["at_ms"], value["ask_no"], value["remark"],
        )  # fmt: skip
    if kind is HalfRecordType.ASKED:
        return AskedRecord(transaction_id, value["asks"], value["last_ms"], value["listener"])
    placed = tuple((each["topic"], each["partition"]) for each in value["placed"])
    return EndRecord(
        transaction_id, value["producer_group"], Outcome(value["outcome"]), DecidedBy(value["by"]),
        value["at_ms"], value["asks"], placed, value["remark"],
    )  # fmt: skip


def half_batches(rows: list[dict[str, Any]]) -> tuple[HalfBatch, ...]:
    """Convert the decoded field ``batches``."""
    return tuple(HalfBatch(each["topic"], each["partition"], bytes(each["records"])) for each in rows)


def _strange(value: Mapping[str, Any]) -> str | None:
    """Return the reason why a value is not used although its fields could be read, or None."""
    for name, kind in (("outcome", Outcome), ("by", DecidedBy)):
        number = value.get(name)
        if number is not None and number not in kind.__members__.values():
            return f"value: {name} {number} is not known"
    return None


BATCHES: Final = Field(
    "batches",
    Array.of(
        Field("topic", STRING),
        Field("partition", INT32),
        Field("records", BYTES),
    ),
)

HALF: Final = Message("half", "0", flexible="0+").of(
    Field("producer_group", STRING),
    Field("born_ms", INT64),
    Field("immunity_ms", INT32),
    Field("check_max", INT16),
    BATCHES,
)

DECIDE: Final = Message("decide", "0", flexible="0+").of(
    Field("producer_group", STRING),
    Field("outcome", INT8),
    Field("by", INT8),
    Field("ask_no", INT16),
    Field("at_ms", INT64),
    Field("remark", STRING, nullable="0+"),
)

ASKED: Final = Message("asked", "0", flexible="0+").of(
    Field("asks", INT16),
    Field("last_ms", INT64),
    Field("listener", STRING),
)

END: Final = Message("end", "0", flexible="0+").of(
    Field("producer_group", STRING),
    Field("outcome", INT8),
    Field("by", INT8),
    Field("at_ms", INT64),
    Field("asks", INT16),
    Field("placed", Array.of(Field("topic", STRING), Field("partition", INT32))),
    Field("remark", STRING, nullable="0+"),
)

_ID: Final = Field("transaction_id", STRING)
_NONCE: Final = Field("nonce", INT64)

TYPES: Final = {
    HalfRecordType.HALF.value: CoordinatorRecord(Message("half_key", "0").of(_ID, _NONCE), HALF),
    HalfRecordType.DECIDE.value: CoordinatorRecord(Message("decide_key", "0").of(_ID, _NONCE), DECIDE),
    HalfRecordType.ASKED.value: CoordinatorRecord(Message("asked_key", "0").of(_ID), ASKED),
    HalfRecordType.END.value: CoordinatorRecord(Message("end_key", "0").of(_ID), END),
}
