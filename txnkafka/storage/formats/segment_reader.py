"""Readers of ``.log`` files: of one file up to some size, and of a whole segment of a partition.

The size is taken once, when the directory is listed: whatever a broker appends later is not seen, so that
every pass over the segment sees the same bytes. Bytes are either mapped (closed segments of a directory no
broker holds) or read into a buffer that is used again; nothing here relies on bytes staying as they were
when somebody looked at them before.

Bytes of a mapping may change while somebody works on them, because the file is truncated or written. So what
follows from them counts only after ``settled()`` has said that the file is as it was; otherwise the mapping
is given up, and the same bytes are read from the file, with the answers that ``pread`` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from txnkafka._core.scan import BatchIndex, scan
from txnkafka.bounds import MAX_BATCH_BYTES, MAX_INDEXED_BATCHES
from txnkafka.env import FileSystem, MappedBytes, ReadableFile
from txnkafka.errors import CorruptRecordError, LogDirError
from txnkafka.record.batch_header import BATCH_LENGTH, LOG_OVERHEAD, MIN_FRAME

__all__ = ["MAX_OPEN_SEGMENTS", "LogFileReader", "SegmentReader", "divided"]

MAPPED_WINDOW_BYTES = 4 << 20  # headers are looked at first, and should still be in the cache for the records
MAX_OPEN_SEGMENTS = 64  # a partition with more gives each back after a pass over it

Examine = Callable[[int, memoryview, BatchIndex], None]


class LogFileReader:
    """Reads batches of the ``.log`` file at ``path``, of which the first ``size`` bytes count. ``mapped``: it
    may be mapped into memory."""

    def __init__(self, file_system: FileSystem, path: str, size: int, *, mapped: bool = False) -> None:
        self.file_system = file_system
        self.path = path
        self.size = size
        self.mapped = mapped
        self._file: ReadableFile | None = None
        self._mapping: MappedBytes | None = None
        self._buffer = bytearray()

    def read(self, position: int, length: int) -> memoryview:
        """Bytes of the log; valid until the next read. Fewer than asked for when the file has become
        shorter."""
        if self._file is None:
            self._open()
        if self._mapping is not None:
            try:
                return self._mapping.read(position, length)
            except OSError as error:
                raise self._unreadable(error) from error
        length = max(0, min(length, self.size - position))
        if len(self._buffer) < length:
            self._buffer = bytearray(max(length, min(self._window_bytes, self.size)))
        view = memoryview(self._buffer)[:length]
        assert self._file is not None
        try:
            return view[: self._file.read_into(view, position)]
        except OSError as error:
            raise self._unreadable(error) from error

    @property
    def _window_bytes(self) -> int:
        return MAPPED_WINDOW_BYTES if self.mapped else self.file_system.window_bytes

    def _open(self) -> None:
        try:
            self._file = self.file_system.open(self.path)
            if self.mapped:
                self._mapping = self._file.map(min(self.size, self._file.size()))
                self.mapped = self._mapping is not None
        except OSError as error:
            raise self._unreadable(error) from error

    def settled(self) -> bool:
        """Whether the bytes that ``read`` gave are still those of the file. When a mapped file was changed:
        False, and from now on the file is read instead, so the same bytes are to be asked for again."""
        if self._mapping is None or not self._mapping.changed():
            return True
        self._mapping = None
        self.mapped = False
        return False

    @property
    def guard(self) -> Callable[[], bool] | None:
        """``settled`` where the file is mapped; None where bytes are read into memory of this segment."""
        return self.settled if self.mapped else None

    def reader(self, position: int, data: memoryview) -> Callable[[int, int], memoryview]:
        """A function that gives (position, length) of a window, which begins at ``position``: out of
        ``data``, or read again once the file was changed under it."""
        from_mapping = self._mapping is not None

        def read(at: int, length: int) -> memoryview:
            if from_mapping and self._mapping is None:
                return self.read(at, length)
            return data[at - position : at - position + length]

        return read

    def _unreadable(self, error: OSError) -> LogDirError:
        return LogDirError(f"cannot read {self.path}: {error.strerror or error}")

    def close(self) -> None:
        """Give the file back; it is opened again when it is needed."""
        if self._file is not None:
            self._file.close()
        self._file = self._mapping = None
        self._buffer = bytearray()

    def windows(
        self, start: int = 0, end: int | None = None, *, examine: Examine | None = None
    ) -> Iterator[tuple[int, memoryview, BatchIndex]]:
        """(position, bytes, batches in them) from a batch boundary to ``end``, each window with whole
        batches only.

        The last window's index says how the bytes end. A window is 4 MiB when the file is mapped, else what
        its file system likes best, or one batch if that is larger. ``examine`` is called with each window
        before it is handed out, and again if the file was changed meanwhile; whoever looks at the bytes of a
        window later asks ``settled``.
        """
        try:
            yield from self._windows(start, self.size if end is None else min(end, self.size), examine)
        finally:
            self._forget_window()

    def _windows(
        self, start: int, end: int, examine: Examine | None
    ) -> Iterator[tuple[int, memoryview, BatchIndex]]:
        size = self._window_bytes
        position = start
        while True:
            data = self.read(position, min(size, end - position))
            self._read_ahead(position + len(data), min(size, end - position - len(data)))
            at_end = position + len(data) >= end or len(data) < min(size, end - position)
            index = scan(data, position=position)
            if examine is not None:
                examine(position, data, index)
            if not self.settled():
                size = min(size, self._window_bytes)
                continue
            if index.stop == "end" and at_end and position + len(data) < end:
                # cut between two batches it would look like a segment of which compaction left less
                index.truncate(len(index), "torn", "the file became shorter while it was read")
            # zeros at the end of a window may be the beginning of a batch, those of a whole header are not
            stuck = index.stop == "garbage" or (index.stop == "zeros" and not len(index))
            if at_end or (stuck and len(data) >= MIN_FRAME):
                yield position, data, index
                return
            if len(index) == 0:
                wanted = self._batch_size(data, position)
                if wanted > end - position:
                    yield position, data, index
                    return
                size = max(wanted, 2 * size)
                continue
            yield position, data, index
            position = index.end_position
            size = self._window_bytes

    def _read_ahead(self, position: int, length: int) -> None:
        if self._file is not None and length > 0:
            self._file.read_ahead(position, length)

    def _forget_window(self) -> None:
        """Many segments may be open at once, and a window of a remote file is large."""
        self._buffer = bytearray()
        if self._file is not None:
            self._file.read_ahead(0, 0)

    def _batch_size(self, data: memoryview, position: int) -> int:
        if len(data) < MIN_FRAME:
            return MIN_FRAME
        wanted = int.from_bytes(data[BATCH_LENGTH:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
        if MAX_BATCH_BYTES < wanted <= self.size - position:
            raise CorruptRecordError(
                f"a batch of {wanted} bytes begins here; more than {MAX_BATCH_BYTES} are taken for damage",
                position=position,
                file=self.path,
            )
        return wanted


class SegmentReader(LogFileReader):
    """The files of one segment. ``files`` maps kinds (``log``, ``index``, ``timeindex``, ``txnindex``,
    ``snapshot``) to paths. ``follows_cleaned``: what lies in front of it went through the cleaner."""

    def __init__(self, file_system: FileSystem, base_offset: int, files: dict[str, str], size: int) -> None:
        super().__init__(file_system, files["log"], size)
        self.base_offset = base_offset
        self.files = files
        self.follows_cleaned = False
        self._index: BatchIndex | None = None

    def close(self) -> None:
        """Close the file and forget the batches; both are read again when they are needed."""
        super().close()
        self._index = None

    def indexes(self) -> Iterator[BatchIndex]:
        """All batches of the segment, in one index that is remembered until ``close``, or in several (see
        ``divided``) that are made again each time. Bytes that were read before may not be used between two of
        them."""
        if self._index is not None:
            yield self._index
            return
        parts = divided(index for _, _, index in self.windows())
        part = next(parts)
        following = next(parts, None)
        if following is None:
            self._index = part
        yield part
        while following is not None:
            part, following = following, None
            yield part
            following = next(parts, None)

    def indexes_from(self, position: int) -> Iterator[BatchIndex]:
        """The batches from ``position`` on, a batch boundary, in one or several indexes that are not
        remembered."""
        if position == 0:
            return self.indexes()
        return divided(index for _, _, index in self.windows(position))

    def scan(self) -> BatchIndex:
        """All batches of the segment in one index, however large that is."""
        whole, *more = self.indexes()
        for window_index in more:
            whole.extend(window_index)
        return whole

    def end_offset(self) -> int:
        """The offset behind the last batch; the base offset where there is none."""
        found = self.base_offset
        for index in self.indexes():
            found = index.last_offset[-1] + 1 if len(index) else found
        return found

    @property
    def remembered(self) -> int:
        """How many batches of this segment are in memory."""
        return 0 if self._index is None else len(self._index)

    def another(self) -> SegmentReader:
        """The same segment with a buffer of its own, for whoever reads it in two places at once."""
        found = SegmentReader(self.file_system, self.base_offset, self.files, self.size)
        found.mapped, found._index = self.mapped, self._index
        return found

    def remember(self, end_position: int, index: BatchIndex | None) -> None:
        """Somebody has scanned the segment already, and cut it at ``end_position``; ``index`` is None when
        the segment has several."""
        self.size, self._index = end_position, index


def divided(windows: Iterable[BatchIndex]) -> Iterator[BatchIndex]:
    """The batches of ``windows`` (one at least) in indexes of about MAX_INDEXED_BATCHES.

    They are divided where offsets are in order, so that whoever looks for misplaced batches sees the
    neighbours of each, unless the order is wrong everywhere. The last one says how the bytes end.
    """
    part = BatchIndex()
    for index in windows:
        if len(part) >= MAX_INDEXED_BATCHES and _may_divide(part, index):
            part.truncate(len(part), "end", "")
            yield part
            part = BatchIndex()
        part.extend(index)
    yield part


def _may_divide(part: BatchIndex, following: BatchIndex) -> bool:
    if not len(following):
        return False
    return following.base_offset[0] > part.last_offset[-1] or len(part) >= 2 * MAX_INDEXED_BATCHES
