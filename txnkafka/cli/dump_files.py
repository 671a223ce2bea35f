"""Turns every kind of file in a log directory into rows; the file's name selects the reader.

A row is a dictionary with a ``type``, the ``file``, and Kafka's field names in snake_case. A fault in a file
is a row of type ``finding``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from txnkafka.cli.dump_log import LogOptions, Row, finding_row, log_rows
from txnkafka.errors import CorruptFileError, LogDirError
from txnkafka.logdir import Finding
from txnkafka.model import NO_OFFSET
from txnkafka.storage.formats import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    OffsetIndex,
    TimeIndex,
    TxnIndexProblem,
    iter_producer_snapshot,
    iter_txn_index,
    parse_clean_shutdown,
    parse_leader_epoch_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    parse_partition_directory,
    parse_partition_metadata,
)
from txnkafka.storage.formats.index import OFFSET_ENTRY, TIME_ENTRY
from txnkafka.storage.formats.limits import (
    CHECKPOINT_LIMIT,
    EPOCHS_LIMIT,
    INDEX_LIMIT,
    SMALL_FILE_LIMIT,
    SNAPSHOT_LIMIT,
    TXN_INDEX_LIMIT,
)

if TYPE_CHECKING:
    from txnkafka.env import FileSystem
    from txnkafka.model import ProducerStateEntry

LIMITS: Final = {
    "index": INDEX_LIMIT,
    "timeindex": INDEX_LIMIT,
    "txnindex": TXN_INDEX_LIMIT,
    "snapshot": SNAPSHOT_LIMIT,
    LEADER_EPOCH_CHECKPOINT: EPOCHS_LIMIT,
    PARTITION_METADATA: SMALL_FILE_LIMIT,
    META_PROPERTIES: SMALL_FILE_LIMIT,
    CLEAN_SHUTDOWN_FILE: SMALL_FILE_LIMIT,
    "quorum-state": SMALL_FILE_LIMIT,
}  # others: CHECKPOINT_LIMIT
LARGEST_SEGMENT = (1 << 31) - 1
REMEDY = "'txnkafka verify' on the log directory shows the consequences and what to do"
SUFFIXES = (".deleted", ".cleaned", ".swap", ".part", ".tmp")
SEGMENT_FILE = re.compile(r"([0-9]{20})\.(?:index|timeindex|txnindex)")
QUORUM_STATE = "quorum-state"
COORDINATOR_TOPICS = {
    "__transaction_state": "transaction-log",
    "__consumer_offsets": "offsets",
    "__cluster_metadata": "metadata",
}


def file_rows(file_system: FileSystem, path: str, parent: str, options: LogOptions) -> Iterator[Row]:
    """Yield the rows of the file at ``path``, whose directory has the name ``parent``. Raises OSError and
    LogDirError.

    The decoder ``auto`` depends on the directory's name."""
    name = path.rpartition("/")[2]
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    kind = name.rpartition(".")[2]
    if kind in ("log", "checkpoint"):
        decoder = _decoder(kind, parent) if options.decoder == "auto" else options.decoder
        base_offset = int(name[:20]) if name[:20].isdecimal() else 0
        yield from log_rows(file_system, path, base_offset, options._replace(decoder=decoder))
        return
    file_system.open(path).close()  # a missing file is reported as missing, not as an unknown name
    if options.selects:
        raise LogDirError(f"{path} has no batches: --offset and --position are for .log files")
    rows = _rows_of(name, kind, path)
    data = file_system.read(path, LIMITS.get(kind) or LIMITS.get(name, CHECKPOINT_LIMIT))
    try:
        for row in rows(data):
            yield {"type": row.pop("type"), "file": path, **row}
    except CorruptFileError as error:
        yield finding_row(Finding(path, error.position, "error", _code(name, kind), error.reason, REMEDY))


def _decoder(kind: str, parent: str) -> str | None:
    if kind == "checkpoint":
        return "metadata"
    parsed = parse_partition_directory(parent)
    return COORDINATOR_TOPICS.get(parsed.topic_partition.topic) if parsed else None


def _rows_of(name: str, kind: str, path: str) -> Rows:
    """Read a file with the reader for its name. Raises LogDirError for an unknown name."""
    if kind == "snapshot":
        return _producers
    if name in WHOLE_FILES:
        return WHOLE_FILES[name]
    if kind not in INDEXES:
        raise LogDirError(
            f"{path} is not a file of Kafka's that dump recognizes by its name; it reads {KNOWN}"
        )
    if not SEGMENT_FILE.fullmatch(name):
        raise LogDirError(f"{path}: the name of an index must be a base offset with 20 digits and .{kind}")
    return partial(INDEXES[kind], base_offset=int(name[:20]))


def _code(name: str, kind: str) -> str:
    """Return the code that ``txnkafka verify`` reports for an unreadable file of that name."""
    return "bad-snapshot" if kind == "snapshot" else CODES.get(name, "bad-checkpoint")


