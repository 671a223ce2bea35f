"""Record batches as data: described for a request, and read from the answer of a Fetch."""

from __future__ import annotations

import struct
from typing import Any, Final

from crc32c import crc32c

from tests.side_by_side.naming import TIMESTAMP, Naming
from txnkafka._core.encode import encode_batch, replace_payload
from txnkafka.record.compression import CompressionType, Compressor

__all__ = ["records_read", "records_written"]

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_PRODUCER: Final = struct.Struct(">qhi")
_CRC: Final = struct.Struct(">I")
_CRC_AT, _ATTRIBUTES_AT, _PRODUCER_AT, _HEADER_SIZE = 17, 21, 43, 61
_TRANSACTIONAL, _CONTROL = 0x10, 0x20


def records_written(batches: list[dict[str, Any]], naming: Naming) -> bytes:
    """The batches one behind the other; ``hex`` has bytes that are none."""
    return b"".join(_batch(each, naming) for each in batches)


def _batch(given: dict[str, Any], naming: Naming) -> bytes:
    if "hex" in given:
        return bytes.fromhex(given["hex"])
    key = given.get("key", "k")
    records = [
        (key and key.encode(), value.encode(), naming.actual_time(given.get("timestamp", TIMESTAMP)))
        for value in given.get("values", ["v"])
    ]
    batch = encode_batch(records)
    if codec := given.get("codec"):
        payload = bytes(Compressor(codec).compress(bytes(batch[_HEADER_SIZE:])))
        batch = replace_payload(batch, payload, codec=CompressionType.named(codec))
    batch[_ATTRIBUTES_AT + 1] |= _TRANSACTIONAL * given.get("transactional", False)
    batch[_ATTRIBUTES_AT + 1] |= _CONTROL * given.get("control", False)
    producer_id = naming.actual_producer(given.get("producer_id", -1))
    producer = producer_id, given.get("producer_epoch", -1), given.get("base_sequence", -1)
    _PRODUCER.pack_into(batch, _PRODUCER_AT, *producer)
    _CRC.pack_into(batch, _CRC_AT, crc32c(bytes(batch[_ATTRIBUTES_AT:])))
    for position, value in given.get("damage", {}).items():
        batch[int(position)] ^= value
    return bytes(batch)


def records_read(data: bytes, naming: Naming) -> list[dict[str, Any]]:
    """The batches of an answer; one that is cut off has only its size."""
    found, position = [], 0
    while position < len(data):
        if len(data) - position < _HEADER_SIZE:
            found.append({"cut": len(data) - position})
            break
        fields = _HEADER.unpack_from(data, position)
        end = position + 12 + fields[1]
        if end > len(data):
            found.append({"cut": len(data) - position})
            break
        found.append(_read(fields, data[position + _HEADER_SIZE : end], naming))
        position = end
    return found


def _read(fields: tuple[int, ...], payload: bytes, naming: Naming) -> dict[str, Any]:
    """The CRC is left out: it follows from the rest."""
    (base_offset, _, leader_epoch, magic, _, attributes, last_delta, first_time, max_time, *producer) = fields
    producer_id, epoch, sequence, count = producer
    return {
        "base_offset": base_offset,
        "leader_epoch": leader_epoch,
        "magic": magic,
        "attributes": attributes,
        "last_offset_delta": last_delta,
        "first_timestamp": naming.time(first_time),
        "max_timestamp": naming.time(max_time),
        "producer_id": naming.producer(producer_id),
        "producer_epoch": epoch,
        "base_sequence": sequence,
        "count": count,
        "records": payload.hex(),
    }
