"""The constants of the batch header: equal in Python and in compiled code, and true of batches that models
write."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from tests.models.builder import Batch, PlainRecord, end_marker, legacy_entry
from txnkafka._core import read_committed
from txnkafka._core.scan import scan
from txnkafka._core.validate import read_batch
from txnkafka.record import batch_header
from txnkafka.record.batch_header import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    ATTRIBUTES,
    BATCH_LENGTH,
    CONTROL_ABORT,
    CONTROL_COMMIT,
    CRC,
    HEADER_SIZE,
    LEGACY_ATTRIBUTES,
    LEGACY_CRC,
    LEGACY_KEY_0,
    LEGACY_KEY_1,
    LEGACY_TIMESTAMP,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_0,
    MAGIC_1,
    MAGIC_2,
    MIN_FRAME,
    MIN_SIZE_0,
    MIN_SIZE_1,
    MIN_SIZE_2,
    NO_CONTROL_TYPE,
    PARTITION_LEADER_EPOCH,
    UNKNOWN_MAGIC,
    HeaderFields,
    header_fields,
)
from txnkafka.record.control import ControlRecordType

CORE = Path(batch_header.__file__).parent.parent / "_core"
RECORD = PlainRecord(b"k", b"v", 7)
# no two bytes of the header are equal, except in formats and lengths
FULL = Batch(
    records=[RECORD],
    base_offset=0x0102030405060708,
    partition_leader_epoch=0x11121314,
    transactional=True,
    last_offset_delta=0x15161718,
    base_timestamp=0x2122232425262728,
    max_timestamp=0x3132333435363738,
    producer_id=0x4142434445464748,
    producer_epoch=0x5152,
    base_sequence=0x61626364,
    count=0x71727374,
)
WRITTEN = FULL.encode()
FIELDS = HeaderFields(
    FULL.base_offset,
    len(WRITTEN) - 12,
    FULL.partition_leader_epoch,
    2,
    crc32c(WRITTEN[21:]),
    0x10,
    0x15161718,
    0x2122232425262728,
    0x3132333435363738,
    FULL.producer_id,
    FULL.producer_epoch,
    FULL.base_sequence,
    0x71727374,
)


def enum_values(path: Path) -> dict[str, int]:
    """Return every name that a ``.pxd`` file assigns a number; the compiler gets it only from there."""
    found = re.findall(r"^    (\w+) = (\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: int(value, 0) for name, value in found}


def table() -> list[tuple[int, int, str]]:
    """Return position, size and name of each field from the drawing in the docstring."""
    rows = re.findall(r"^ +(\d+) +(\d+)  (\w+)", batch_header.__doc__ or "", re.MULTILINE)
    return [(int(position), int(size), name) for position, size, name in rows]


def test_compiled_code_has_the_same_names_and_values() -> None:
    facts = {name: value for name, value in vars(batch_header).items() if type(value) is int}
    assert enum_values(CORE / "batch_header.pxd") == facts


def test_python_finds_what_a_selection_says() -> None:
    values = enum_values(CORE / "read_committed.pxd")
    assert set(values) == {"SKIP", "WHOLE", "BOUNDED"}
    assert {name: getattr(read_committed, name) for name in values} == values


def test_the_drawing_has_every_field_at_its_constant_without_a_gap() -> None:
    assert [name for _, _, name in table()] == list(HeaderFields._fields)
    assert [getattr(batch_header, name.upper()) for _, _, name in table()] == [row[0] for row in table()]
    ends = [position + size for position, size, _ in table()]
    assert [0, *ends] == [*(position for position, _, _ in table()), HEADER_SIZE]


@pytest.mark.parametrize(("position", "size", "name"), table())
def test_a_field_lies_where_the_drawing_has_it(position: int, size: int, name: str) -> None:
    value = int.from_bytes(WRITTEN[position : position + size], "big", signed=name != "crc")
    assert value == getattr(FIELDS, name)


def test_readers_agree_with_the_writer() -> None:
    header, batch = scan(WRITTEN)[0], read_batch(WRITTEN)
    assert header_fields(WRITTEN) == FIELDS
    assert HeaderFields(
        header.base_offset,
        header.size - LOG_OVERHEAD,
        header.partition_leader_epoch,
        header.magic,
        header.crc,
        header.attributes,
        header.last_offset - header.base_offset,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.count,
    ) == FIELDS
    assert batch.crc_holds
    assert (batch.base_offset, batch.size) == (FIELDS.base_offset, len(WRITTEN))
    assert (batch.magic, batch.attributes) == (FIELDS.magic, FIELDS.attributes)
    assert (batch.last_offset_delta, batch.max_timestamp) == (FIELDS.last_offset_delta, FIELDS.max_timestamp)
    assert (batch.producer_id, batch.producer_epoch) == (FIELDS.producer_id, FIELDS.producer_epoch)
    assert (batch.base_sequence, batch.record_count) == (FIELDS.base_sequence, FIELDS.records_count)


def test_the_crc_covers_what_the_drawing_says() -> None:
    for position in range(len(WRITTEN)):
        changed = bytearray(WRITTEN)
        changed[position] ^= 1
        if not BATCH_LENGTH <= position < PARTITION_LEADER_EPOCH and position != MAGIC:
            holds = position < CRC
            assert read_batch(changed).crc_holds is holds


def test_fewer_bytes_are_no_header() -> None:
    with pytest.raises(struct.error):
        header_fields(WRITTEN[: HEADER_SIZE - 1])


@pytest.mark.parametrize(
    ("bits", "batch"),
    [
        (0, Batch(records=[RECORD])),
        (ATTRIBUTE_CODEC & 3, Batch(records=[RECORD], codec=3)),
        (ATTRIBUTE_CODEC, Batch(records=[RECORD], more_attributes=7)),
        (ATTRIBUTE_LOG_APPEND_TIME, Batch(records=[RECORD], log_append_time=9)),
        (ATTRIBUTE_TRANSACTIONAL, Batch(records=[RECORD], transactional=True)),
        (ATTRIBUTE_CONTROL, Batch(records=[RECORD], control=True)),
        (ATTRIBUTE_DELETE_HORIZON, Batch(records=[RECORD], delete_horizon=9)),
    ],
)
def test_attribute_bits(bits: int, batch: Batch) -> None:
    written = batch.encode()
    assert header_fields(written).attributes == bits
    assert scan(written)[0].attributes == bits
    assert written[ATTRIBUTES] << 8 | written[ATTRIBUTES + 1] == bits


def test_control_types() -> None:
    log = b"".join([end_marker(0), end_marker(1), FULL.encode()])
    assert list(scan(log).control_type) == [CONTROL_ABORT, CONTROL_COMMIT, NO_CONTROL_TYPE]
    assert [ControlRecordType.ABORT, ControlRecordType.COMMIT] == [CONTROL_ABORT, CONTROL_COMMIT]


def test_magic_bytes() -> None:
    entries = [legacy_entry(magic, b"k", b"v", magic=magic) for magic in (0, 1)]
    batches = [Batch(records=[RECORD], base_offset=2, magic=magic).encode() for magic in (2, 3)]
    log = [*entries, *batches]
    assert list(scan(b"".join(log)).magic) == [MAGIC_0, MAGIC_1, MAGIC_2, UNKNOWN_MAGIC]
    assert [each[MAGIC] for each in log] == [0, 1, 2, 3]


def test_fields_of_old_entries() -> None:
    crc, attributes, timestamp = 0x01020304, 0x08, 0x2122232425262728
    key_length = len(b"key").to_bytes(4, "big")
    of_0 = legacy_entry(5, b"key", b"v", magic=0, attributes=attributes, crc=crc)
    of_1 = legacy_entry(5, b"key", b"v", magic=1, timestamp=timestamp, attributes=attributes, crc=crc)
    for entry in (of_0, of_1):
        assert entry[LEGACY_CRC:][:4] == crc.to_bytes(4, "big")
        assert entry[LEGACY_ATTRIBUTES] == attributes
        assert (scan(entry)[0].crc, scan(entry)[0].attributes) == (crc, attributes)
    assert of_0[LEGACY_KEY_0:][:4] == of_1[LEGACY_KEY_1:][:4] == key_length
    assert of_1[LEGACY_TIMESTAMP:][:8] == timestamp.to_bytes(8, "big")
    assert scan(of_1)[0].max_timestamp == timestamp


def test_smallest_sizes() -> None:
    smallest = [legacy_entry(0, None, None, magic=magic) for magic in (0, 1)]
    smallest.append(Batch(payload=b"").encode())
    assert [len(each) - LOG_OVERHEAD for each in smallest] == [MIN_SIZE_0, MIN_SIZE_1, MIN_SIZE_2]
    assert [each.size for each in scan(b"".join(smallest))] == list(map(len, smallest))
    assert (MIN_FRAME, MIN_SIZE_2) == (MAGIC + 1, HEADER_SIZE - LOG_OVERHEAD)
