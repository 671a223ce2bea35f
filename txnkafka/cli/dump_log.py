"""Turns batches and records of ``.log`` and ``.checkpoint`` files into rows, including damaged ones.

A row is a dictionary with a ``type`` and Kafka's field names in snake_case. A batch with a wrong CRC is shown
with ``is_valid`` false and followed by a finding. Bytes that are not a batch end the file.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from txnkafka._core.read_committed import WHOLE
from txnkafka._core.scan import BatchHeader, BatchIndex, scan
from txnkafka.errors import CorruptFileError, CorruptRecordError, LogDirError
from txnkafka.logdir import Finding, SegmentReader
from txnkafka.model import TimestampType
from txnkafka.record import CompressionType, ControlRecordType
from txnkafka.record.batch import Record, records_of
from txnkafka.record.batch_header import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    CONTROL_ABORT,
    CONTROL_COMMIT,
    MAGIC,
    MAGIC_0,
    MAGIC_2,
)
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches
from txnkafka.record.crc import valid_crcs
from txnkafka.storage.formats import OffsetIndex
from txnkafka.storage.formats.limits import INDEX_LIMIT
from txnkafka.wire.records import (
    TransactionState,
    decode_control_body,
    decode_group_log,
    decode_metadata,
    decode_transaction_log,
)

if TYPE_CHECKING:
    from txnkafka.env import FileSystem
    from txnkafka.wire.records import LogRecord

Row = dict[str, Any]

COMPRESSION_TYPES = {codec.value: codec.label for codec in CompressionType}
CONTROL_TYPES = {kind.value: kind.name for kind in ControlRecordType if kind >= 0}
END_MARKERS = (CONTROL_ABORT, CONTROL_COMMIT)
LARGEST_SEQUENCE = 2**31 - 1
LARGEST_OFFSET = 2**63 - 1
BATCH_REMEDY = "restore the file from a replica or a backup if these records are needed"
TAIL_REMEDY = "nothing to do at the end of a log whose broker was killed; else restore the file"
STOPS = {"torn": "torn-tail", "zeros": "zero-tail", "garbage": "garbage-tail"}

DECODERS: dict[str, Callable[[Record], LogRecord]] = {
    "transaction-log": lambda record: decode_transaction_log(record.key, record.value),
    "offsets": lambda record: decode_group_log(record.key, record.value),
    "metadata": lambda record: decode_metadata(record.value),
}


class LogOptions(NamedTuple):
    """Options for the rows of a log: ``records`` includes records, ``decoder`` is one of DECODERS or None,
    ``encoding`` selects how keys and values are shown. ``offsets`` (first, last) limits the batches to a
    range; ``position`` selects the batch at one byte position."""

    records: bool = False
    decoder: str | None = None
    encoding: str = "utf8"
    offsets: tuple[int, int] | None = None
    position: int | None = None

    @property
    def selects(self) -> bool:
        """True if offsets or a position select some of the batches."""
        return self.offsets is not None or self.position is not None


def log_rows(file_system: FileSystem, path: str, base_offset: int, options: LogOptions) -> Iterator[Row]:
    """Yield the rows of one file of batches. Raises OSError and LogDirError when it cannot be read."""
    if options.offsets is not None and options.offsets[1] < base_offset:
        return
    size = _size(file_system, path)
    if options.position is not None and options.position >= size:
        raise LogDirError(f"{path} has {size} bytes: no batch begins at position {options.position}")
    segment = SegmentReader(file_system, base_offset, {"log": path}, size)
    decoder = ChunkDecoder(headers=True)
    try:
        index = BatchIndex()
        for position, data, index in segment.windows(_first_position(segment, options)):
            if options.position is not None and not len(index):
                raise LogDirError(f"no batch begins at position {position} of {path}: {index.stop_reason}")
            headers = zip(index, valid_crcs(data, index, position=position), strict=True)
            for header, is_valid in _wanted(headers, options):
                batch = data[header.position - position :][: header.size]
                yield from _batch_rows(path, header, batch, decoder, options, is_valid=is_valid)
            if _is_done(index, options):
                return
        if index.stop != "end":
            reason = f"no more batches can be read: {index.stop_reason}"
            finding = Finding(path, index.end_position, "warning", STOPS[index.stop], reason, TAIL_REMEDY)
            yield finding_row(finding)
    except CorruptRecordError as error:
        yield _damage(path, error.position, error.reason)
    finally:
        segment.close()


def _batch_rows(
    path: str,
    header: BatchHeader,
    batch: memoryview,
    decoder: ChunkDecoder,
    options: LogOptions,
    *,
    is_valid: bool,
) -> Iterator[Row]:
    magic = batch[MAGIC]
    yield _batch_row(path, header, is_valid) | {"magic": magic}
    if not is_valid:
        yield _damage(path, header.position, "the CRC of the batch does not match its bytes")
    elif magic > MAGIC_2:
        reason = f"magic {magic} is not known, but the CRC is right for magic 2"
        yield _damage(path, header.position, reason, "unknown-magic")
    elif options.records:
        yield from _record_rows(path, header, batch, decoder, options)


def _first_position(segment: SegmentReader, options: LogOptions) -> int:
    """Return the byte position to start reading at: for an offset, its position in the ``.index`` next to the
    file, if a batch at or below that offset begins there."""
    if options.position is not None:
        return options.position
    position = 0 if options.offsets is None else _indexed_position(segment, options.offsets[0])
    if options.offsets is None or not position:
        return 0
    _, _, index = next(segment.windows(position))
    is_right = len(index) > 0 and index.last_offset[0] <= options.offsets[0]
    return position if is_right else 0


def _indexed_position(segment: SegmentReader, offset: int) -> int:
    path = segment.path.removesuffix(".log") + ".index"
    try:
        content = segment.file_system.read(path, INDEX_LIMIT)
        position = OffsetIndex(content, segment.base_offset).lookup(offset).position
    except (OSError, CorruptFileError):
        return 0
    return position if 0 <= position < segment.size else 0


Headers = Iterable[tuple[BatchHeader, bool]]


def _wanted(headers: Headers, options: LogOptions) -> Headers:
    """Yield the selected batches."""
    first, last = options.offsets or (0, LARGEST_OFFSET)
    for header, is_valid in headers:
        # a compressed wrapper (count -1) has only its last offset in the header
        if header.last_offset >= first and (header.base_offset <= last or header.count < 0):
            yield header, is_valid
        if options.position is not None or header.last_offset >= last:
            return


def _is_done(index: BatchIndex, options: LogOptions) -> bool:
    if not len(index) or not options.selects:
        return False
    return options.offsets is None or index.last_offset[-1] >= options.offsets[1]


def finding_row(finding: Finding) -> Row:
    """Return a finding as a row."""
    return {"type": "finding", **finding._asdict()}


def _damage(path: str, position: int | None, reason: str, code: str = "corrupt-batch") -> Row:
    return finding_row(Finding(path, position, "error", code, reason, BATCH_REMEDY))


def _size(file_system: FileSystem, path: str) -> int:
    file = file_system.open(path)
    try:
        return file.size()
    finally:
        file.close()


def _batch_row(path: str, header: BatchHeader, is_valid: bool) -> Row:
    row: Row = {"type": "batch", "file": path, "position": header.position, "size": header.size}
    attributes = header.attributes
    row |= _extent(header)
    row["timestamp_type"] = _timestamp_type(header).label
    row["max_timestamp"] = header.max_timestamp
    row["magic"] = header.magic
    row["compression"] = _compression(attributes & ATTRIBUTE_CODEC)
    row["crc"] = header.crc
    row["is_valid"] = is_valid
    known = attributes & ATTRIBUTE_CONTROL and header.control_type >= 0
    row["control_type"] = _control_type(header.control_type) if known else None
    ends = known and header.control_type in END_MARKERS
    row["coordinator_epoch"] = header.coordinator_epoch if ends else None
    return row


def _extent(header: BatchHeader) -> Row:
    """Return the offsets, count and producer of a batch; None for fields that the format lacks."""
    if header.magic < MAGIC_2:
        plain = header.count >= 0  # a wrapper has only its last offset in the header
        names = ("base_sequence", "last_sequence", "producer_id", "producer_epoch", "partition_leader_epoch")
        return {
            "base_offset": header.base_offset if plain else None,
            "last_offset": header.last_offset,
            "count": header.count if plain else None,
            **dict.fromkeys(names),
            "is_transactional": False,
            "is_control": False,
            "delete_horizon_ms": None,
        }
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.count,
        "base_sequence": header.base_sequence,
        "last_sequence": _sequence(header, header.last_offset),
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "partition_leader_epoch": header.partition_leader_epoch,
        "is_transactional": bool(header.attributes & ATTRIBUTE_TRANSACTIONAL),
        "is_control": bool(header.attributes & ATTRIBUTE_CONTROL),
        "delete_horizon_ms": header.base_timestamp if header.attributes & ATTRIBUTE_DELETE_HORIZON else None,
    }


def _sequence(header: BatchHeader, offset: int) -> int | None:
    if header.magic < MAGIC_2:
        return None
    if header.base_sequence < 0:
        return -1
    return (header.base_sequence + offset - header.base_offset) & LARGEST_SEQUENCE


def _timestamp_type(header: BatchHeader) -> TimestampType:
    if header.magic == MAGIC_0:
        return TimestampType.NO_TIMESTAMP_TYPE
    append_time = header.attributes & ATTRIBUTE_LOG_APPEND_TIME
    return TimestampType.LOG_APPEND_TIME if append_time else TimestampType.CREATE_TIME


def _compression(codec: int) -> str:
    return COMPRESSION_TYPES.get(codec, f"UNKNOWN({codec})")


def _control_type(number: int) -> str:
    return CONTROL_TYPES.get(number, f"UNKNOWN({number})")


def _record_rows(
    path: str, header: BatchHeader, data: memoryview, decoder: ChunkDecoder, options: LogOptions
) -> Iterator[Row]:
    index = scan(data, position=header.position)
    batches = SelectedBatches(lambda _position, _length: data, index, bytearray([WHOLE]))
    try:
        for columns in decoder.chunks(batches):
            for record in records_of(columns):
                yield _record_row(path, header, record, options)
    except CorruptRecordError as error:
        yield _damage(path, header.position, error.reason)


def _record_row(path: str, header: BatchHeader, record: Record, options: LogOptions) -> Row:
    is_control = bool(header.magic >= MAGIC_2 and header.attributes & ATTRIBUTE_CONTROL)
    row: Row = {"type": "control_record" if is_control else "record", "file": path, "offset": record.offset}
    row["timestamp"], row["timestamp_type"] = record.timestamp, record.timestamp_type.label
    row["key_size"] = -1 if record.key is None else len(record.key)
    row["value_size"] = -1 if record.value is None else len(record.value)
    row["sequence"] = _sequence(header, record.offset)
    if is_control:
        return row | _control(record)
    row["headers"] = [[name, _header_value(value, options.encoding)] for name, value in record.headers]
    if options.decoder is not None:
        return row | {"decoded": _decoded(record, options.decoder)}
    return row | _text("key", record.key, options.encoding) | _text("value", record.value, options.encoding)


def _decoded(record: Record, decoder: str) -> Row:
    """Return a record of Kafka's own logs as fields, with the state of a transaction by its name."""
    decoded = DECODERS[decoder](record).as_dict()
    value = decoded.get("value")
    if decoder == "transaction-log" and isinstance(value, dict) and "transaction_status" in value:
        decoded["value"] = value | {"transaction_status": _state(value["transaction_status"])}
    return decoded


