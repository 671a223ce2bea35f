"""Files of the metadata log: snapshots (``<end offset>-<epoch>.checkpoint``), ``bootstrap.checkpoint``, and
segments. All contain batches of metadata records and of KRaft's control records.

A snapshot is the state of all offsets below its end offset. Its first and last batches are control batches;
if the voters are in the log (KIP-853), the first one names them.

Source: ``Snapshots``, ``RecordsSnapshotWriter``, ``RecordsSnapshotReader``, ``BootstrapDirectory``.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from txnkafka._core.encode import encode_batch
from txnkafka._core.read_committed import WHOLE
from txnkafka.coordinator.registry.metadata_records import encode_metadata
from txnkafka.errors import CorruptRecordError, LogDirError
from txnkafka.record.batch import records_of
from txnkafka.record.chunk import ChunkDecoder, SelectedBatches
from txnkafka.storage.formats.segment_reader import LogFileReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from txnkafka.coordinator.registry.metadata_records import LogRecord
    from txnkafka.env import DataFiles
    from txnkafka.record.batch import Record

SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS = 3, 4, 5, 6
_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_PART: Final = ".part"
_LEFTOVERS: Final = (f".checkpoint{_PART}", ".checkpoint.deleted")
_BATCH_RECORDS: Final = 500
_RECORD_COST: Final = 2 << 10  # cost of one record, in bytes of a large one
Control = tuple[bytes, bytes]
"""Key and value of a control record."""


class SnapshotId(NamedTuple):
    """A snapshot: the end offset of its content, and the epoch of the last record below it."""

    end_offset: int
    epoch: int

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"


def find_snapshots(files: DataFiles, directory: str) -> list[SnapshotId]:
    """Return the snapshots in the directory of the metadata log, the oldest first. Raises OSError."""
    names = (_NAME.fullmatch(entry.name) for entry in files.list(directory) if not entry.is_directory)
    return sorted(SnapshotId(int(found[1]), int(found[2])) for found in names if found)


def remove_leftovers(files: DataFiles, directory: str) -> None:
    """Remove unfinished snapshots, and those whose deletion was interrupted. Raises OSError."""
    for entry in files.list(directory):
        if entry.name.endswith(_LEFTOVERS):
            files.remove(files.join(directory, entry.name))


def control_type(record: Record) -> int | None:
    """Return the type of a control record; None for a metadata record, whose key is null."""
    return None if record.key is None else int.from_bytes(record.key[2:4], "big")


def read_records(reader: LogFileReader) -> Iterator[Record]:
    """Yield all records of a file, including control records. Raises CorruptRecordError where it ends
    inside a batch or is damaged, and OSError."""
    decoder, end = ChunkDecoder(), 0
    try:
        for _, _, index in reader.windows():
            selected = SelectedBatches(
                reader.read, index, bytearray([WHOLE]) * len(index), settled=reader.guard
            )
            for columns in decoder.chunks(selected):
                yield from records_of(columns)
            end = index.end_position if len(index) else end
    finally:
        reader.close()
    if end != reader.size:
        raise CorruptRecordError("no whole batch begins here", position=end, file=reader.path)


def read_checkpoint(files: DataFiles, path: str) -> Iterator[Record]:
    """Yield the records of a snapshot or of ``bootstrap.checkpoint``. Raises LogDirError for a damaged
    one, and OSError."""
    file = files.open(path)
    try:
        size = file.size()
    finally:
        file.close()
    last: Record | None = None
    try:
        for record in read_records(LogFileReader(files, path, size)):
            if last is None and control_type(record) != SNAPSHOT_HEADER:
                break
            last = record
            yield record
    except CorruptRecordError as error:
        raise LogDirError(f"{path} is damaged: restore it, or topics are lost: {error}") from error
    if last is None or control_type(last) != SNAPSHOT_FOOTER:
        raise LogDirError(f"{path} is damaged: restore it, or topics are lost: it has no footer")


def write_snapshot(
    files: DataFiles,
    directory: str,
    snapshot: SnapshotId,
    records: Iterable[LogRecord],
    *,
    voters: Sequence[Control],
    timestamp: int,
) -> Iterator[int]:
    """Write a snapshot durably; ``timestamp`` belongs to its last record. Yields the cost of each step in
    bytes.

    Raises OSError, and leaves no file. A generator that is not run to its end creates no snapshot; its
    partial file is left to ``remove_leftovers``, because the directory may have another owner by the time the
    generator is collected."""
    path = files.join(directory, snapshot.name)
    if files.exists(path + _PART):
        files.remove(path + _PART)
    file = files.create(path + _PART)
    try:
        header = b"\0\0" + timestamp.to_bytes(8, "big") + b"\0"
        controls = [((SNAPSHOT_HEADER).to_bytes(4, "big"), header), *voters]
        position = offset = 0
        for batch, count in _batches(controls, records, timestamp):
            is_control = batch[0][0] is not None
            content = encode_batch(
                batch, base_offset=offset, partition_leader_epoch=snapshot.epoch, control=is_control
            )
            file.write(position, [content])
            position, offset = position + len(content), offset + count
            yield count * _RECORD_COST
        file.sync()
    except Exception:
        with suppress(OSError):
            files.remove(path + _PART)
        raise
    finally:
        file.close()
    files.rename(path + _PART, path)
    files.sync_directory(directory)


_Row = tuple[bytes | None, bytes, int]


def _batches(
    controls: Sequence[Control], records: Iterable[LogRecord], timestamp: int
) -> Iterator[tuple[list[_Row], int]]:
    yield [(key, value, timestamp) for key, value in controls], len(controls)
    rest = iter(records)
    while some := list(islice(rest, _BATCH_RECORDS)):
        yield [(None, bytes(encode_metadata(record)), timestamp) for record in some], len(some)
    yield [((SNAPSHOT_FOOTER).to_bytes(4, "big"), b"\0\0\0", timestamp)], 1
