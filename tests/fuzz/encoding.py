"""Two targets for what writes: changes of batches in place, and columns that do not fit together.

``change``: a log whose batches are changed one by one. The obvious way is to write the fields and correct the
CRC by the CRCs of the whole bytes before and after; what is no whole batch is refused and left alone.

``columns``: buffers as InputColumns takes them, in a row, with whatever numbers in them. Every buffer ends
where its bytes end. What is encoded must be what the model makes of the same numbers.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.fuzz.engine import Target, require
from tests.fuzz.guard import guarded
from tests.fuzz.log_mutations import mutate_log
from tests.fuzz.mutations import boundary_number, resize_bytes, splice
from tests.models.builder import Batch, PlainRecord
from tests.models.columns import columns_of
from tests.models.crc32c import crc32c
from txnkafka._core.encode import assign, encode_batch, set_max_timestamp, set_producer
from txnkafka._core.record_input import InputColumns
from txnkafka.errors import InvalidRecordError

__all__ = ["CHANGE", "COLUMNS", "column_seeds"]

CRC_BEGIN, HEADER_SIZE, MOST_BATCHES = 21, 61, 40
ATTRIBUTES, MAX_TIMESTAMP, PRODUCER = 21, 35, 43
APPEND_TIME, TRANSACTIONAL, MEANT = 0x08, 0x10, 0x7F
Change = Callable[[memoryview, int], None]


def check_change(content: bytes) -> str:
    """Change every batch of a log, and try to where none is; returns what came of the first refusal."""
    position, label = 0, "accepted"
    for number in range(MOST_BATCHES):
        size = _batch_size(content, position)
        for change, expected in _changes(number, content[position : position + (size or 0)]):
            log = guarded(content)
            try:
                change(log, position)
            except InvalidRecordError:
                require(size is None and log == content, f"batch at {position} was refused, or left changed")
                continue
            require(size is not None, f"what lies at {position} was changed")
            whole = content[:position] + expected() + content[position + (size or 0) :]
            require(log == whole, f"the batch at {position} is not what it should be")
        if size is None:
            return "accepted" if position == len(content) > 0 else "refused: no whole batch"
        position += size
    return label


def _batch_size(content: bytes, position: int) -> int | None:
    if len(content) - position < HEADER_SIZE or content[position + 16] != 2:
        return None
    size: int = struct.unpack_from(">i", content, position + 8)[0] + 12
    return size if HEADER_SIZE <= size <= len(content) - position else None


def _changes(number: int, batch: bytes) -> list[tuple[Change, Callable[[], bytes]]]:
    """What is done to a batch, and what must come of it."""
    wanted = struct.pack(">qhi", number, 3, number)

    def in_place() -> bytes:
        return struct.pack(">q", -number) + batch[8:12] + struct.pack(">i", number) + batch[16:]

    def produced() -> bytes:
        attributes = struct.unpack_from(">H", batch, ATTRIBUTES)[0] | TRANSACTIONAL
        return _covered(batch, {ATTRIBUTES: struct.pack(">H", attributes), PRODUCER: wanted})

    def stamped() -> bytes:
        (attributes,) = struct.unpack_from(">H", batch, ATTRIBUTES)
        new = struct.pack(">q", 5)
        if attributes & APPEND_TIME and batch[MAX_TIMESTAMP : MAX_TIMESTAMP + 8] == new:
            return batch
        attributes = attributes & MEANT | APPEND_TIME
        return _covered(batch, {ATTRIBUTES: struct.pack(">H", attributes), MAX_TIMESTAMP: new})

    producer = {"producer_id": number, "producer_epoch": 3, "base_sequence": number, "transactional": True}
    return [
        (lambda log, at: assign(log, at, base_offset=-number, partition_leader_epoch=number), in_place),
        (lambda log, at: set_producer(log, at, **producer), produced),
        (lambda log, at: set_max_timestamp(log, at, timestamp_type=1, max_timestamp=5), stamped),
    ]


def _covered(batch: bytes, fields: dict[int, bytes]) -> bytes:
    """Fields under the CRC; a CRC that was wrong before is wrong by as much afterwards."""
    new = bytearray(batch)
    for place, value in fields.items():
        new[place : place + len(value)] = value
    difference = crc32c(batch[CRC_BEGIN:]) ^ crc32c(bytes(new[CRC_BEGIN:]))
    new[17:21] = (int.from_bytes(batch[17:21], "big") ^ difference).to_bytes(4, "big")
    return bytes(new)


# Columns

NAMES = (
    "timestamps", "offsets", "key_offsets", "key_data", "key_validity", "value_offsets", "value_data",
    "value_validity", "header_offsets", "header_key_offsets", "header_key_data", "header_value_offsets",
    "header_value_data", "header_value_validity",
)  # fmt: skip
ALWAYS_WIDE = ("timestamps", "offsets")
Columns = dict[str, Any]


def packed(columns: Columns) -> bytes:
    """Each buffer behind its size (of 0 if it is None) and its item size."""
    parts = []
    for name in NAMES:
        view = memoryview(columns.get(name) or b"")
        parts.append(struct.pack(">HB", view.nbytes, view.itemsize) + view.tobytes())
    return b"".join(parts)


def _unpacked(content: bytes) -> Columns:
    columns: Columns = {}
    position = 0
    for name in NAMES:
        size, width = struct.unpack_from(">HB", content.ljust(position + 3, b"\0"), position)
        position += 3
        piece = content[position : position + size]
        position += size
        if name.endswith("offsets") or name == "timestamps":
            typecode = "q" if width == 8 or name in ALWAYS_WIDE else "i"
            item = 8 if typecode == "q" else 4
            numbers = guarded(piece[: len(piece) // item * item]).cast(typecode)
            columns[name] = numbers if piece or name == "timestamps" else None
        else:
            columns[name] = guarded(piece) if piece else None
    return columns


class RefusedError(Exception):
    """The obvious reading finds a column that does not fit."""


def _blob(columns: Columns, name: str, i: int) -> bytes | None:
    offsets, data, validity = (columns.get(f"{name}_{part}") for part in ("offsets", "data", "validity"))
    if offsets is None:
        return None
    if validity is not None and not validity[i >> 3] >> (i & 7) & 1:
        return None
    if not 0 <= offsets[i] <= offsets[i + 1] <= len(data or b""):
        raise RefusedError
    return bytes((data or b"")[offsets[i] : offsets[i + 1]])


def _records(columns: Columns) -> list[PlainRecord]:
    timestamps, offsets = columns["timestamps"], columns["offsets"]
    ends, most = columns["header_offsets"], len(columns["header_key_offsets"] or b"")
    records: list[PlainRecord] = []
    last = -1
    for i, timestamp in enumerate(timestamps):
        begin, end = (0, 0) if ends is None else (ends[i], ends[i + 1])
        delta = i if offsets is None else offsets[i]
        if timestamp < -1 or not last < delta < 1 << 31 or not 0 <= begin <= end < max(1, most):
            raise RefusedError
        last = delta
        names = (_blob(columns, "header_key", h) or b"" for h in range(begin, end))
        headers = [(name, _blob(columns, "header_value", h)) for h, name in enumerate(names, begin)]
        key, value = _blob(columns, "key", i), _blob(columns, "value", i)
        records.append(PlainRecord(key, value, timestamp, headers, delta))
    return records


def _require_refusal(columns: Columns, error: Exception) -> None:
    """Columns that leave something out, or that the obvious reading refuses as well."""
    if isinstance(error, TypeError) or "are needed" in str(error) or "validity has" in str(error):
        return
    try:
        _records(columns)
    except (RefusedError, IndexError):  # a column that is too short
        return
    require(False, f"good columns were refused: {error}")


def check_columns(content: bytes) -> str:
    """Encode whatever columns these are; returns why they were refused."""
    columns = _unpacked(content)
    try:
        found = encode_batch(InputColumns(**columns))
    except (TypeError, ValueError) as error:
        _require_refusal(columns, error)
        return f"refused: {str(error)[:30]}"
    records = _records(columns)
    expected = Batch(records=records).encode() if records else b""
    assert found == expected, f"written {found[:300].hex()}, expected {expected[:300].hex()}"
    return f"accepted: {min(len(records), 3)} records"


def mutate_columns(random: Random, content: bytes, pool: Sequence[bytes]) -> bytes:
    """Numbers in buffers, mostly; now and then sizes and all else."""
    kind = random.random()
    if kind < 0.05:
        return splice(random, content, pool)
    if kind < 0.1 or not content:
        return resize_bytes(random, content)
    columns = _unpacked(content)
    name = random.choice([name for name in NAMES if columns[name] is not None])
    view = columns[name]
    if kind < 0.2 or not len(view):
        left_out = kind < 0.15 and name != "timestamps"
        columns[name] = None if left_out else view[: random.randrange(len(view) + 1)]
    elif view.itemsize == 1:
        view[random.randrange(len(view))] = random.randrange(256)
    else:
        i, bits = random.randrange(len(view)), 8 * view.itemsize
        moved = view[i] + random.choice((-1, 1))
        number = boundary_number(random, view.itemsize) if random.random() < 0.3 else moved
        view[i] = (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
    return packed(columns)


def column_seeds() -> dict[str, bytes]:
    """Columns of few and of many records, narrow and wide, with and without each part."""
    rich = [
        PlainRecord(b"key", b"value", 1000, [(b"n", b"w"), (b"", None)]),
        PlainRecord(None, None, 998),
        PlainRecord(b"", b"v" * 150, 1003, [(b"name" * 20, b"")]),
    ]
    plain = [PlainRecord(b"k" * (i % 20), b"v" * (i * 7 % 90), 1000 + i) for i in range(70)]
    return {
        "rich": packed(columns_of(rich)),
        "rich-wide": packed(columns_of(rich, typecode="q", junk=b"x" * 9)),
        "gaps": packed(columns_of(rich, offsets=[0, 7, 9])),
        "plain": packed(columns_of(plain)),
        "plain-slack": packed(columns_of(plain, junk=b"x" * 200)),
        "times": packed({"timestamps": array("q", [5, -1, 2**62])}),
        "none": packed({"timestamps": array("q")}),
    }


CHANGE = Target("change", check_change, mutate_log, iterations=400)
COLUMNS = Target("columns", check_columns, mutate_columns, iterations=2500)
