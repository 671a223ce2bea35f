"""The bytes of a record of ``__transaction_state``; a transaction of one partition writes three records.

They are packed field by field, in the order of the tables KEY and VALUE of ``transaction_log``, which read
them: a transaction would take twice the time through dictionaries and the generic writer. Version 1 of the
value is flexible: its counts and lengths are varints, greater by one, and tagged fields that do not have
their defaults are at the end of each struct.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from reprlib import repr as short_repr
from typing import Final

from txnkafka._core.message_table import MAX_STRING_BYTES, misfit
from txnkafka.bounds import MAX_SCHEMA_VALUES
from txnkafka.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from txnkafka.wire.reader import read_message
from txnkafka.wire.records.transaction_log import (
    KEY_TYPE,
    LAST_PRODUCER_EPOCH_TAG,
    VALUE,
    TransactionMetadata,
    TransactionState,
)
from txnkafka.wire.scalars import write_uvarint
from txnkafka.wire.schema import SchemaError
from txnkafka.wire.writer import SURELY_READABLE

EMPTY: Final = TransactionState.EMPTY
MOST_REMEMBERED: Final = 8  # partitions of a set whose bytes are remembered

pack_key: Final = struct.Struct(">hh").pack  # type, length of the transactional id
pack_head: Final = struct.Struct(">hqhib").pack  # version, producer id, epoch, timeout, state
pack_times: Final = struct.Struct(">qq").pack
pack_tagged_int16: Final = struct.Struct(">BBh").pack  # tag, size
pack_tagged_int64: Final = struct.Struct(">BBq").pack
COUNTS: Final = (b"\0", b"\1", b"\2", b"\3", b"\4", b"\5")  # of tagged fields

NUMBERS: Final = {
    "producer_id": ("producer_id", "int64", ">q"),
    "producer_epoch": ("producer_epoch", "int16", ">h"),
    "transaction_timeout_ms": ("transaction_timeout_ms", "int32", ">i"),
    "transaction_status": ("state", "int8", ">b"),
    "transaction_last_update_timestamp_ms": ("last_update_timestamp", "int64", ">q"),
    "transaction_start_timestamp_ms": ("start_timestamp", "int64", ">q"),
    "previous_producer_id": ("previous_producer_id", "int64", ">q"),
    "next_producer_id": ("next_producer_id", "int64", ">q"),
    "client_transaction_version": ("client_transaction_version", "int16", ">h"),
    "next_producer_epoch": ("next_producer_epoch", "int16", ">h"),
    "last_producer_epoch": ("last_producer_epoch", "int16", ">h"),
}
"""The field, its type and its layout, by its name in the log, in the order of the bytes."""


def encode_transaction_key(transactional_id: str) -> bytes:
    """Return the key of a transactional id; with a null value it is a tombstone. Raises SchemaError."""
    try:
        data = _text(transactional_id)
    except SchemaError as error:
        raise error.inside("transactional_id").inside("key") from None
    return pack_key(KEY_TYPE, len(data)) + data


def encode_transaction_value(metadata: TransactionMetadata, version: int) -> bytes:
    """Return the state as the value for its key (``TransactionLog.valueToBytes``); partitions are sorted. As
    in Kafka, version 0 omits previous and next producer ids and the last epoch, and is refused for a client
    of a later transaction version. Raises SchemaError."""
    (
        _, producer_id, previous_id, next_id, epoch, next_epoch, timeout, state, partitions, updated, started,
        client_version, last_epoch,
    ) = metadata  # fmt: skip
    if state == EMPTY and partitions:
        raise SchemaError("there are some in state Empty").inside("topic_partitions")
    try:
        if version != 1 and (version or client_version):
            raise _wrong_version(version)
        head = pack_head(version, producer_id, epoch, timeout, state)
        if state == EMPTY:
            middle = NULL[version]
        elif len(partitions) <= MOST_REMEMBERED:
            middle = _remembered(partitions, version)
        else:
            middle = _partitions(partitions, version)
        data = head + middle + pack_times(updated, started)
        if version:
            data += _tagged(previous_id, next_id, client_version, next_epoch, last_epoch)
        if len(data) > SURELY_READABLE:
            read_message(VALUE, version, data[2:])
    except SchemaError as error:
        raise error.inside("value") from None
    except (struct.error, OverflowError):
        raise _wrong_number(metadata).inside("value") from None
    return data


def _wrong_version(version: int) -> SchemaError:
    if not version:
        return SchemaError("this version has no such field").inside("client_transaction_version")
    return SchemaError(f"{VALUE.name} version {version} is not known (known: {VALUE.versions})")


def _tagged(previous_id: int, next_id: int, client_version: int, next_epoch: int, last_epoch: int) -> bytes:
    """Return the tagged fields of version 1; only this package writes the last one."""
    count, data = 0, b""
    if previous_id != NO_PRODUCER_ID:
        count, data = 1, pack_tagged_int64(0, 8, previous_id)
    if next_id != NO_PRODUCER_ID:
        count, data = count + 1, data + pack_tagged_int64(1, 8, next_id)
    if client_version != 0:
        count, data = count + 1, data + pack_tagged_int16(2, 2, client_version)
    if next_epoch != NO_PRODUCER_EPOCH:
        count, data = count + 1, data + pack_tagged_int16(3, 2, next_epoch)
    if last_epoch != NO_PRODUCER_EPOCH:
        count, data = count + 1, data + pack_tagged_int16(LAST_PRODUCER_EPOCH_TAG, 2, last_epoch)
    return COUNTS[count] + data


def _partitions(partitions: frozenset[TopicPartition], version: int) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    write_count, write_length, no_tags = LAYOUTS[version]
    out = bytearray()
    write_count(out, len(by_topic))
    for index, (topic, numbers) in enumerate(by_topic.items()):
        try:
            data = _text(topic)
        except SchemaError as error:
            raise error.inside("topic").inside(f"[{index}]").inside("transaction_partitions") from None
        write_length(out, len(data))
        out += data
        _write_numbers(out, write_count, numbers, index)
        out += no_tags
    return bytes(out)


def _write_numbers(
    out: bytearray, write_count: Callable[[bytearray, int], None], numbers: list[int], index: int
) -> None:
    if len(numbers) > MAX_SCHEMA_VALUES:
        wrong = SchemaError(f"{len(numbers)} elements, a record has at most {MAX_SCHEMA_VALUES} values")
        raise wrong.inside("partition_ids").inside(f"[{index}]").inside("transaction_partitions")
    write_count(out, len(numbers))
    try:
        out += struct.pack(f">{len(numbers)}i", *numbers)
    except (struct.error, OverflowError):
        place, number = next(each for each in enumerate(numbers) if not _fits(">i", each[1]))
        wrong = misfit("int32", number).inside(f"[{place}]").inside("partition_ids")
        raise wrong.inside(f"[{index}]").inside("transaction_partitions") from None


_remembered = lru_cache(1_024)(_partitions)  # a producer's next transaction often has the same partitions


def _text(value: str) -> bytes:
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise SchemaError(f"{short_repr(value)} has a lone surrogate, which UTF-8 cannot encode") from None
    if len(data) > MAX_STRING_BYTES:
        raise SchemaError(f"string has {len(data)} bytes, more than {MAX_STRING_BYTES}")
    return data


def _wrong_number(metadata: TransactionMetadata) -> SchemaError:
    for name, (field, kind, layout) in NUMBERS.items():
        number = getattr(metadata, field)
        if not _fits(layout, number):
            return misfit(kind, number).inside(name)
    raise AssertionError("unreachable: each number fits")


def _fits(layout: str, number: object) -> bool:
    try:
        struct.pack(layout, number)
    except (struct.error, OverflowError):
        return False
    return True


def _plain_count(out: bytearray, count: int) -> None:
    out += count.to_bytes(4, "big")


def _plain_length(out: bytearray, length: int) -> None:
    out += length.to_bytes(2, "big")


def _compact(out: bytearray, count: int) -> None:
    write_uvarint(out, count + 1)


NULL: Final = (b"\xff\xff\xff\xff", b"\0")  # instead of an array, by version
LAYOUTS: Final = ((_plain_count, _plain_length, b""), (_compact, _compact, b"\0"))
