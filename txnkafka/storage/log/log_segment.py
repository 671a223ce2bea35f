"""One segment of an open log: appends, reads and truncation of its bytes, and its indexes.

The ``.log`` file is authoritative. Both indexes and the list of aborted transactions are loaded on demand,
kept in memory, and written by ``save``. Source: ``LogSegment``, ``LocalLog``.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from txnkafka._core.index_entries import index_entries
from txnkafka._core.segment_writer import SegmentWriter
from txnkafka.env import random_below
from txnkafka.errors import CorruptRecordError, KafkaError
from txnkafka.model import NO_TIMESTAMP
from txnkafka.storage.formats.index import OffsetIndex, OffsetPosition, TimeIndex
from txnkafka.storage.formats.segment_reader import SegmentReader
from txnkafka.storage.log.batch_position import BatchPosition, find_batch_in
from txnkafka.storage.log.segment_files import DELETED as DELETED
from txnkafka.storage.log.segment_files import SegmentFiles
from txnkafka.storage.log.segment_indexes import SPARSE as SPARSE
from txnkafka.storage.log.segment_indexes import read_indexes
from txnkafka.storage.log.txn_index_file import TxnIndexFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from txnkafka._core.scan import BatchIndex
    from txnkafka.config import LogConfig
    from txnkafka.env import Bytes, DataFile, DataFiles
    from txnkafka.storage.formats.layout import FileKind, FileSuffix

LOG = logging.getLogger("txnkafka.storage")
OUT_OF_ORDER = "offsets go back in the log; 'txnkafka repair --full' says where"
_READ_BYTES = 64 << 10  # the first read of a lookup, from an index entry on


class LogSegment(SegmentWriter):
    """One segment below ``directory``, in its ``files``. ``size`` is the position of the next batch.
    ``SegmentWriter`` has ``append`` and the fields that it changes."""

    config: LogConfig
    files: SegmentFiles
    offset_index: OffsetIndex
    time_index: TimeIndex
    txn_index: TxnIndexFile | None

    def __init__(
        self,
        data_files: DataFiles,
        directory: str,
        base_offset: int,
        config: LogConfig,
        *,
        created_ms: int,
        suffix: FileSuffix = "",
    ) -> None:
        self.files = SegmentFiles(data_files, directory, base_offset, suffix)
        self.base_offset = base_offset
        self.config = config
        self.created_ms = created_ms  # creation or opening by this process
        jitter_ms = min(config.segment_jitter_ms, config.segment_ms)
        self.roll_jitter_ms = random_below(jitter_ms) if jitter_ms else 0  # LogConfig.randomSegmentJitter
        self.modified_ms = created_ms  # time of the last write
        self.size = 0
        self.rolling_timestamp = None  # largest timestamp of the first batch
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, base_offset
        self.offset_index, self.time_index = OffsetIndex.owned(base_offset), TimeIndex.owned(base_offset)
        self.txn_index = TxnIndexFile(base_offset)  # None until loaded by storage.log.transactions
        self.listed_txns: TxnIndexFile | None = None  # or: the file, without comparing it with the log
        self.oldest_at_base: int | None = None  # start of the oldest transaction open at the base, once known
        self.has_unsynced_bytes = False
        self.unsynced_files: list[DataFile] = []  # the indexes among the files to sync
        self.on_repair: Callable[[str, str, str], None] = partial(LOG.warning, "%s is %s: %s")
        self.is_loaded = True
        self.bytes_since_entry = 0  # since the last entry of the offset index
        self.was_preallocated = False

    @property
    def is_named(self) -> bool:
        """True if the files have their final names: recovery keeps only such segments."""
        return not self.files.suffix

    def path(self, kind: FileKind) -> str:
        """Return the path of a file of the segment; the file need not exist."""
        return self.files.path(kind)

    def file(self, kind: FileKind) -> DataFile:
        """Return the open file. Raises OSError, FileNotFoundError if it does not exist."""
        return self.files.open(kind)

    def close(self) -> None:
        """Close the files; they are reopened on demand."""
        self.files.close()

    # Appending

    def write(self, position: int, parts: Sequence[Bytes]) -> None:
        """Write batches that are already indexed. Raises OSError."""
        self.files.open("log").write(position, parts)
        self.note_unsynced()

    def note_unsynced(self) -> None:
        """Record a write to the log: its file stays open until it is synced, so that no error is missed."""
        self.has_unsynced_bytes = True
        self.files.pin()

    def add_entry(self, relative: int, position: int) -> bool:
        """Add an entry to the indexes, unless the last one has this offset or a later one."""
        if relative <= self.offset_index.last_key:
            return False
        self.offset_index.append(relative, position)
        self._add_time_entry()
        return True

    def note_all(self, batches: BatchIndex) -> None:
        """Index batches that the log already contains. Raises CorruptRecordError when their offsets are out
        of order or too far from the base."""
        self._check_reach(batches)
        if not len(batches):
            return
        if self.rolling_timestamp is None:
            self.rolling_timestamp = batches.max_timestamp[0]
        try:
            grown = index_entries(
                batches,
                base_offset=self.base_offset,
                interval_bytes=self.config.index_interval_bytes,
                bytes_since_entry=self.bytes_since_entry,
                max_timestamp=self.max_timestamp,
                max_timestamp_offset=self.max_timestamp_offset,
                newest_entry=self.time_index.last_key,
                last_entry=self.base_offset + self.offset_index.last_key,
            )
        except OverflowError as error:
            raise CorruptRecordError(f"{error}: {OUT_OF_ORDER}", file=self.path("log")) from None
        self.offset_index.extend(grown[0])
        self.time_index.extend(grown[1])
        self.entries_grew()
        self.bytes_since_entry, self.max_timestamp, self.max_timestamp_offset = grown[2:]

    def _add_time_entry(self) -> None:
        if self.max_timestamp > self.time_index.last_key:
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)

    # Reading

    def read(self, position: int, length: int) -> memoryview:
        """Read ``length`` bytes of the log, fewer at its end. Raises OSError."""
        buffer = memoryview(bytearray(max(0, min(length, self.size - position))))
        return buffer[: self.file("log").read_into(buffer, position)]

    def view(self) -> SegmentReader:
        """Return a reader of the segment; the caller closes it."""
        return SegmentReader(self.files.data_files, self.base_offset, {"log": self.path("log")}, self.size)

    def windows(self, position: int = 0, end: int | None = None) -> Iterator[BatchIndex]:
        """Yield the headers of all batches between two batch boundaries, window by window."""
        if not self.size:
            return  # the file may not exist yet
        view = self.view()
        try:
            for _, _, index in view.windows(position, self.size if end is None else end):
                yield index
        finally:
            view.close()

    def last_entry(self) -> OffsetPosition | None:
        """Return the last entry of the offset index, or None."""
        self.load()
        return self.offset_index[-1] if len(self.offset_index) else None

    def batch_before(self, position: int) -> int:
        """Return the position of a batch at or before ``position``, as close as the index allows."""
        self.load()
        below = self.offset_index.at_position(position + 1)
        return self.offset_index[below - 1].position if below else 0

    def find(self, offset: int) -> BatchPosition | None:
        """Find the first batch that ends at or after ``offset``; None without one. An index with an entry
        that points to no batch is rebuilt. Raises CorruptRecordError."""
        if not self.is_loaded:
            self.load()
        for _ in range(2):
            place, position = self._find(offset)
            if place is not None or position == self.size:
                return place
            self.index_again()
        raise CorruptRecordError(
            "no whole batch begins here", position=position, offset=offset, file=self.path("log")
        )

    def _find(self, offset: int) -> tuple[BatchPosition | None, int]:
        """Return the batch, and the position up to which it was searched."""
        entry_offset, entry_position = self.offset_index.entry_below(offset)
        if not 0 <= entry_position < self.size:
            return None, entry_position
        place, position = find_batch_in(self.file("log"), entry_position, self.size, offset)
        if place is None and position < self.size:
            place, position = self._find_by_scan(offset, position)
        # brokers before 4.0 stored the last offset of an append of several batches
        if place is not None and 0 < place.position == entry_position and place.last_offset > entry_offset:
            return None, entry_position
        return place, position

    def _find_by_scan(self, offset: int, position: int) -> tuple[BatchPosition | None, int]:
        """Search from a position with an unknown magic, where the CRC must decide whether a batch begins.
        Returns the same as ``_find``."""
        for index in self.windows(position):
            i = index.find(offset)
            if i < len(index):
                columns = index.position, index.size, index.base_offset, index.last_offset
                return BatchPosition(*(column[i] for column in columns)), position
            position = index.end_position
        return None, position

    def index_again(self) -> None:
        """Rebuild both indexes from the log."""
        self.forget_indexes()
        for index in self.windows():
            self.note_all(index)
        self.seal()

    # Keeping

    def seal(self) -> None:
        """Add the last entry to the time index; no more appends follow."""
        self._add_time_entry()

    def save(self) -> None:
        """Write all unsaved index entries to their files. Each file is added to ``unsynced_files`` before it
        is written, so that a save that fails half way leaves no file out of the next sync. Raises OSError."""
        if self.is_loaded:
            for kind, index in zip(SPARSE, (self.offset_index, self.time_index), strict=True):
                if not index.is_saved or not self.files.exists(kind):
                    self.unsynced_files.append(self.files.open_or_create(kind))
                    index.save(self.file(kind))
        if self.txn_index is not None and not self.txn_index.is_saved:
            self.unsynced_files.append(self.files.open_or_create("txnindex"))
            self.txn_index.save(self.file("txnindex"))

    def load(self) -> bool:
        """Load the indexes into memory; return False if they were already loaded. If a file is missing or
        inconsistent, rebuild both from the log. Raises CorruptRecordError and OSError; then the next call
        tries again."""
        if self.is_loaded:
            return False
        known = self.max_timestamp, self.max_timestamp_offset
        self.is_loaded = True
        try:
            self._load()
        except (OSError, KafkaError):
            self.is_loaded = False
            self._empty_indexes()
            self.max_timestamp, self.max_timestamp_offset = known
            raise
        return True

    def _load(self) -> None:
        fault = self._read_indexes()
        if fault:
            if self.size:
                self.on_repair(f"{self.path('index')} with its .timeindex", "rebuilt from the log", fault)
            self.index_again()
            return
        last = self.time_index.last()
        if last is not None:
            self.max_timestamp, self.max_timestamp_offset = last[0], last[1] + self.base_offset

    def latest_timestamp(self) -> int:
        """Return the largest timestamp, NO_TIMESTAMP without any. Does not keep the indexes in memory: a log
        may have any number of segments. Raises CorruptRecordError and OSError."""
        if self.max_timestamp == NO_TIMESTAMP and self.load():
            self.unload()
        return self.max_timestamp

    def _read_indexes(self) -> str:
        """Read the index files; return their fault, or an empty text if they are accepted."""
        indexes = read_indexes(self.files, self.base_offset, self.size)
        if isinstance(indexes, str):
            return indexes
        self.offset_index, self.time_index = indexes
        if self.size and self.time_index.last_key <= 0 and (self.first_timestamp() or 0) > 0:
            return f"{self.path('timeindex')} has no timestamp"
        return ""

    def unload(self) -> None:
        """Release the memory of the indexes, unless they have unsaved entries."""
        if self.is_loaded and self.offset_index.is_saved and self.time_index.is_saved:
            self.is_loaded = False
            self._empty_indexes()

    def loaded_from(self, size: int, modified_ms: int) -> None:
        """Use existing files with ``size`` bytes of log, last written at ``modified_ms``. Indexes are loaded
        on demand."""
        self.size = size
        self.modified_ms = modified_ms
        self.txn_index = None
        self.is_loaded = False

    def count_anew(self) -> None:
        """Reset the bytes counted since the last index entry, as Kafka does when it opens a segment."""
        self.bytes_since_entry = 0

    def begin_again(self) -> None:
        """Empty the indexes before a pass over the whole log; ``note_all`` rebuilds them."""
        self.is_loaded = True
        self.forget_indexes()

    def _check_reach(self, batches: BatchIndex) -> None:
        if len(batches) and not self.fits(batches.last_offset[-1]):
            raise CorruptRecordError(
                f"offset {batches.last_offset[-1]} exceeds the segment's index range; "
                "Apache Kafka splits this segment when it starts, txnkafka refuses to open it",
                position=batches.position[-1],
                offset=batches.base_offset[-1],
                file=self.path("log"),
            )

    def note_tail(self, batches: BatchIndex) -> None:
        """Update the largest timestamp from the last batches of the segment, which no entry of the time index
        covers."""
        self._check_reach(batches)
        for last_offset, timestamp in zip(batches.last_offset, batches.max_timestamp, strict=True):
            if timestamp > self.max_timestamp and self.fits(last_offset):
                self.max_timestamp, self.max_timestamp_offset = timestamp, last_offset

    def first_timestamp(self) -> int | None:
        """Return the largest timestamp of the first batch, the start of the segment's age."""
        if self.rolling_timestamp is None and self.size:
            for index in self.windows(0, min(self.size, _READ_BYTES)):
                self.rolling_timestamp = index.max_timestamp[0] if len(index) else None
                break
        return self.rolling_timestamp

    def _empty_indexes(self) -> None:
        self.offset_index = OffsetIndex.owned(self.base_offset)
        self.time_index = TimeIndex.owned(self.base_offset)

    def forget_indexes(self) -> None:
        """Empty the indexes and replace their files at the next save; ``note_all`` fills them."""
        self._empty_indexes()
        self.offset_index.replaces_file()
        self.time_index.replaces_file()
        self.rolling_timestamp = None
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        self.bytes_since_entry = 0

    def truncate(self, position: int, offset: int) -> None:
        """Truncate the log at a batch boundary, and remove all entries from ``offset`` on from the indexes.
        Raises OSError."""
        self.load()
        self.files.cut_slices(position)
        self.file("log").truncate(position)
        self.note_unsynced()
        self.size = position
        self.offset_index.keep_below(offset)
        self.time_index.keep_below(offset)
        if self.txn_index is not None:
            self.txn_index.keep_below(offset)
        self.bytes_since_entry = 0
        self._find_max_timestamp()
        if position == 0:
            self.rolling_timestamp = None
        # Timestamps not covered by the time index. Kafka loses them, so its segment looks too old.
        for index in self.windows(self.batch_before(position)):
            self.note_tail(index)

    def _find_max_timestamp(self) -> None:
        """Find the largest timestamp: in the last entry of the time index, or in a batch after it."""
        timestamp, relative = self.time_index.last() or (NO_TIMESTAMP, 0)
        self.max_timestamp, self.max_timestamp_offset = timestamp, self.base_offset + relative
        entry = self.offset_index.lookup(self.max_timestamp_offset)
        for index in self.windows(entry.position):
            self.note_tail(index)

    def sync(self) -> None:
        """Sync the log and the index files. Raises OSError."""
        self.file("log").sync()
        for file in self.unsynced_files:
            file.sync()
        self.has_unsynced_bytes, self.unsynced_files = False, []
        self.files.rest()

    def cut_tail(self, position: int) -> None:
        """Truncate the log after the last batch that the indexes cover. Raises OSError."""
        self.size = position
        self.trim()

    def preallocate(self) -> None:
        """Extend the file to the maximum size of the segment. Raises OSError."""
        self.was_preallocated = True
        self.file("log").truncate(max(self.size, self.config.segment_bytes))

    def trim(self) -> None:
        """Truncate the file to the log in it, after preallocation or a failed write. Raises OSError."""
        self.file("log").truncate(self.size)
        self.note_unsynced()  # else a power cut restores the truncated bytes
