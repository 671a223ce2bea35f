"""The target for records of Kafka's own logs: coordinators, cluster metadata, control records.

Their readers never raise: what cannot be read comes out as bytes beside an error. What was read without an
error can be written, and reads as it was. An input is a byte for the
kind of log, and key and value, each with an i32 length, -1 for null.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from random import Random

from tests.fuzz.engine import Target, require
from tests.fuzz.mutations import boundary_number, put_number, resize_bytes
from txnkafka.errors import CorruptRecordError
from txnkafka.record import parse_control_key, parse_end_txn_marker
from txnkafka.wire.records import (
    GroupOffset,
    LogRecord,
    TransactionMetadata,
    decode_control_body,
    decode_group_log,
    decode_metadata,
    decode_transaction_log,
    encode_group_log,
    encode_metadata,
    encode_transaction_key,
    encode_transaction_value,
)

__all__ = ["LOG_RECORD", "packed", "unpacked"]

# What a record shows may not be much larger than what it is: hostile lengths make nothing.
LARGEST_GROWTH, CONSTANT_SIZE = 300, 4000


def packed(kind: int, key: bytes | None, value: bytes | None) -> bytes:
    """An input."""
    return bytes([kind]) + b"".join(
        struct.pack(">i", -1 if part is None else len(part)) + (part or b"") for part in (key, value)
    )


def unpacked(content: bytes) -> tuple[int, bytes | None, bytes | None]:
    """Kind, key and value; lengths that do not fit are those of what is there."""
    parts: list[bytes | None] = []
    position = 1
    for _ in range(2):
        length = int.from_bytes(content[position : position + 4].ljust(4, b"\0"), "big", signed=True)
        position += 4
        parts.append(None if length < 0 else content[position : position + length])
        position += max(length, 0)
    return (content[0] if content else 0) % len(KINDS), parts[0], parts[1]


def mutate_record(random: Random, content: bytes, pool: Sequence[bytes]) -> bytes:
    """Key or value, but mostly inside what their version says."""
    kind, *parts = unpacked(content)
    place = random.randrange(2) if random.random() < 0.4 else 1
    part = parts[place]
    choice = random.random()
    if part is None or choice < 0.03:
        parts[place] = unpacked(random.choice(pool))[1 + place] if part is None else None
    elif choice < 0.15:
        parts[place] = put_number(random, part, (0, 2))
    elif choice < 0.3 and len(part) > 3:  # a length of a compact string or array
        at = random.randrange(len(part))
        parts[place] = part[:at] + _uvarint(boundary_number(random, 4)) + part[at + random.randint(0, 2) :]
    else:
        parts[place] = resize_bytes(random, part)
    if random.random() < 0.03:
        kind = random.randrange(len(KINDS))
    return packed(kind, *parts)


def _uvarint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def check_record(content: bytes) -> str:
    """Nothing raises, everything can be shown, and what is shown is bounded by what was there."""
    kind, key, value = unpacked(content)
    record = KINDS[kind](key, value)
    shown = json.dumps(record.as_dict(), allow_nan=False)
    bound = CONSTANT_SIZE + LARGEST_GROWTH * len(content)
    assert len(shown) <= bound, f"{len(content)} bytes become {len(shown)}"
    assert record.error or record.raw_key is record.raw_value is None
    outcome = "refused" if record.error else "accepted"
    return f"{outcome}: {kind} {record.type} {record.value_version} {_where(record)}"


def _where(record: LogRecord) -> str:
    """Which field an error is about: a new one is worth going on from."""
    return "".join(c for c in (record.error or "")[:50] if not c.isdigit() and c != "-")


def _transaction(key: bytes | None, value: bytes | None) -> LogRecord:
    record = decode_transaction_log(key, value)
    metadata = TransactionMetadata.of(record)
    assert metadata is None or record.value is not None
    if metadata is not None and record.error is None:
        assert encode_transaction_key(metadata.transactional_id) == key
        again = decode_transaction_log(key, encode_transaction_value(metadata, record.value_version or 0))
        assert TransactionMetadata.of(again) == metadata
    return record


def _group(key: bytes | None, value: bytes | None) -> LogRecord:
    record = decode_group_log(key, value)
    committed = GroupOffset.of(record)
    assert committed is None or record.type == "offset_commit"
    # of consumers' groups the members are shown as fields, which are not written
    if record.error is None and (record.value or {}).get("protocol_type") != "consumer":
        assert decode_group_log(*encode_group_log(record)).as_dict() == record.as_dict()
    return record


def _metadata(key: bytes | None, value: bytes | None) -> LogRecord:
    record = decode_metadata(value)
    if record.error is None:
        assert decode_metadata(encode_metadata(record)).as_dict() == record.as_dict()
    return record


def _control(key: bytes | None, value: bytes | None) -> LogRecord:
    for parse in (lambda: parse_control_key(key), lambda: parse_end_txn_marker(key, value)):
        try:
            parse()
        except CorruptRecordError as error:
            require(error.reason, "an error without words")
    return decode_control_body(int.from_bytes((key or b"")[2:4], "big", signed=True), value)


Decode = Callable[[bytes | None, bytes | None], LogRecord]
KINDS: Sequence[Decode] = (_transaction, _group, _metadata, _control)

LOG_RECORD = Target("log-record", check_record, mutate_record, iterations=6000)