def _state(number: int) -> str:
    try:
        return TransactionState(number).label
    except ValueError:
        return f"UNKNOWN({number})"


def _control(record: Record) -> Row:
    """Return the fields of a control record; a key that cannot be decoded is shown in hex."""
    key = record.key
    if key is None or len(key) < 4:
        wrong = "the key is too short for a type"
        value = None if record.value is None else record.value.hex()
        return {"control_type": None, "error": wrong, "raw_key": key and key.hex(), "raw_value": value}
    number = int.from_bytes(key[2:4], "big", signed=True)
    body = decode_control_body(number, record.value).as_dict()
    rest: Row = {name: body[name] for name in ("error", "raw_value") if name in body}
    version = int.from_bytes(key[:2], "big", signed=True)
    return {
        "control_type": _control_type(number),
        "key_version": version,
        "value_version": body["value_version"],
        "value": body["value"],
        **rest,
    }


def _text(name: str, value: bytes | None, encoding: str) -> Row:
    """Return the field ``name`` as text, or as base64 with an extra field that marks the encoding."""
    if value is None:
        return {name: None}
    if encoding == "base64":
        return {name: b64encode(value).decode()}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {name: b64encode(value).decode(), f"{name}_encoding": "base64"}


def _header_value(value: bytes | None, encoding: str) -> object:
    shown = _text("value", value, encoding)
    return {"base64": shown["value"]} if len(shown) > 1 else shown["value"]
