"""The text target: records of a log as JSON lines, CSV rows and base64, against the modules of Python.

What the decoder makes of a log is the batch target's business; here each line must be what the model writes
of the same columns, and be read back by json.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from random import Random

from tests.fuzz.engine import Target
from tests.fuzz.guard import guarded
from tests.fuzz.log_mutations import batches_of, mutate_log, sealed, varints_of
from tests.models.text import TextRecord, base64_line, csv_row, json_line
from tests.models.varint import write_varint
from txnkafka._core.columns import RecordColumns
from txnkafka._core.scan import scan
from txnkafka._core.text import TextWriter
from txnkafka.errors import CorruptRecordError
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches

__all__ = ["TEXT"]

TOPIC, PARTITION = 'grün"\\,t', 3
HEADER_SIZE = 61
SNIPPETS = (
    b'"', b"\\", b"\n", b"\r", b"\t", b"\0", b"\x1f", b"\x7f", b"\xc2\x80", b"\xe2\x80\xa8", b"\xef\xbf\xbf",
    b"\xf0\x9f\x98\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xc0\x80",
    b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xff", b"\xfe", b"\x80", b",", b"a" * 31,
    "é".encode() * 40,
)  # fmt: skip


def mutate_text(random: Random, content: bytes, pool: Sequence[bytes]) -> bytes:
    """Mostly another key, value, header key or header value."""
    pieces = batches_of(content)
    if not pieces or random.random() < 0.2:
        return mutate_log(random, content, pool)
    number = random.randrange(len(pieces))
    batch = pieces[number]
    if len(batch) > HEADER_SIZE and batch[16] == 2 and batch[22] & 7 == 0:
        pieces[number] = sealed(batch[:HEADER_SIZE] + _other_field(random, batch[HEADER_SIZE:]))
    return b"".join(pieces)


def _other_field(random: Random, records: bytes) -> bytes:
    record = random.choice(varints_of(records) or [[]])
    # length, timestamp delta, offset delta, key, value, header count, headers
    fields = [span for number, span in enumerate(record) if number in (3, 4) or number > 5]
    if not fields:
        return records
    begin, end = random.choice(fields)
    old_length = max(_value(records, begin, end), 0)
    field = b"".join(random.choice((*SNIPPETS, b"abc")) for _ in range(random.randint(0, 6)))
    encoded = write_varint(len(field)) + field
    changed = records[:begin] + encoded + records[end + old_length :]
    length_begin, length_end = record[0]
    length = _value(records, length_begin, length_end) + len(encoded) - (end - begin) - old_length
    return changed[:length_begin] + write_varint(length) + changed[length_end:]


def _value(records: bytes, begin: int, end: int) -> int:
    unsigned = 0
    for byte in reversed(records[begin:end]):
        unsigned = unsigned << 7 | byte & 0x7F
    unsigned &= 0xFFFFFFFF
    return unsigned >> 1 ^ -(unsigned & 1)


def check_text(content: bytes) -> str:
    """Compare the text of all records that can be read."""
    log = guarded(content)
    index = scan(log)
    selection = bytearray(b"\1" * len(index))
    batches = SelectedBatches(lambda at, size: log[at : at + size], index, selection)
    refused = 0

    def count(error: CorruptRecordError) -> None:
        nonlocal refused
        refused += 1

    records: list[TextRecord] = []
    for columns in ChunkDecoder(headers=True).chunks(batches, count):
        found = text_records(columns)
        for encoding in ("utf8", "base64"):
            _check_lines(columns, found, encoding)
        records.extend(found)
    kinds = {_kind(field) for record in records for field in _fields(record)}
    return f"{'accepted' if records else 'refused'}: {sorted(kinds)}, {bool(refused)}"


def text_records(columns: RecordColumns) -> list[TextRecord]:
    """The records with the bytes of their header names."""
    keys, values = _column(columns, "key"), _column(columns, "value")
    names = _column(columns, "header_key")
    header_values = _column(columns, "header_value")
    bounds = memoryview(columns.header_offsets).tolist()
    runs = list(
        zip(
            memoryview(columns.run_ends).tolist(),
            memoryview(columns.run_leader_epochs).tolist(),
            memoryview(columns.run_timestamp_types).tolist(),
            strict=True,
        )
    )
    offsets, timestamps = memoryview(columns.offsets).tolist(), memoryview(columns.timestamps).tolist()
    found = []
    for i, offset in enumerate(offsets):
        epoch, kind = next((epoch, kind) for end, epoch, kind in runs if i < end)
        headers = [(names[h] or b"", header_values[h]) for h in range(bounds[i], bounds[i + 1])]
        leader_epoch = None if epoch < 0 else epoch
        found.append(TextRecord(offset, timestamps[i], kind, keys[i], values[i], headers, leader_epoch))
    return found


def _column(columns: RecordColumns, name: str) -> list[bytes | None]:
    offsets = memoryview(getattr(columns, f"{name}_offsets")).tolist()
    data = bytes(memoryview(getattr(columns, f"{name}_data")))
    validity = getattr(columns, f"{name}_validity", None)
    bits = b"" if validity is None else bytes(memoryview(validity))
    return [
        None if bits and not bits[i >> 3] >> (i & 7) & 1 else data[offsets[i] : offsets[i + 1]]
        for i in range(len(offsets) - 1)
    ]


def _check_lines(columns: RecordColumns, records: list[TextRecord], encoding: str) -> None:
    writer = TextWriter(TOPIC, PARTITION, encoding=encoding)
    lines = b"".join(writer.json_lines(columns))
    expected = b"".join(json_line(TOPIC, PARTITION, each, encoding) for each in records)
    # Whether the topic's name keeps its umlauts is not what this is about.
    _same(_without_topic(lines), _without_topic(expected))
    for line, record in zip(lines.decode().split("\n"), records, strict=False):
        _check_read_back(json.loads(line), record, encoding)
    rows = b"".join(writer.csv_rows(columns))
    _same(rows, b"".join(csv_row(TOPIC, PARTITION, each, encoding) for each in records))
    for column in ("key", "value"):
        contents = [getattr(each, column) for each in records]
        _same(b"".join(writer.base64_lines(columns, column)), b"".join(map(base64_line, contents)))


def _without_topic(lines: bytes) -> list[bytes]:
    return [line.partition(b'"partition":')[2] for line in lines.split(b"\n")]


def _check_read_back(line: dict[str, object], record: TextRecord, encoding: str) -> None:
    assert line["topic"] == TOPIC
    assert (line["offset"], line["timestamp"]) == (record.offset, record.timestamp)
    for name, content in (("key", record.key), ("value", record.value)):
        text = line[name]
        if content is None:
            assert text is None
            continue
        assert isinstance(text, str)
        encoded = encoding == "base64" or line.get(f"{name}_encoding") == "base64"
        assert (base64.b64decode(text) if encoded else text.encode()) == content


def _same(found: object, expected: object) -> None:
    assert found == expected, f"wrote {str(found)[:600]}\nexpected {str(expected)[:600]}"


def _fields(record: TextRecord) -> list[bytes | None]:
    return [record.key, record.value, *(part for header in record.headers for part in header)]


def _kind(field: bytes | None) -> str:
    if not field:
        return "null" if field is None else "empty"
    try:
        text = field.decode()
    except UnicodeDecodeError:
        return "bytes"
    return "ascii" if text.isascii() and text.isprintable() else "text"


TEXT = Target("text", check_text, mutate_text, needed=("accepted",), iterations=600)
