"""Records of ``__txn_check`` (questions to listeners) and ``__txn_check_max`` (parked halves).

Both topics are txnkafka's own; see ``half_records`` for their format.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from txnkafka.wire.records.half_records import BATCHES, HalfBatch, half_batches
from txnkafka.wire.records.log_record import (
    CoordinatorRecord,
    LogRecord,
    decode_coordinator_record,
    encode_key,
    encode_value,
)
from txnkafka.wire.schema import INT16, INT32, INT64, STRING, Field, Message


class AskRecord(NamedTuple):
    """A question to one listener of a producer group: check number ``ask_no`` of a half, which is at
    ``half_offset`` of partition ``half_partition`` of ``__txn_half``. The answer is a DECIDE record there.

    The same check may be in the topic twice: a resolver that gets no ASKED record for a long time, or that
    starts again, repeats it. Times in milliseconds."""

    producer_group: str
    transaction_id: str
    ask_no: int
    asked_ms: int
    half_partition: int
    half_offset: int
    born_ms: int
    batches: tuple[HalfBatch, ...]

    def encode(self) -> tuple[bytes, bytes]:
        """Return key and value. Raises SchemaError."""
        key = encode_key(_ASK_KEY, 0, {"producer_group": self.producer_group})
        value = {
            "transaction_id": self.transaction_id, "ask_no": self.ask_no, "asked_ms": self.asked_ms,
            "half_partition": self.half_partition, "half_offset": self.half_offset, "born_ms": self.born_ms,
            "batches": [each._asdict() for each in self.batches],
        }  # fmt: skip
        return key, encode_value(ASK, 0, value)


class ParkedRecord(NamedTuple):
    """The copy of a parked half, with the fields of its HALF record, the number of its checks and the
    reason. Both have the same partition number."""

    transaction_id: str
    producer_group: str
    born_ms: int
    immunity_ms: int
    check_max: int
    asks: int
    parked_ms: int
    reason: str
    batches: tuple[HalfBatch, ...]

    def encode(self) -> tuple[bytes, bytes]:
        """Return key and value. Raises SchemaError."""
        fields = self._asdict()
        del fields["transaction_id"]
        fields["batches"] = [each._asdict() for each in self.batches]
        return parked_key(self.transaction_id), encode_value(PARKED, 0, fields)


def parked_key(transaction_id: str) -> bytes:
    """Return the key of a parked half; with a null value it is a tombstone. Raises SchemaError."""
    return encode_key(_PARKED_KEY, 0, {"transaction_id": transaction_id})


def decode_ask_log(key: bytes | None, value: bytes | None) -> LogRecord:
    """Decode a record of ``__txn_check``; never raises, see ``LogRecord.error``."""
    return decode_coordinator_record({0: CoordinatorRecord(_ASK_KEY, ASK)}, key, value)


def ask_record_of(record: LogRecord) -> AskRecord | None:
    """Convert a decoded record; None for one that could not be decoded."""
    if record.error is not None or record.key is None or record.value is None:
        return None
    value = record.value
    return AskRecord(
        record.key["producer_group"], value["transaction_id"], value["ask_no"], value["asked_ms"],
        value["half_partition"], value["half_offset"], value["born_ms"], half_batches(value["batches"]),
    )  # fmt: skip


def decode_parked_log(key: bytes | None, value: bytes | None) -> LogRecord:
    """Decode a record of ``__txn_check_max``; never raises, see ``LogRecord.error``."""
    return decode_coordinator_record({0: CoordinatorRecord(_PARKED_KEY, PARKED)}, key, value)


def parked_record_of(record: LogRecord) -> ParkedRecord | None:
    """Convert a decoded record; None for a tombstone, and for one that could not be decoded."""
    if record.error is not None or record.key is None or record.value is None:
        return None
    value = record.value
    return ParkedRecord(
        record.key["transaction_id"], value["producer_group"], value["born_ms"], value["immunity_ms"],
        value["check_max"], value["asks"], value["parked_ms"], value["reason"],
        half_batches(value["batches"]),
    )  # fmt: skip


_ASK_KEY: Final = Message("ask_key", "0").of(Field("producer_group", STRING))

ASK: Final = Message("ask", "0", flexible="0+").of(
    Field("transaction_id", STRING),
    Field("ask_no", INT16),
    Field("asked_ms", INT64),
    Field("half_partition", INT32),
    Field("half_offset", INT64),
    Field("born_ms", INT64),
    BATCHES,
)

_PARKED_KEY: Final = Message("parked_key", "0").of(Field("transaction_id", STRING))

PARKED: Final = Message("parked", "0", flexible="0+").of(
    Field("producer_group", STRING),
    Field("born_ms", INT64),
    Field("immunity_ms", INT32),
    Field("check_max", INT16),
    Field("asks", INT16),
    Field("parked_ms", INT64),
    Field("reason", STRING),
    BATCHES,
)