def _offset_index(data: bytes, base_offset: int) -> Iterator[Row]:
    index = OffsetIndex(data, base_offset)
    for entry in index:
        yield {"type": "offset_index_entry", **entry._asdict()}
    for problem in index.problems(LARGEST_SEGMENT):
        yield _problem("bad-index", problem.entry * OFFSET_ENTRY.size, problem.text)


def _time_index(data: bytes, base_offset: int) -> Iterator[Row]:
    index = TimeIndex(data, base_offset)
    for entry in index:
        yield {"type": "time_index_entry", **entry._asdict()}
    for problem in index.problems():
        yield _problem("bad-timeindex", problem.entry * TIME_ENTRY.size, problem.text)


def _txn_index(data: bytes, base_offset: int) -> Iterator[Row]:
    problems: list[TxnIndexProblem] = []
    for _, entry in iter_txn_index(data, base_offset, problems):
        yield {"type": "aborted_txn", **entry._asdict()}
    for problem in problems:
        yield _problem("bad-txnindex", problem.position, problem.text)


def _problem(code: str, position: int, text: str) -> Row:
    row = finding_row(Finding("", position, "warning", code, text, REMEDY))
    del row["file"]
    return row


def _producers(data: bytes) -> Iterator[Row]:
    return map(_producer, iter_producer_snapshot(data))


def _producer(entry: ProducerStateEntry) -> Row:
    """Return a producer with Kafka's field names; its last batch is None when only an end marker was seen."""
    has_batch = entry.last_offset != NO_OFFSET
    first = entry.current_txn_first_offset
    return {
        "type": "producer",
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "coordinator_epoch": entry.coordinator_epoch,
        "current_txn_first_offset": first if entry.has_open_transaction else None,
        "last_timestamp": entry.last_timestamp,
        "first_sequence": entry.first_sequence if has_batch else None,
        "last_sequence": entry.last_sequence if has_batch else None,
        "last_offset": entry.last_offset if has_batch else None,
        "offset_delta": entry.offset_delta if has_batch else None,
    }


def _offset_checkpoint(data: bytes) -> Iterator[Row]:
    for (topic, partition), offset in parse_offset_checkpoint(data).items():
        yield {"type": "checkpoint_entry", "topic": topic, "partition": partition, "offset": offset}


def _leader_epochs(data: bytes) -> Iterator[Row]:
    for entry in parse_leader_epoch_checkpoint(data):
        yield {"type": "leader_epoch_entry", **entry._asdict()}


def _partition_metadata(data: bytes) -> Iterator[Row]:
    yield {"type": "partition_metadata", **parse_partition_metadata(data)._asdict()}


def _meta_properties(data: bytes) -> Iterator[Row]:
    yield {"type": "meta_properties", **parse_meta_properties(data)._asdict()}


def _clean_shutdown(data: bytes) -> Iterator[Row]:
    yield {"type": "clean_shutdown", **parse_clean_shutdown(data)._asdict()}


def _quorum_state(data: bytes) -> Iterator[Row]:
    """Yield every field of the file: Kafka versions write different ones."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise CorruptFileError("not a JSON object", position=0) from None
    if not isinstance(content, dict):
        raise CorruptFileError("not a JSON object", position=0)
    yield {"type": "quorum_state", **{_snake_case(name): value for name, value in content.items()}}


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda match: f"_{match[0]}", name).lower()


Rows = Callable[[bytes], Iterator[Row]]

INDEXES: Final = {"index": _offset_index, "timeindex": _time_index, "txnindex": _txn_index}

WHOLE_FILES: Final[dict[str, Rows]] = {
    RECOVERY_POINT_CHECKPOINT: _offset_checkpoint,
    HIGH_WATERMARK_CHECKPOINT: _offset_checkpoint,
    LOG_START_OFFSET_CHECKPOINT: _offset_checkpoint,
    CLEANER_OFFSET_CHECKPOINT: _offset_checkpoint,
    LEADER_EPOCH_CHECKPOINT: _leader_epochs,
    PARTITION_METADATA: _partition_metadata,
    META_PROPERTIES: _meta_properties,
    CLEAN_SHUTDOWN_FILE: _clean_shutdown,
    QUORUM_STATE: _quorum_state,
}

CODES: Final = {
    LEADER_EPOCH_CHECKPOINT: "bad-leader-epoch-checkpoint",
    META_PROPERTIES: "bad-meta-properties",
    CLEAN_SHUTDOWN_FILE: "bad-clean-shutdown-file",
    QUORUM_STATE: "bad-quorum-state",
}

KNOWN: Final = ", ".join(
    ["*.log, *.checkpoint", *(f"*.{kind}" for kind in (*INDEXES, "snapshot")), *WHOLE_FILES]
)
